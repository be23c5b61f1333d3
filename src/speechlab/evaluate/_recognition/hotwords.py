"""Benefit and cost of hotwords: settings with them against the setting without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._pandas import pd
from speechlab.display import format_count, format_percent, join_with_and
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._speech.speech_rows import build_multilingual_normalizer, to_language_codes
from speechlab.evaluate._writing.columns import (
    View,
    build_count_column,
    build_language_column,
    build_rate_column,
    build_text_column,
    describe_p_value,
)
from speechlab.evaluate._writing.contents import Conclusion, Finding
from speechlab.metrics import BETTER, WORSE, compare, hotword_counts, judge

if TYPE_CHECKING:
    from speechlab.evaluate._systems import System

_COUNTS = ("hotwords_said", "hotwords_hit", "hotwords_added", "unbiased_errors", "unbiased_length")
_MISSED, _ADDED, _REST = "hotwords missed", "hotwords inserted wrongly", "errors in other words"
# The errors of each measure, and the lengths that they are counted against.
_ERRORS: dict[str, Callable[[pd.DataFrame], tuple[Any, Any]]] = {
    _MISSED: lambda rows: (rows["hotwords_said"] - rows["hotwords_hit"], rows["hotwords_said"]),
    _ADDED: lambda rows: (rows["hotwords_added"], rows["hotwords_said"] * 0 + 1),
    _REST: lambda rows: (rows["unbiased_errors"], rows["unbiased_length"]),
}


class HotwordEffects(NamedTuple):
    """The effects of hotwords."""

    table: pd.DataFrame
    summary: pd.DataFrame
    differences: pd.DataFrame
    verdicts: tuple[Finding, ...]


def measure_hotword_effects(table: pd.DataFrame, systems: Sequence[System], language: str) -> HotwordEffects:
    """Count the hotwords of all settings in the rows of each, and compare settings with and without them."""
    words = list(dict.fromkeys(word for setting in systems for word in setting.hotwords))
    if not words:
        return HotwordEffects(table, pd.DataFrame(), judge([]), ())
    counted = table.assign(**_count_hotwords(table, words, language))
    recognized = counted[counted["hotwords_said"].notna()]
    places = [name for name in (language, "condition") if name in table.columns]
    keys = [*places, *(["system"] if "system" in table.columns else [])]
    sums = recognized.groupby(keys, observed=True, sort=False)[list(_COUNTS)].sum().reset_index()
    order = sums.groupby(places, observed=True, sort=False).ngroup().sort_values(kind="stable")
    sums = sums.loc[order.index].reset_index(drop=True).rename(columns={language: "language"})
    is_said = sums["hotwords_said"] > 0
    summary = sums.assign(
        recall=(sums["hotwords_hit"] / sums["hotwords_said"].where(is_said)).astype("Float64"),
        rest_rate=(sums["unbiased_errors"] / sums["unbiased_length"].clip(lower=1)).astype("Float64"),
    )
    differences = judge(
        {**row, "language": str(place[0]), "condition": str((*place, "")[1])}
        for place, lines in recognized.groupby(places, observed=True, sort=False)
        for base, setting in _pair_hotword_systems(systems)
        for row in _compare_hotword_settings(lines, base.name, setting.name)
    )
    findings: list[Finding] = []
    verdicts: dict[Any, str] = {}
    for key, rows in differences.groupby(["language", "condition", "a", "b"], sort=False):
        code, condition, base_name, name = map(str, key)
        lines = summary[summary["language"] == code]
        lines = lines[lines["condition"] == condition] if condition else lines
        before, after = (lines[lines["system"] == system].iloc[0] for system in (base_name, name))
        verdict, p = _describe_verdict(rows), rows.set_index("measure")["p_holm"]
        label = ", ".join(filter(None, (code, condition)))
        words_of_effects = _describe_effects(before, after, p)
        sentence = f"{label}: {name} against {base_name}: {words_of_effects}. {verdict}"
        if (least := int(rows["blocks"].min())) < 20:
            few = format_count(least, "recording is", "recordings are")
            sentence += f" {few} too few to show much."
        numbers = {str(what): float(value) for what, value in p.items()}
        findings.append(Finding(sentence, code, condition, (name, base_name), numbers))
        verdicts[after.name] = verdict
    summary = summary.assign(verdict=pd.array([verdicts.get(at) for at in summary.index], dtype="string"))
    if len(findings) > 1:
        findings = [replace(finding, shown="") for finding in findings]
    return HotwordEffects(counted, summary, differences, tuple(findings))


def _count_hotwords(table: pd.DataFrame, words: Sequence[str], language: str) -> pd.DataFrame:
    """Count the hotwords of each row, by the rules of its language or languages."""
    codes = to_language_codes(table[language])
    several = codes.map(len) > 1
    tables = [hotword_counts(table[~several], hotwords=words)]
    for languages, mixed_rows in table[several].groupby(codes[several]):
        normalize = build_multilingual_normalizer(languages)
        spellings = {word: list(filter(None, [normalize(word)])) for word in words}
        tables.append(hotword_counts(mixed_rows, hotwords=spellings))
    return pd.concat(tables).loc[table.index]


def _pair_hotword_systems(systems: Sequence[System]) -> list[tuple[System, System]]:
    """Pairs of the first setting without hotwords of a service, and each of its settings with hotwords."""
    pairs = []
    for system in systems:
        base = next((option for option in systems if option.lab is system.lab and not option.hotwords), None)
        if system.hotwords and base is not None:
            pairs.append((base, system))
    return pairs


def _compare_hotword_settings(part: pd.DataFrame, base: str, name: str) -> Iterator[dict[str, Any]]:
    """Yield the exact tests of two settings, paired by recording; none without a common recording."""
    sides = [part[part["system"] == system].set_index("recording") for system in (base, name)]
    blocks = BLOCK if BLOCK in part.columns else None
    for measure, errors_of in _ERRORS.items():
        counted = [
            side.assign(**dict(zip(("errors", "reference_length"), errors_of(side), strict=True)))
            for side in sides
        ]
        with suppress(InvalidRequestError):  # no common recording
            test = compare(*counted, names=(base, name), draws=2, groups=blocks)
            yield {**test.row(), "more": WORSE, "measure": measure, "low": None, "high": None}


def _describe_effects(before: Any, after: Any, p: Any) -> str:
    count_said = int(after["hotwords_said"])
    came, added = (
        f"from {int(before[name])} to {int(after[name])}" for name in ("hotwords_hit", "hotwords_added")
    )
    words = ["no hotword is spoken in these recordings"]
    if count_said:
        words = [f"recognized hotwords went {came} of {count_said} spoken ({describe_p_value(p[_MISSED])})"]
    verb = "" if count_said else "went "
    rates = f"from {format_percent(before['rest_rate'])} to {format_percent(after['rest_rate'])}"
    words.append(f"hotwords inserted wrongly {verb}{added} ({describe_p_value(p[_ADDED])})")
    return join_with_and([*words, f"errors in other words {rates} ({describe_p_value(p[_REST])})"])


def add_hotword_effects(answer: Conclusion, hotwords: HotwordEffects, condition: str) -> Conclusion:
    """Return an answer with what hotwords won, and beside it what they lost, in the condition that it is about."""
    lines = []
    for finding in hotwords.verdicts:
        if finding.condition != condition:
            continue
        name, base = finding.systems
        rows = hotwords.summary[hotwords.summary["language"] == finding.language]
        rows = rows[rows["condition"] == finding.condition] if finding.condition else rows
        before, after = (rows[rows["system"] == system].iloc[0] for system in (base, name))
        won, added = (
            f"{int(after[column])} ({int(before[column])} without)"
            for column in ("hotwords_hit", "hotwords_added")
        )
        rates = f"{format_percent(after['rest_rate'])} ({format_percent(before['rest_rate'])})"
        said = int(after["hotwords_said"])
        if not said and not after["hotwords_added"] and not before["hotwords_added"]:
            continue
        found = f"{won} of {said} recognized" if said else "none is spoken in these recordings"
        lines.append(f"Hotwords: {found}, {added} inserted wrongly, errors in other words {rates}.")
    if len(lines) != 1:  # the table has several
        return answer
    return Conclusion(answer.text, f"{answer.certainty}\n{lines[0]}".strip())


def _describe_verdict(rows: pd.DataFrame) -> str:
    verdicts = rows.set_index("measure")["verdict"]
    helps = {BETTER: "Hotwords help", WORSE: "Hotwords make it worse"}.get(
        verdicts[_MISSED], "No help is shown"
    )
    costs = " and ".join(name for name in (_ADDED, _REST) if verdicts[name] == WORSE)
    if not costs and verdicts[_MISSED] not in {BETTER, WORSE} and verdicts[_REST] == BETTER:
        return "Other words have fewer errors."
    if not costs and verdicts[_MISSED] not in {BETTER, WORSE}:
        return "No effect found."
    return f"{helps}; {f'they cost more {costs}' if costs else 'no cost is shown'}."


def build_hotwords_view(hotwords: pd.DataFrame) -> View:
    """Return the counts of hotwords and the error rates of the rest."""
    sides = [name for name in ("language", "condition", "system") if name in hotwords.columns]
    columns = [
        *(build_language_column() if name == "language" else build_text_column(name, name) for name in sides),
        build_count_column("spoken", "hotwords_said"),
        build_count_column("recognized", "hotwords_hit"),
        build_rate_column("recall", "recall", strong=True),
        build_count_column("inserted wrongly", "hotwords_added"),
        build_rate_column("errors in other words", "rest_rate"),
        build_text_column("verdict", "verdict", optional=True),
    ]
    note = (
        "Hotwords spoken, recognized, and inserted where nobody said them. The verdict is against the setting "
        "without them, by exact tests paired by recording, corrected together."
    )
    return View.from_rows("Hotwords", columns, hotwords, note)
