"""Measures beside the error rates: formatting, entities, scorers of the user, and how streamed texts change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.client import get_service
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._speech.scorers import SCORE_PREFIX, ensure_open_store
from speechlab.evaluate._speech.speech_rows import HEAR
from speechlab.evaluate._speech.speed import RECOGNIZER_COLUMNS, STREAM_TIMES, build_call_table
from speechlab.evaluate._study_arguments import parse_language_code
from speechlab.evaluate._study_columns import SIDES, STREAMING
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_count_column,
    build_language_column,
    build_number_column,
    build_rate_column,
    build_text_column,
    format_interval,
)
from speechlab.evaluate._writing.differences import ENOUGH
from speechlab.metrics import entity_scores, formatting_rates, partial_stability

if TYPE_CHECKING:
    from speechlab.evaluate._systems import System
    from speechlab.store import Store

_CODE = "speechlab: code"
_MEASURE_COLUMNS = (
    *("language", "measure", "utterances", "items", "hits", "error_rate", "error_rate_low"),
    *("error_rate_high", "precision", "recall", "f1", "score"),
)


def compute_further_measures(
    table: pd.DataFrame,
    text: str,
    language: str,
    *,
    formatting: bool,
    entities: str | None,
    scores: Collection[str],
) -> pd.DataFrame:
    """The measures beside the error rates: formatting, entities and scorers, by system, condition and language."""
    keys = [name for name in SIDES if name in table.columns]
    options: dict[str, Any] = {"reference": text, "hypothesis": "hypothesis", "language": _CODE}
    options |= {"groups": BLOCK} if BLOCK in table.columns else {}
    rows: list[dict[Any, Any]] = []
    coded = table.assign(**{_CODE: table[language].map(parse_language_code)})
    for names, group in coded.groupby([*keys, _CODE], sort=False, observed=True):
        labels = dict(zip([*keys, "language"], names, strict=True))
        tables = []
        if formatting:
            rates = formatting_rates(group, **options)
            tables.append(
                rates.drop(columns="language").rename(columns={"kind": "measure", "in_reference": "items"})
            )
        if entities is not None:
            rates = entity_scores(group, entities=entities, **options).rename(columns={"entities": "items"})
            count_heard = int(group["hypothesis"].notna().sum())
            tables.append(rates.assign(measure="entities: " + rates["class"], utterances=count_heard))
        rows += [labels | row for rates in tables for row in rates.to_dict("records")]
        for name in scores:
            values = group[name].dropna()
            mean = values.mean() if len(values) else None
            measure = {"measure": name.removeprefix(SCORE_PREFIX), "utterances": len(values), "score": mean}
            rows.append(labels | measure)
    rates = pd.DataFrame(rows)
    return rates[[name for name in (*keys, *_MEASURE_COLUMNS) if name in rates.columns]]


def build_measures_view(measures: pd.DataFrame) -> View:
    """Return the measures beside the error rates."""
    columns = [
        build_text_column("system", "system", optional=True),
        build_text_column("condition", "condition", optional=True),
        build_language_column(),
        build_text_column("measure", "measure", strong=True),
        build_count_column("recordings", "utterances"),
        build_count_column("in the texts", "items", optional=True),
        build_rate_column("error rate", "error_rate", strong=True),
        DisplayColumn("95% interval", _format_rate_interval, figure=True, optional=True),
        build_rate_column("precision", "precision", optional=True),
        build_rate_column("recall", "recall", optional=True),
        build_rate_column("F1", "f1", optional=True),
        build_number_column("mean score", "score", ".3f", optional=True),
    ]
    note = (
        "Marks, words with capitals, numbers in digits, and entities, by their places in the alignment. Scores: "
        f"the means of your own functions. Intervals are given from {ENOUGH} recordings and places on."
    )
    names = [name for name in ("error_rate", "f1", "score") if name in measures.columns]
    return View.from_rows(
        "Formatting, entities and scores", columns, measures.dropna(subset=names, how="all"), note
    )


def _format_rate_interval(row: Mapping[Any, Any]) -> str | None:
    places = row.get("items", ENOUGH)
    enough = row["utterances"] >= ENOUGH and (is_missing(places) or int(places) >= ENOUGH)
    return format_interval(row.get("error_rate_low"), row.get("error_rate_high"), ".1%") if enough else None


def add_stream_times(
    heard: pd.DataFrame, skipped: pd.DataFrame, language: str, store: Store | str | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return recognized rows with the times and changes of those that were streamed, and skipped rows without any."""
    keys = heard[f"{HEAR}key"]
    with ensure_open_store(store) as open_store:
        results = open_store.get_many(keys.dropna().unique().tolist())
    rows = []
    for key, code in zip(keys, heard[language].map(parse_language_code), strict=True):
        response = results[key].response if key in results else {}
        row = {name: response.get(name) for name in STREAM_TIMES}
        if "partials" in response:
            partials = [(partial["text"], partial["final"]) for partial in response["partials"]]
            changed = partial_stability(partials, language=code or "")
            row |= dict(
                zip(STREAMING[2:], (changed.revisions, changed.unstable_words, changed.words), strict=True)
            )
        rows.append(row)
    types = dict.fromkeys(STREAMING, "Float64") | dict.fromkeys(STREAMING[2:], "Int64")
    times = pd.DataFrame(rows, columns=list(STREAMING), index=heard.index).astype(types)
    return heard.join(times), skipped.reindex(columns=[*skipped.columns, *STREAMING])


