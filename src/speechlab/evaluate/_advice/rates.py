"""How much is understood, and how sure that is: of one system, or of voices or speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._arguments import is_missing
from speechlab.display import format_count, format_percent
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._advice.evidence import (
    find_runaway_row,
    format_row_name,
    list_systems_failing_more,
    mark_empty_outputs,
    mark_failures,
    summarize_empty_outputs,
)
from speechlab.evaluate._advice.findings import describe_error_rate, describe_longer_recordings
from speechlab.evaluate._advice.first_look import describe_first_look, describe_worst_sentence
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._speech.ranking import choose_ranking_counts_by_row, score_for_ranking
from speechlab.evaluate._speech.summary import (
    UNITS,
    build_full_voice_names,
    choose_ranking_units,
    summarize_speech,
)
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._study_columns import NO_SPEAKER, SIDES
from speechlab.evaluate._writing.columns import describe_p_value, format_language
from speechlab.evaluate._writing.contents import Conclusion
from speechlab.evaluate._writing.sentences import (
    capitalize_unless_name,
    join_fitting_clauses,
    join_names,
    quote_name,
)
from speechlab.metrics import rank

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = 0.05
_END_COLUMN = "speechlab: who"
# Share of the errors in empty outputs, or of the errors that are inserted words, from which on the answer tells them.
_EMPTY_SHARE, _INSERTED_SHARE = 0.1, 1 / 3
# Errors below which their kinds say little.
_FEW_ERRORS = 10
# Maximum number of languages in the first sentence, and of voices at one end of an order.
_MAX_LANGUAGES, _MAX_NAMES = 3, 2


class _Words(NamedTuple):
    """What is said of a language: on its own, in short beside other languages, and further clauses."""

    lead: str
    brief: str
    clauses: list[str]


def build_rates_conclusion(
    summary: pd.DataFrame,
    table: pd.DataFrame,
    text: str,
    language: str,
    *,
    of_speakers: bool = False,
    remarks: Mapping[str, str] = MappingProxyType({}),
) -> Conclusion:
    """Return how much was understood in each language, and how sure that is; ``remarks`` on languages come second."""
    if of_speakers and summary["voice"].nunique() > 1:
        return _build_speakers_conclusion(summary, table, text, language)
    rated = summary.assign(unit=choose_ranking_units(summary), voice_name=build_full_voice_names(summary))[
        summary["ranking_rate"].notna()
    ]
    if not len(rated):
        return Conclusion("Nothing could be scored.", _describe_unscored_rows(table))
    words = {
        str(code): _describe_language_rates(str(code), lines, table[table[language] == code], text, language)
        for code, lines in rated.groupby("language", sort=False)
    }
    for code, (*_, clauses) in words.items():
        clauses[1:1] = filter(None, [remarks.get(code)])
    if first_look := describe_first_look(summary, rated):
        return Conclusion(first_look, "\n".join(_list_first_look_lines(rated, words, table, text, language)))
    if len(words) == 1:
        (only,) = words.values()
        names = rated["voice_name"].tolist()
        lines = capitalize_unless_name(join_fitting_clauses(only.clauses), names)
        return Conclusion(f"{capitalize_unless_name(only.lead, names)}.", f"{lines}.")
    certainty = [
        f"{format_language(code)}: {join_fitting_clauses(one.clauses)}." for code, one in words.items()
    ]
    more = f"; and {len(words) - _MAX_LANGUAGES} more languages" if len(words) > _MAX_LANGUAGES else ""
    lead = "; ".join(one.brief for one in [*words.values()][:_MAX_LANGUAGES])
    return Conclusion(f"{lead}{more}.", "\n".join(certainty))


def _list_first_look_lines(
    rated: pd.DataFrame, words: Mapping[str, _Words], table: pd.DataFrame, text: str, language: str
) -> list[str]:
    """Return a line for each language: the rates of its voices, where the errors are, and which voices failed."""
    lines = []
    for code, voices in rated.groupby("language", sort=False):
        one = words[str(code)]
        if len(voices) == 1:
            lines.append(f"{join_fitting_clauses([one.brief, *one.clauses])}.")
            continue
        low, high = (_format_rate(voices["common_rate"].iloc[at]) for at in (0, -1))
        unit = UNITS.get(str(voices["unit"].iloc[0]), "words")
        rates = f"{low} to {high}" if low != high else low
        who = f"with {'each of ' if low == high else ''}{len(voices)} voices"
        lead = f"{format_language(str(code))}: {rates} errors in 100 {unit} {who}"
        rows = _name_voices(table[table[language] == code], voices)
        scored = rows[rows["errors"].notna()]
        worst = describe_worst_sentence(scored, scored[_END_COLUMN], text) if low != high else ""
        lines.append(f"{join_fitting_clauses([lead, *_list_voice_problems(rows, text, ())[1], worst])}.")
    return lines


def _describe_unscored_rows(table: pd.DataFrame) -> str:
    count = int(table["errors"].isna().sum())
    if not count:
        return ""
    return f"{count:,} of {format_count(len(table), 'row')} {'has' if count == 1 else 'have'} no score."


def _describe_language_rates(
    code: str, lines: pd.DataFrame, table: pd.DataFrame, text: str, column: str
) -> _Words:
    """Return what is said of a language."""
    if len(lines) > 1:
        return _describe_best_and_worst_voices(code, lines, table, text, column)
    language, line = format_language(code), lines.iloc[0]
    unit = UNITS.get(str(line["unit"]), "words")
    rows = table[table["errors"].notna()]
    rows = rows.assign(**choose_ranking_counts_by_row(rows)[["errors", "reference_length"]])
    who = "" if line["voice"] == NO_SPEAKER else f" of {quote_name(line['voice_name'])}"
    rate = f"{100 * line['common_rate']:.1f} errors in 100"
    left = _list_unscored_notes(table, text)
    words = _describe_empty_outputs(language, rows, unit, left) or _describe_runaway_recording(
        language, rows, unit, text, left
    )
    if words is not None:
        return words
    certainty = _describe_interval(line, table)
    inserted = _describe_insertions(rows, unit)
    if line["common_rate"] > 1:
        added, length = int(rows["insertions"].sum()), int(rows["reference_length"].sum())
        lead = f"{language}: {added:,} {unit} inserted where {length:,} were spoken{who}"
        return _Words(lead, lead, [certainty, *left])
    return _Words(
        f"{rate} {language} {unit}{who}", f"{language}: {rate} {unit}{who}", [certainty, *left, inserted]
    )


def _list_unscored_notes(table: pd.DataFrame, text: str) -> list[str]:
    """Return how many recordings failed, and how many have no reference."""
    failed = int(mark_failures(table, text).sum())
    unknown = int((table[text].isna() & table["hypothesis"].notna()).sum())
    rows, words = format_count(len(table), "recording"), []
    if failed:
        words.append(f"{failed:,} of {rows} failed and {'is' if failed == 1 else 'are'} left out")
    if unknown:
        words.append(f"{unknown:,} of {rows} {'has' if unknown == 1 else 'have'} no reference")
    return words


def _describe_empty_outputs(language: str, rows: pd.DataFrame, unit: str, left: list[str]) -> _Words | None:
    """Return that outputs were empty, where these make much of the errors."""
    is_empty = mark_empty_outputs(rows)
    empty, others = rows[is_empty], rows[~is_empty]
    if not len(empty) or float(empty["errors"].sum()) <= _EMPTY_SHARE * float(rows["errors"].sum()):
        return None
    lead = f"{len(empty):,} of {len(rows):,} {language} recordings came back empty"
    lengths = describe_longer_recordings(empty, others)
    lengths = f"those that are empty are {lengths}" if lengths else ""
    rest = f"the others have {describe_error_rate(others)} {unit}" if len(others) else ""
    return _Words(lead, lead, [rest, lengths, *left] if rest else [lengths, *left])


def _describe_runaway_recording(
    language: str, rows: pd.DataFrame, unit: str, text: str, left: list[str]
) -> _Words | None:
    """Return that one recording makes over a third of the errors, and the rate of the others."""
    rows = rows.reset_index(drop=True)
    place = find_runaway_row(rows)
    if place is None:
        return None
    row, others = rows.loc[place], rows.drop(index=place)
    errors, total = int(row["errors"]), int(rows["errors"].sum())
    share = f"all {total:,}" if errors == total else f"{errors:,} of {total:,}"
    lead = f"one of {len(rows):,} {language} recordings makes {share} errors"
    rest = f"the other {len(others):,} are right"
    if errors < total:
        rest = f"the other {len(others):,} have {describe_error_rate(others)} {unit}"
    added = 0 if is_missing(row.get("insertions")) else int(row["insertions"])
    inserted = f"{added:,} {unit} were inserted in it" if 2 * added > errors else ""
    return _Words(
        lead, capitalize_unless_name(lead), [rest, inserted, f"it is {format_row_name(row, text)}", *left]
    )


def _describe_insertions(rows: pd.DataFrame, unit: str) -> str:
    """Return how many of the errors are inserted words, where these are many."""
    errors, inserted = rows["errors"].sum(), rows["insertions"].sum()
    if (
        errors < _FEW_ERRORS
        or is_missing(inserted)
        or inserted <= _INSERTED_SHARE * errors
        or inserted > errors
    ):
        return ""
    return f"{int(inserted):,} of {int(errors):,} errors are inserted {unit}"


def _describe_interval(line: pd.Series[Any], rows: pd.DataFrame) -> str:
    """Return the interval of a rate, or how many recordings it lacks."""
    count = format_count(int(line["utterances_scored"]), "recording")
    low, high = line["ranking_rate_low"], line["ranking_rate_high"]
    if not is_missing(low):
        return f"{100 * low:.1f} to {100 * high:.1f} with 95% confidence, {count}"
    needs, unit = line["interval_needs"], line.get("interval_unit")
    if is_missing(needs) or not needs:
        return count
    if is_missing(unit):
        return f"{count}; {int(line['utterances_scored']) + int(needs)} would give an interval"
    noun = "different recording" if unit == "block" else str(unit)
    blocks = rows[BLOCK].nunique() if BLOCK in rows else 0
    here = f"{count} of {format_count(blocks, noun)}" if unit != "block" and blocks else count
    more = format_count(int(needs), f"more {noun}")
    return f"{here}; {format_count(blocks + int(needs), noun) if blocks else more} would give an interval"


def _build_speakers_conclusion(
    summary: pd.DataFrame, table: pd.DataFrame, text: str, language: str
) -> Conclusion:
    """Return the rate of all speakers, who are drawn as wholes where they are enough, and those at both ends."""
    pooled = table.assign(voice=NO_SPEAKER, speaker=table["voice"])
    count = table["voice"].nunique()
    if count >= MIN_PAIRS:
        pooled = pooled.assign(**{BLOCK: table["voice"].astype(str)})
    spans = {
        str(code): "speakers from "
        + " to ".join(
            f"{format_percent(min(lines['ranking_rate'].iloc[at], 1.0))} ({quote_name(lines['voice_name'].iloc[at])})"
            for at in (0, -1)
        )
        for code, lines in summary[summary["ranking_rate"].notna()].groupby("language", sort=False)
        if len(lines) > 1
    }
    pooled_summary = summarize_speech(pooled, language, table.iloc[:0])
    return build_rates_conclusion(pooled_summary, pooled, text, language, remarks=spans)


def _describe_best_and_worst_voices(
    code: str, lines: pd.DataFrame, table: pd.DataFrame, text: str, column: str
) -> _Words:
    """Return which voices are understood best and worst, whether they differ beyond chance, and which failed."""
    language, unit = format_language(code), UNITS.get(str(lines["unit"].iloc[0]), "words")
    rows = _name_voices(table, lines)
    lacking = list_systems_failing_more(rows.assign(failed=mark_failures(rows, text)), _END_COLUMN, text)
    lowest, highest = lines["common_rate"].iloc[0], lines["common_rate"].iloc[-1]
    first, last = (
        lines.loc[lines["common_rate"] == rate, "voice_name"].tolist() for rate in (lowest, highest)
    )
    # Of voices with the same rate, those that said all lead.
    first = [name for name in first if name not in lacking] or first or [lines["voice_name"].iloc[0]]
    last = last or [lines["voice_name"].iloc[-1]]
    extremes, is_settled = _describe_voice_difference(
        first[0], last[-1], len(lines), lacking, rows, text, column
    )
    low, high = _format_rate(lowest), _format_rate(highest)
    failed, remarks = _list_voice_problems(rows, text, lacking)
    who = f"{join_names(first, most=_MAX_NAMES)} {'is' if len(first) == 1 else 'are'}"
    ends = f"{quote_name(first[0])} {low}, {quote_name(last[-1])} {high} errors in 100 {unit}"
    if lowest == highest and not failed:
        words = f"{low} errors in 100 {unit} with each of {len(lines)} voices"
        return _Words(f"{language}: {words}", f"{language}: {words}", [extremes, *remarks])
    if failed:
        lead = f"{language}: {who} understood best" if is_settled else f"{language}: which is best is open"
        return _Words(f"{lead}; {failed}", f"{lead}; {failed}", [ends, extremes, *remarks])
    if not is_settled:
        lead = f"{language}: which of {len(lines)} voices is understood best is not settled"
        return _Words(lead, lead, [f"{ends}; {extremes}", *remarks])
    lead = f"{language}: {who} understood best ({low} errors in 100 {unit})"
    brief = f"{language}: {who} understood best ({low})"
    return _Words(f"{lead}, {join_names(last, most=_MAX_NAMES)} worst ({high})", brief, [extremes, *remarks])


def _format_rate(rate: float) -> str:
    return f"{100 * rate:.1f}" if rate <= 1 else "over 100"


def _name_voices(table: pd.DataFrame, lines: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of voices, with their full names; a voice that only failed has no line."""
    keys = [name for name in (*SIDES, "voice") if name in lines.columns]
    full = dict(zip(lines[keys].apply(tuple, axis=1), lines["voice_name"].astype(str), strict=True))
    names = table[keys].apply(tuple, axis=1).map(full).fillna(build_full_voice_names(table))
    return table.assign(**{_END_COLUMN: names}).dropna(subset=_END_COLUMN)


