"""The summary of a study of speech: rates by voice and language with intervals of sound coverage, and its tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.display import format_count, format_percent, join_with_and
from speechlab.evaluate._speech.blocks import BLOCK, find_speaker_column
from speechlab.evaluate._speech.ranking import RANKED, READINGS, choose_ranking_counts_by_row
from speechlab.evaluate._speech.speech_rows import is_multilingual
from speechlab.evaluate._speech.speed import summarize_calls, summarize_calls_by_load
from speechlab.evaluate._study_arguments import parse_language_code
from speechlab.evaluate._study_columns import NO_SPEAKER, SIDES
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_charted_rate_column,
    build_count_column,
    build_count_of_total_column,
    build_language_column,
    build_number_column,
    build_rate_column,
    build_text_column,
    select_rows,
)
from speechlab.evaluate._writing.differences import ENOUGH
from speechlab.metrics import summarize
from speechlab.text import get_language_name

_ENDS = ("error_rate_low", "error_rate_high")
_BLOCKS = "speechlab: blocks"
# Columns of the summary with counts of rows, and the columns of flags that they count.
FLAGS = {"empties": "empty", "loops": "loop", "hallucinations": "hallucination", "tails_lost": "tail_lost"}


def summarize_speech(
    scored: pd.DataFrame,
    language: str,
    speed: pd.DataFrame,
    groups: str | None = None,
    items: str | None = None,
) -> pd.DataFrame:
    """Summarize scored rows by voice and language, the best voice of each language first."""
    groups = BLOCK if groups is None and BLOCK in scored.columns else groups
    by = [*(name for name in SIDES if name in scored.columns), "voice", language]
    utterances = scored[scored["voice"].notna()]
    if "loop" not in utterances.columns:  # of rows that were scored elsewhere
        utterances = utterances.assign(loop=False)
    rates = _drop_rough_intervals(_compute_rates(utterances, by, groups))
    ranking = _compute_ranking_rates(utterances, rates, by, groups)
    common = _compute_common_rates(utterances, by, items)
    counts = {count: (flag, "sum") for count, flag in FLAGS.items() if flag in utterances.columns}
    facts = utterances.groupby(by, observed=True, dropna=False).agg(
        voice_name=("voice_name", _find_only_value), gender=("gender", _find_only_value),
        duration_s=("duration_s", "sum"), **counts,
    )  # fmt: skip
    merged = rates.merge(facts.reset_index(), on=by, how="left").assign(**ranking)
    merged["interval_unit"] = choose_block_unit(utterances, groups)
    merged = merged.merge(common, on=by, how="left")
    merged["common_rate"] = merged["common_rate"].fillna(merged["ranking_rate"])
    # Rows without speakers have the names of their files.
    several = merged["voice_name"].isna() | (merged["voice"] == NO_SPEAKER)
    merged["voice_name"] = merged["voice_name"].astype("object").mask(several, merged["voice"])
    leading = [*by[:-2], "voice", "voice_name", "gender", language, "unit"]
    merged = merged[[*leading, *(name for name in merged.columns if name not in leading)]]
    merged = merged.rename(columns={language: "language"})
    if len(speed):
        keys = [*(name for name in SIDES if name in speed.columns and name in by), "voice", "language"]
        merged = merged.merge(summarize_calls(speed, keys), on=keys, how="left")
    merged = merged.sort_values("common_rate", kind="stable")
    if "condition" in by:  # in the order of the request
        places = {name: at for at, name in enumerate(scored["condition"].unique())}
        merged = merged.sort_values("condition", key=lambda names: names.map(places), kind="stable")
    languages = merged["language"].map(str, na_action="ignore")  # a cell may be no text
    return merged.loc[languages.sort_values(kind="stable").index].reset_index(drop=True)


def build_full_voice_names(table: pd.DataFrame) -> pd.Series[str]:
    """Return the name of each row's voice; with several services ``alloy of theirs``."""
    names = table["voice_name"]
    return names + " of " + table["system"] if "system" in table.columns else names


def choose_ranking_units(summary: pd.DataFrame) -> pd.Series[str]:
    """Return the unit of the rate that ranks voices; missing for rows without a language, which have no rate."""
    units = summary["unit"].mask((summary["ranked_by"] == READINGS.rate).fillna(value=False), "reading")
    return units.mask(summary["language"].map(is_multilingual).astype(bool), "mixed")