def add_stream_calls(
    scored: pd.DataFrame,
    text: str,
    language: str,
    systems: Sequence[System],
    concurrency: int,
    timed: pd.DataFrame,
) -> pd.DataFrame:
    """Return the timed calls, and those of streams, which are the rows themselves."""
    if "revisions" not in scored.columns:
        return timed
    rows = scored[scored["revisions"].notna()]
    most = max(
        get_service(system.lab).places or 0
        for system in systems
        if system.lab is not None and system.is_streaming
    )
    calls = rows.assign(
        text=rows[text],
        language=rows[language],
        voice_name=rows["voice"],
        turn=range(len(rows)),
        concurrency=1 if min(most, concurrency) == 1 else None,
        refusals=0,
        error=None,
    )
    whose = ["system"] if "system" in rows.columns else []
    streamed = build_call_table(calls.to_dict("records"), (*whose, *RECOGNIZER_COLUMNS, *STREAM_TIMES))
    if "condition" in rows.columns:
        streamed["condition"] = rows["condition"].astype("string").tolist()
    return pd.concat([timed, streamed], ignore_index=True) if len(timed) else streamed


def add_stream_ratios(table: pd.DataFrame, summary: pd.DataFrame, language: str) -> pd.DataFrame:
    """Return a summary with how often texts of streams changed: the ratios of unstable words and of revisions."""
    if "revisions" not in table.columns:
        return summary
    by = [*(name for name in SIDES if name in table.columns), "voice"]
    groups = table[table["revisions"].notna()].groupby([*by, language], observed=True)
    sums, counts = groups[list(STREAMING[2:])].sum(), groups["revisions"].count()
    ratios = pd.DataFrame(
        {
            "streams": counts,
            "unstable_partial_word_ratio": sums["unstable_words"]
            / sums["final_words"].mask(sums["final_words"] == 0),
            "unstable_partial_segment_ratio": sums["revisions"] / counts,
        }
    )
    ratios = ratios.reset_index().rename(columns={language: "language"})
    return summary.merge(ratios, on=[*by, "language"], how="left")


def build_streams_view(summary: pd.DataFrame) -> View:
    """Return the times and the changes of streams."""
    columns = [
        *(build_text_column(name, name, strong=True) for name in SIDES if name in summary.columns),
        build_language_column(),
        build_count_column("streams", "streams"),
        build_number_column("first partial (s)", "first_partial_s", optional=True, with_range=True),
        build_number_column("final text (s)", "finalization_s", strong=True, optional=True, with_range=True),
        build_number_column("95 of 100 within (s)", "finalization_s_p95", optional=True),
        build_rate_column("unstable words", "unstable_partial_word_ratio"),
        build_number_column("revisions", "unstable_partial_segment_ratio"),
        build_rate_column("error rate", "ranking_rate", strong=True),
    ]
    note = (
        "Medians with their range. First partial: from the first sound to the first text. Final text: from the end "
        "of the last sound (less than 40 dB below the loudest) to the last final text. Unstable words: shown and "
        "then changed, over the words of the final texts (UPWR). Revisions: texts of a recording that change a word "
        "(UPSR). Words of Chinese and Japanese are characters."
    )
    return View.from_rows("Streamed recognition", columns, summary[summary["streams"].notna()], note)