def _list_voice_problems(rows: pd.DataFrame, text: str, lacking: Sequence[str]) -> tuple[str, list[str]]:
    """Return who failed on more rows than others, for a title, and remarks on voices that failed or were empty."""
    failed, counts = mark_failures(rows, text), rows[_END_COLUMN].value_counts().to_dict()
    failures = {name: int(n) for name, n in failed.groupby(rows[_END_COLUMN], sort=False).sum().items() if n}
    told = ""
    if len(lacking) == 1:
        told = f"{quote_name(lacking[0])} failed on {failures[lacking[0]]} of {counts[lacking[0]]} sentences"
    elif lacking:
        told = f"{join_names(lacking, most=_MAX_NAMES)} failed on some sentences"
    remarks = [
        f"{quote_name(name)} failed on {count} of {counts[name]}"
        for name, count in failures.items()
        if [name] != [*lacking]
    ]
    remarks += [
        f"{quote_name(name)} came back empty on {count} of {counts[name]}"
        for name, (count, _) in summarize_empty_outputs(rows, _END_COLUMN).items()
    ]
    unknown = int((rows[text].isna() & rows["hypothesis"].notna()).sum())
    return told, remarks + ([f"{unknown:,} rows have no reference"] if unknown else [])


def _describe_voice_difference(
    best: str,
    worst: str,
    voices: int,
    lacking: Sequence[str],
    table: pd.DataFrame,
    text: str,
    language: str,
) -> tuple[str, bool]:
    """Return the words on whether the best and the worst voice differ beyond chance, and whether they do.

    They are compared on the sentences that both have.

    They were chosen of all voices, so the p-value is that of the exact paired test times the number of pairs.
    """
    if best in lacking:
        return f"{quote_name(best)} lacks rows that others have, so the order may be of its failures", False
    both = table[table[_END_COLUMN].isin([best, worst])]
    scores = score_for_ranking(both, text, language, [_END_COLUMN])
    scores = scores[scores["errors"].notna()]
    try:
        pairs = rank(scores, system=_END_COLUMN, utterance=text).pairs
    except InvalidRequestError:
        return f"{voices} voices, which were not compared, because they said different sentences", False
    if not len(pairs):
        return "only one of both could be scored", False
    pair = pairs.iloc[0]
    count = format_count(int(pair["n"]), "sentence")
    if is_missing(pair["p"]) or pair["blocks"] < MIN_PAIRS:
        return (
            f"{count} of both {'is' if count.startswith('1 ') else 'are'} too few to tell them apart",
            False,
        )
    p = min(1.0, float(pair["p"]) * voices * (voices - 1) / 2)
    if p < _LEVEL:
        return f"best and worst differ by more than chance ({describe_p_value(p)}, {count})", True
    return f"the difference may be chance ({describe_p_value(p)}, {count})", False