def choose_block_unit(rows: pd.DataFrame, groups: str | None) -> str | None:
    """Return what intervals count, where that is not the row: speakers, or blocks of rows that repeat something."""
    if groups != BLOCK:
        return None
    column = find_speaker_column(rows)
    if column is None:
        return "block"
    speakers = rows.groupby(BLOCK)[column].nunique()
    return "speaker" if speakers.eq(1).all() and len(speakers) == rows[column].nunique() else "block"


def _find_only_value(values: pd.Series[str]) -> str | None:
    return values.iloc[0] if values.nunique(dropna=False) == 1 else None


def _drop_rough_intervals(rates: pd.DataFrame) -> pd.DataFrame:
    """Remove the intervals of too few blocks, and add the number of further blocks for an interval."""
    lacking = (ENOUGH - rates.pop(_BLOCKS)).clip(lower=0).astype("Int64")
    return rates.assign(**{end: rates[end].mask(lacking > 0) for end in _ENDS}, interval_needs=lacking)


def _compute_rates(rows: pd.DataFrame, by: list[str], groups: str | None) -> pd.DataFrame:
    """Return the rates, and their numbers of blocks."""
    rates = summarize(rows, by=by, groups=groups)
    if groups is None:
        return rates.assign(**{_BLOCKS: rates["utterances_scored"]})
    scored = rows[rows["errors"].notna()]
    blocks = scored.groupby([*by, "unit"], observed=True)[groups].nunique().rename(_BLOCKS).reset_index()
    return rates.merge(blocks, on=[*by, "unit"], how="left").fillna({_BLOCKS: 0})


def _compute_ranking_rates(
    rows: pd.DataFrame, rates: pd.DataFrame, by: list[str], groups: str | None
) -> dict[str, pd.Series[float]]:
    """Return the rate for the ranking of voices, with its interval."""
    names = ("ranking_rate", "ranking_rate_low", "ranking_rate_high")
    figures = {name: rates[name.replace("ranking", "error")].copy() for name in names}
    figures["ranked_by"] = rates["error_rate"].notna().map({True: "error_rate", False: None}).astype("string")
    for measure in reversed(RANKED):
        if measure.rate not in rates.columns or not rates[measure.rate].notna().any():
            continue
        read = rows[rows[[measure.rate, measure.errors]].notna().all(axis=1)]
        # The same bootstrap, of other errors and lengths.
        read = read.assign(errors=read[measure.errors], reference_length=read[measure.length])
        counted = _compute_rates(read, by, groups)
        ranked = rates[by].merge(
            _drop_rough_intervals(counted)[[*by, "error_rate", *_ENDS]], on=by, how="left"
        )
        is_ranked = ranked["error_rate"].notna()
        for name in names:
            figures[name] = figures[name].mask(is_ranked, ranked[name.replace("ranking", "error")])
        figures["ranked_by"] = figures["ranked_by"].mask(is_ranked, measure.rate)
    return figures


def _compute_common_rates(rows: pd.DataFrame, by: list[str], items: str | None) -> pd.DataFrame:
    """Return the rate of each line on the items that all lines of its language have, where some lack an item."""
    columns = [*by, "common_rate", "common_utterances"]
    empty = pd.DataFrame(columns=columns).astype({name: rows[name].dtype for name in by})
    empty = empty.astype({"common_rate": "Float64", "common_utterances": "Int64"})
    scored = rows[rows["errors"].notna()]
    if items is None or not len(scored):
        return empty
    counts = choose_ranking_counts_by_row(scored)
    scored = scored.assign(errors=counts["errors"], reference_length=counts["reference_length"])
    tables = []
    for _, group in scored.groupby(by[-1], observed=True, sort=False):
        lines = group.groupby(by, observed=True)
        line = lines.ngroup()
        shared = line.groupby(group[items]).nunique() == line.nunique()
        if shared.all() or not shared.any():
            continue
        same = group[group[items].isin(shared.index[shared])].groupby(by, observed=True)
        sums = same[["errors", "reference_length"]].sum()
        rates = sums["errors"] / sums["reference_length"].clip(lower=1)
        tables.append(pd.DataFrame({"common_rate": rates, "common_utterances": same.size()}).reset_index())
    return pd.concat(tables, ignore_index=True)[columns] if tables else empty


