"""What noise or a band does to error rates: compared with the recordings as they are, found and said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.display import format_percent, join_with_and
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._advice.choice import FAR, LEVEL
from speechlab.evaluate._recognition.conditions import AS_RECORDED
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._speech.ranking import score_for_ranking
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._writing.columns import capitalize_sentence, format_language
from speechlab.evaluate._writing.contents import Conclusion, Finding
from speechlab.evaluate._writing.differences import (
    describe_difference,
    describe_rows_and_blocks,
)
from speechlab.metrics import compare, compute_utterances_needed, judge

# Ratios of error rates between which a sentence says that they double.
_NEARLY_TWICE, _TWICE = 1.7, 2.4
# What noise is called, from a ratio of speech to noise in dB on.
_LOUDNESS = ((15, "faint noise"), (7, "noise"), (-math.inf, "loud noise"))
# Change of an error rate, as a fraction, that a sentence calls hardly a change.
_NEGLIGIBLE_CHANGE = 0.01


def compare_conditions(table: pd.DataFrame, text: str, language: str) -> pd.DataFrame:
    """Compare each condition with the recordings as they are, by the exact test paired by recording."""
    comparisons = []
    sides = ["system"] if "system" in table.columns else []
    blocks = [BLOCK] if BLOCK in table.columns else []
    options: dict[str, Any] = {"on": "recording", "draws": 2, "groups": next(iter(blocks), None)}
    for key, rows in table[table[language].notna()].groupby([*sides, language], observed=True, sort=False):
        scores_by_condition = {
            str(name): score_for_ranking(group, text, language, ["recording", *blocks])
            for name, group in rows.groupby("condition", observed=True, sort=False)
        }
        unchanged = scores_by_condition.pop(AS_RECORDED, pd.DataFrame())
        *system, code = key
        for name, group in scores_by_condition.items():
            label = "".join(f"{part}, " for part in system)
            names = (f"{label}{AS_RECORDED}", f"{label}{name}")
            try:
                comparison = compare(unchanged, group, names=names, **options)
            except InvalidRequestError:  # no recording has a score under both conditions
                continue
            pairs = unchanged.merge(group[["recording", "errors"]], on="recording", suffixes=("", "_after"))
            block = pairs[options["groups"] or "recording"]
            changes = (pairs["errors_after"] - pairs["errors"]).dropna().groupby(block).sum()
            # recordings, or blocks of them, with which the difference would show in 8 of 10 studies
            needed = compute_utterances_needed(changes.to_numpy(dtype="int64"), LEVEL, 0.8)
            facts = {"language": str(code), "condition": name, "system": "".join(map(str, system))}
            further = {"needed": pd.NA if needed is None else needed, "low": None, "high": None}
            comparisons.append({**comparison.row(), **facts, **further})
    return judge(comparisons)


def build_condition_findings(differences: pd.DataFrame) -> tuple[Finding, ...]:
    """Return what conditions do as findings, with ``before``, ``after`` (error rates), ``p`` and ``recordings``."""
    findings = []
    for row in differences.to_dict("records"):
        system = tuple(filter(None, [str(row["system"])]))
        label = ", ".join([*system, format_language(str(row["language"])), str(row["condition"])])
        words = f"{label}: {describe_difference(row)} ({row['verdict']})."
        numbers = {"before": row["value_a"], "after": row["value_b"], "p": row["p_holm"]}
        numbers |= {"recordings": row["n"], "blocks": row["blocks"], "needed": row["needed"]}
        findings.append(Finding(words, str(row["language"]), str(row["condition"]), system, numbers, ""))
    return tuple(findings)


def choose_loudest_or_last_condition(conditions: Sequence[str]) -> str:
    """Return the condition that an answer is about: the loudest noise, or the last band."""
    levels = {name: parse_noise_level(name) for name in conditions if name.startswith("noise ")}
    return min(levels, key=lambda name: levels[name]) if levels else conditions[-1]


def parse_noise_level(condition: str) -> float:
    return float(condition.removeprefix("noise ").removesuffix(" dB"))


def build_conditions_conclusion(findings: Sequence[Finding], conditions: Sequence[str]) -> Conclusion:
    """Return what the hardest condition does to each language, and whether that is beyond chance."""
    hardest = choose_loudest_or_last_condition(conditions)
    at_hardest = [finding for finding in findings if finding.condition == hardest]
    if not at_hardest:
        return Conclusion(
            f"What {format_condition(hardest)} does could not be measured.",
            "No recording has a score with and without it.",
        )
    at_hardest.sort(key=lambda finding: finding.numbers["before"] - finding.numbers["after"])
    effects = [_describe_error_change(finding) for finding in at_hardest]
    lead = f"{format_condition(hardest)} {effects[0]}{''.join(f'; {effect}' for effect in effects[1:])}."
    proven = [finding for finding in at_hardest if finding.numbers["p"] < LEVEL]
    most = max(at_hardest, key=lambda finding: finding.numbers["recordings"]).numbers
    count, on = most["blocks"], describe_rows_and_blocks(most["recordings"], most["blocks"], "recording")
    if count < MIN_PAIRS:
        certainty = f"{on} cannot show whether that is chance; take {MIN_PAIRS} or more."
    elif len(proven) == len(at_hardest):
        certainty = f"That is beyond chance on {on}.{_describe_harmless_noise(findings, conditions)}"
    elif proven:
        names = join_with_and([_format_systems_and_language(finding) for finding in proven])
        certainty = f"Beyond chance on {on}: {names}; the rest may be chance."
        certainty += _describe_harmless_noise(findings, conditions)
    else:
        needed = [finding.numbers["needed"] for finding in at_hardest]
        further = max((float(total) - count for total in needed if not is_missing(total)), default=0)
        advice = f"; about {further:,.0f} more would show it" if 0 < further <= FAR else ""
        certainty = f"On {on}, that may be chance{advice}."
    return Conclusion(capitalize_sentence(lead), certainty)


def _describe_harmless_noise(findings: Sequence[Finding], conditions: Sequence[str]) -> str:
    """Return the loudest noise under which no rise of errors is shown, where a louder one has one."""
    fine = ""
    for name in [condition for condition in conditions if condition.startswith("noise ")]:
        numbers = [finding.numbers for finding in findings if finding.condition == name]
        if any(figures["p"] < LEVEL and figures["after"] > figures["before"] for figures in numbers):
            break
        fine = name
    return f" Down to {fine.removeprefix('noise ')} no rise is shown." if fine else ""


def format_condition(condition: str) -> str:
    if condition.startswith("noise "):
        level = parse_noise_level(condition)
        return f"{next(word for least, word in _LOUDNESS if level >= least)} ({level:g} dB)"
    return f"the band of {condition}"


def _format_systems_and_language(finding: Finding) -> str:
    return ", ".join([*finding.systems, format_language(finding.language)])


def _describe_error_change(finding: Finding) -> str:
    before, after = finding.numbers["before"], finding.numbers["after"]
    who, rates = (
        _format_systems_and_language(finding),
        f"({format_percent(before)} to {format_percent(after)})",
    )
    if abs(after - before) < _NEGLIGIBLE_CHANGE:
        return f"hardly changes {who} {rates}"
    if after < before:
        return f"lowers the errors of {who} {rates}"
    if not before or after / before < _NEARLY_TWICE:
        return f"raises the errors of {who} {rates}"
    if after / before < _TWICE:
        return f"doubles the errors of {who} {rates}"
    return f"multiplies the errors of {who} by {after / before:.1f} {rates}"
