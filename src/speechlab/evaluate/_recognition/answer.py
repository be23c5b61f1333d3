"""The answer of a study of recognition: which system to take, and what noise or a band does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab._arguments import is_missing
from speechlab.display import percent
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._blocks import BLOCK
from speechlab.evaluate._recognition.conditions import AS_RECORDED
from speechlab.evaluate._recognition.order import FEWEST
from speechlab.evaluate._speech.answer import advised, answer_of
from speechlab.evaluate._speech.summary import ranking_scores, ranking_units
from speechlab.evaluate._speech.tables import UNITS
from speechlab.evaluate._writing.columns import interval_text, listed, named, plural
from speechlab.evaluate._writing.contents import Conclusion, Finding
from speechlab.evaluate._writing.differences import difference_words
from speechlab.metrics import compare, judge, rank

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from speechlab.evaluate._systems import System

_LEVEL = 0.05
_NEARLY_TWICE, _TWICE = 1.7, 2.4
"""Ratios of error rates between which a sentence says that they double."""
_MOST = 3
"""Lines of a summary that the answer tells."""
_FAR = 5_000
"""Number of further recordings above which more of them are no practical solution."""
_LOUDNESS = ((15, "faint noise"), (7, "noise"), (-math.inf, "loud noise"))
"""What noise is called, from a ratio of speech to noise in dB on."""
_WHO = "speechlab: condition"
_HARDLY = 0.01
"""Change of an error rate, as a fraction, that a sentence calls hardly a change."""


def systems_answer(order: pd.DataFrame, speed: pd.DataFrame, findings: Sequence[Finding]) -> Conclusion:
    """Return which system to take for each language, on recordings without changes."""
    plain = order[order["condition"] == AS_RECORDED] if "condition" in order.columns else order
    rows = []
    languages = plain.groupby("language", observed=True, sort=False) if len(plain) else ()
    for code, part in languages:
        calls = speed[speed["language"] == code] if len(speed) else speed
        rows.append({"language": code, **advised(part.reset_index(drop=True), calls, "recording")})
    if not rows:
        why = str(findings[0]) if findings else "No recording was recognised by all systems."
        return Conclusion("No system can be advised.", why)
    return answer_of(pd.DataFrame(rows))


def streams_answer(
    summary: pd.DataFrame, systems: Sequence[System], differences: pd.DataFrame, advice: Conclusion | None
) -> Conclusion:
    """Return when streamed text is final and how much of it is wrong, against whole recordings if there are any."""
    lines = summary[summary["streams"].notna() & summary["ranking_rate"].notna()]
    if "condition" in lines.columns:
        lines = lines[lines["condition"] == AS_RECORDED]
    if not len(lines):
        return Conclusion("No stream could be scored.", "The table of rows has the reasons.")
    rows = lines.assign(unit=ranking_units(lines)).to_dict("records")
    final = [
        None if is_missing(row.get("finalization_s")) else f"{row['finalization_s']:.2f} s" for row in rows
    ]
    if advice is not None:
        by = ("system", "language") if len({row["language"] for row in rows}) > 1 else ("system",)
        each = zip(final, rows, strict=True)
        times = [f"{when} ({', '.join(row[name] for name in by)})" for when, row in each if when]
        more = f" Streamed text is final {listed(times)} after the end of speech." if times else ""
        return Conclusion(advice.text, f"{advice.certainty}{more}".strip())
    (live,) = (one for one in systems if one.streams)
    whole, parts, sure = live.beside(systems), [], []
    for when, row in zip(final[:_MOST], rows[:_MOST], strict=True):
        other = _beside(summary, whole, row)
        against = "" if is_missing(other) else f" (whole: {percent(other)})"
        wrong = f"{percent(row['common_rate'])} of {UNITS.get(row['unit'], 'words')} are wrong{against}"
        where = named(str(row["language"]))
        told = f"is final {when} after the end of speech" if when else "has no times"
        parts.append(f"{told} in {where}, where {wrong}")
        sure.append(f"{f'{where}: ' if len(rows) > 1 else ''}{_sure_of(row, differences, whole)}")
    certainty = f"{'; '.join(sure)}."
    return Conclusion(f"Streamed text {'; it '.join(parts)}.", certainty[:1].upper() + certainty[1:])


def _beside(summary: pd.DataFrame, system: System | None, row: Mapping[Any, Any]) -> Any:
    """The error rate of the system on the same recordings whole, if there is one."""
    same = summary[summary["system"] == system.name] if system is not None else summary.iloc[:0]
    for name in ("voice", "language", *(["condition"] if "condition" in row else [])):
        same = same[same[name] == row[name]]
    return next(iter(same["common_rate"]), None)


def _sure_of(row: Mapping[Any, Any], differences: pd.DataFrame, whole: System | None) -> str:
    """How sure the difference from whole recordings is, and the times of streams."""
    count = plural(int(row["utterances_scored"]), "recording")
    ends = interval_text(row.get("finalization_s_low"), row.get("finalization_s_high"))
    times = f"; final texts came after {ends} s" if ends else ""
    if not is_missing(most := row.get("finalization_s_p95")):
        times = f"; 95 of 100 texts are final within {most:.2f} s"
    pairs = [
        one
        for one in differences.to_dict("records")
        if whole is not None and one["language"] == row["language"] and one["condition"] in {"", AS_RECORDED}
        if {one["a"], one["b"]} == {row["system"], whole.name}
    ]
    if not pairs:
        return f"that is of {count}{times}"
    if pairs[0]["n"] < FEWEST:
        return f"{count} cannot show whether the rates differ by chance; take {FEWEST} or more{times}"
    p = pairs[0]["p_holm"]
    beyond = "is beyond chance" if not is_missing(p) and p < _LEVEL else "may be chance"
    return f"the difference in errors {beyond} on {count}{times}"


def condition_differences(table: pd.DataFrame, text: str, language: str) -> pd.DataFrame:
    """Compare each condition with the recordings as they are, by the exact test paired by recording."""
    tested = []
    sides = ["system"] if "system" in table.columns else []
    blocks = [BLOCK] if BLOCK in table.columns else []
    how: dict[str, Any] = {"on": "recording", "draws": 2, "groups": next(iter(blocks), None)}
    for key, rows in table[table[language].notna()].groupby([*sides, language], observed=True, sort=False):
        parts = {
            str(name): ranking_scores(part, text, language, ["recording", *blocks])
            for name, part in rows.groupby("condition", observed=True, sort=False)
        }
        plain = parts.pop(AS_RECORDED, pd.DataFrame())
        *system, code = key
        for name, part in parts.items():
            label = "".join(f"{one}, " for one in system)
            names = (f"{label}{AS_RECORDED}", f"{label}{name}")
            try:
                found = compare(plain, part, names=names, **how)
            except InvalidRequestError:  # no recording has a score under both conditions
                continue
            facts = {"language": str(code), "condition": name, "system": "".join(map(str, system))}
            both = pd.concat([plain, part]).assign(**{_WHO: [AS_RECORDED] * len(plain) + [name] * len(part)})
            ranked = rank(both, system=_WHO, utterance="recording", groups=how["groups"])
            facts |= {"needed": ranked.systems["needed"].iloc[1]}
            tested.append({**found.row(), **facts, "low": None, "high": None})
    return judge(tested)


def condition_findings(differences: pd.DataFrame) -> tuple[Finding, ...]:
    """Return what conditions do as findings, with ``before``, ``after`` (error rates), ``p`` and ``recordings``."""
    found = []
    for row in differences.to_dict("records"):
        system = tuple(filter(None, [str(row["system"])]))
        label = ", ".join([*system, named(str(row["language"])), str(row["condition"])])
        words = f"{label}: {difference_words(row)} ({row['verdict']})."
        numbers = {
            "before": row["value_a"],
            "after": row["value_b"],
            "p": row["p_holm"],
            "recordings": row["n"],
            "needed": row["needed"],
        }
        found.append(Finding(words, str(row["language"]), str(row["condition"]), system, numbers, ""))
    return tuple(found)


def conditions_answer(findings: Sequence[Finding], conditions: Sequence[str]) -> Conclusion:
    """Return what the hardest condition does to each language, and whether that is beyond chance."""
    noises = [name for name in conditions if name.startswith("noise ")]
    hardest = noises[-1] if noises else conditions[-1]
    own = [one for one in findings if one.condition == hardest]
    if not own:
        return Conclusion(
            f"What {_called(hardest)} does could not be measured.",
            "No recording has a score with and without it.",
        )
    own.sort(key=lambda one: one.numbers["before"] - one.numbers["after"])
    parts = [_effect(one) for one in own]
    lead = f"{_called(hardest)} {parts[0]}{''.join(f'; {one}' for one in parts[1:])}."
    sure = [one for one in own if one.numbers["p"] < _LEVEL]
    count = max(one.numbers["recordings"] for one in own)
    on = plural(count, "recording")
    if count < FEWEST:
        certainty = f"{on} cannot show whether that is chance; take {FEWEST} or more."
    elif len(sure) == len(own):
        certainty = f"That is beyond chance on {on}.{_bearable(findings, conditions)}"
    elif sure:
        names = listed([_language(one) for one in sure])
        certainty = (
            f"Beyond chance on {on}: {names}; the rest may be chance.{_bearable(findings, conditions)}"
        )
    else:
        more = [float(one.numbers["needed"]) - count for one in own if not is_missing(one.numbers["needed"])]
        needed = f"; about {max(more):,.0f} more would show it" if more and 0 < max(more) <= _FAR else ""
        certainty = f"On {on}, that may be chance{needed}."
    return Conclusion(lead[:1].upper() + lead[1:], certainty)


def _bearable(findings: Sequence[Finding], conditions: Sequence[str]) -> str:
    """The loudest noise under which no rise of errors is shown, where a louder one has one."""
    fine = ""
    for name in [one for one in conditions if one.startswith("noise ")]:
        own = [one for one in findings if one.condition == name]
        if any(one.numbers["p"] < _LEVEL and one.numbers["after"] > one.numbers["before"] for one in own):
            break
        fine = name
    return f" Down to {fine.removeprefix('noise ')} no rise is shown." if fine else ""


def _called(condition: str) -> str:
    if condition.startswith("noise "):
        level = float(condition.removeprefix("noise ").removesuffix(" dB"))
        return f"{next(word for least, word in _LOUDNESS if level >= least)} ({level:g} dB)"
    return f"the band of {condition}"


def _language(one: Finding) -> str:
    return ", ".join([*one.systems, named(one.language)])


def _effect(one: Finding) -> str:
    before, after = one.numbers["before"], one.numbers["after"]
    who, rates = _language(one), f"({percent(before)} to {percent(after)})"
    if abs(after - before) < _HARDLY:
        return f"hardly changes {who} {rates}"
    if after < before:
        return f"lowers the errors of {who} {rates}"
    if not before or after / before < _NEARLY_TWICE:
        return f"raises the errors of {who} {rates}"
    ratio = after / before
    return (
        f"doubles the errors of {who} {rates}"
        if ratio < 2.4
        else f"makes {ratio:.1f} times the errors of {who} {rates}"
    )