# Times that people wait for, the first that a table has.
_STARTS = ("first_audible_s", "first_byte_s", "total_s")
UNITS = {"word": "words", "char": "characters", "reading": "kana", "mixed": "words and characters"}


_FLAG_NOUNS = {
    "empties": "empty text",
    "loops": "repeated text",
    "hallucinations": "invented text",
    "tails_lost": "lost endings",
}
_NOUNS = {"block": "different recording"}
_GRAY_NOTE = "Gray: significantly more errors than the best."
_CONDITIONS_NOTE = "Noise in dB: how far speech stands above it; the smaller, the louder the noise."


def build_rates_view(summary: pd.DataFrame) -> View:
    """Return the error rates by voice, and by system and condition if there are several."""
    flags = [name for name in FLAGS if name in summary.columns]
    of_conditions = "condition" in summary.columns
    columns = [
        *build_name_columns(summary),
        build_count_of_total_column("clips", "utterances_scored", "utterances"),
        build_charted_rate_column("error rate", "ranking_rate", is_in_first_group),
        build_rate_interval_column("clips"),
        DisplayColumn("on the same clips", _format_common_rate, figure=True, optional=True),
        build_text_column("counted in", "ranking_unit"),
        build_notation_column(),
        *(
            build_count_column(name.replace("_", " "), name, optional=True, counted=(FLAGS[name], True))
            for name in flags
        ),
    ]
    if not of_conditions:  # calls are timed under one condition alone
        columns += [
            _build_start_time_column(summary),
            build_number_column("final text (s)", "finalization_s", optional=True),
            build_rate_column("unstable words", "unstable_partial_word_ratio", optional=True),
            build_number_column("RTF", "rtf", optional=True),
        ]
    has_rates = summary["ranking_rate"].notna().any()
    absent = [_FLAG_NOUNS[name] for name in flags if has_rates and not summary[name].any()]
    note = f"{explain_counting(summary)} {_CONDITIONS_NOTE}" if of_conditions else explain_ranking(summary)
    note += f" No {' or '.join(absent)} found." if absent else ""
    note += "" if summary.apply(is_in_first_group, axis=1).all() else f" {_GRAY_NOTE}"
    return View.from_rows("Error rates", columns, to_rate_rows(summary), note)


def is_in_first_group(row: Mapping[Any, Any]) -> bool:
    """Return whether a line of a summary is not significantly worse than the best, as far as it was tested."""
    letters = row.get("group")
    return is_missing(letters) or "a" in str(letters)


def explain_counting(summary: pd.DataFrame) -> str:
    """Return how errors are counted in the languages that a summary has."""
    codes = {parse_language_code(code) for code in summary["language"].dropna()}
    without_notation = [get_language_name(code) for code in ("en", "zh") if code in codes]
    clauses = ["Japanese is counted by its sound, in kana"] if "ja" in codes else []
    if without_notation:
        counted = "" if clauses else "are counted " if len(without_notation) > 1 else "is counted "
        example = "such as 4719 for 4 7 1 9"
        clauses.append(
            f"{join_with_and(without_notation)} {counted}without differences of notation, {example}"
        )
    return f"{'; '.join(clauses)}." if clauses else ""


def explain_ranking(summary: pd.DataFrame) -> str:
    """Return how lines are ordered and errors counted."""
    order = "The fewest errors of each language first." if summary["language"].nunique() > 1 else ""
    order = order or ("The fewest errors first." if len(summary) > 1 else "")
    return f"{order} {explain_counting(summary)}".strip()


def build_name_columns(summary: pd.DataFrame, *, by_voice: bool = False) -> list[DisplayColumn]:
    """Return the columns that name a line: system, condition, voice and language; the voice strong if it leads."""
    sides = [name for name in SIDES if name in summary.columns]
    no_speakers = bool(sides) and bool((summary["voice"] == NO_SPEAKER).all())
    return [
        *(build_text_column(name, name, strong=not by_voice) for name in sides),
        *(
            []
            if no_speakers
            else [
                build_text_column("voice", "voice_name", strong=by_voice or not sides)._replace(
                    rows=select_rows
                )
            ]
        ),
        build_language_column(),
    ]


def _build_start_time_column(summary: pd.DataFrame, *, with_range: bool = False) -> DisplayColumn:
    """Return the column of the time that people wait for: for a text of a recognizer, or for sound."""
    name = choose_start_time_column(summary)
    head = "text (s)" if name == "total_s" else "first sound (s)"
    return build_number_column(head, name, optional=True, with_range=with_range)


def build_speed_view(summary: pd.DataFrame) -> View:
    """Return the speed of the voices, or of the recognizers."""
    columns = [
        *build_name_columns(summary),
        build_count_column("calls", "timed_calls"),
        _build_start_time_column(summary, with_range=True),
        build_number_column("RTF", "rtf", strong=True, with_range=True),
    ]
    note = "Medians of calls made one at a time, in turns, with their range."
    return View.from_rows("Speed", columns, summary[summary[choose_start_time_column(summary)].notna()], note)


def build_load_views(speed: pd.DataFrame) -> list[View]:
    """Return the speed by the number of calls under way; nothing if that was one number."""
    if not len(speed) or "concurrency" not in speed.columns or speed["concurrency"].nunique() < 2:
        return []
    columns = [
        build_text_column("system", "system", strong=True, optional=True),
        build_text_column("voice", "voice_name", strong=True, optional=True),
        build_language_column(optional=True),
        build_text_column("from", "source_lang", optional=True),
        build_text_column("to", "target_lang", optional=True),
        build_count_column("at once", "concurrency"),
        build_count_column("calls", "timed_calls"),
        build_number_column("first sound (s)", "first_audible_s", optional=True, with_range=True),
        build_number_column("first word (s)", "first_word_s", optional=True, with_range=True),
        build_number_column("end (s)", "total_s", optional=True, with_range=True),
        build_number_column("end, 95 of 100 calls (s)", "total_s_p95", optional=True, with_range=True),
        build_number_column("RTF", "rtf", optional=True),
        build_count_column("calls that stall", "stalled_calls", optional=True),
    ]
    note = (
        "Medians with their range, by the number of calls that begin together. A call stalls if its player has to "
        "wait for sound."
    )
    return [View.from_rows("Speed under load", columns, summarize_calls_by_load(speed), note)]


def to_rate_rows(summary: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """Return the rows of a summary, with the unit that ranks them, and the rate with notation where it differs."""
    differs = summary["error_rate"] != summary["ranking_rate"]
    units = choose_ranking_units(summary).astype(object).replace(UNITS)
    notation_rates = summary["error_rate"].where(differs)
    written = (
        summary["unit"].astype(object).replace(UNITS).where(summary["unit"] != choose_ranking_units(summary))
    )
    rates = {"ranking_unit": units, "notation_rate": notation_rates, "notation_unit": written}
    return summary.assign(**rates).to_dict("records")


def build_notation_column() -> DisplayColumn:
    """Return the rate with notation; with its unit where that is not the one of the rate beside it."""

    def format_cell(row: Mapping[Any, Any]) -> str | None:
        if is_missing(row.get("notation_rate")):
            return None
        unit = row.get("notation_unit")
        by = "" if is_missing(unit) else f" by {str(unit).removesuffix('s')}"
        return f"{format_percent(row['notation_rate'])}{by}"

    return DisplayColumn("with notation", format_cell, figure=True, optional=True)


def choose_start_time_column(table: pd.DataFrame) -> str:
    """Return the column with the time that people wait for: until speech begins, or until the text is there."""
    return next((name for name in _STARTS if name in table.columns), _STARTS[0])


def build_rate_interval_column(what: str) -> DisplayColumn:
    """Return the column of the 95% interval, or of how many more rows it takes."""

    def format_cell(row: Mapping[Any, Any]) -> str | None:
        if not is_missing(needs := row["interval_needs"]) and needs > 0:
            unit = row.get("interval_unit")
            noun = what.removesuffix("s") if is_missing(unit) else _NOUNS.get(str(unit), str(unit))
            return f"needs {format_count(int(needs), f'more {noun}')}"
        low, high = row["ranking_rate_low"], row["ranking_rate_high"]
        return None if is_missing(low) else f"{format_percent(low)} to {format_percent(high)}"

    return DisplayColumn("95% interval", format_cell, figure=True)


def _format_common_rate(row: Mapping[Any, Any]) -> str | None:
    shared = row.get("common_utterances")
    return None if is_missing(shared) else f"{format_percent(row['common_rate'])} on {shared}"
