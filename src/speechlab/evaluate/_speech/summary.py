"""The summary of a study of speech: rates by voice and language, in order, with intervals of sound coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.evaluate._arguments import code_or_none
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._speech.mixed import is_mixed
from speechlab.evaluate._speech.speed import summary_of_calls
from speechlab.metrics import score, summarize

if TYPE_CHECKING:
    import pandas as pd

ENOUGH = 20
"""Utterances from which 95 % intervals cover the truth in 95 % of simulated corpora (docs/statistics.md)."""
_ENDS = ("error_rate_low", "error_rate_high")
READING, _READING_ERRORS = "reading_cer", "reading_errors"
_BLOCKS = "speechlab: blocks"
NO_SPEAKER = "all recordings"
FLAGS = {"loops": "loop", "hallucinations": "hallucination", "tails_lost": "tail_lost"}
"""Columns of the summary with counts of rows, and the columns of flags that they count."""


def summarized(
    scored: pd.DataFrame, language: str, speed: pd.DataFrame, groups: str | None = None
) -> pd.DataFrame:
    """Summarise scored rows by voice and language, the best voice of each language first.

    If the rows have columns ``system`` or ``condition``, each value has its own lines.

    Args:
        scored: Rows of a study, with ``voice``, ``voice_name``, ``gender`` and ``duration_s``.
        language: Column of their language.
        speed: Timed calls, as from :func:`speechlab.evaluate._speech.speed.timed_voices`.
        groups: Column of blocks that are drawn as a whole for intervals, such as sentences spoken more than once.
    """
    by = [*(name for name in SIDES if name in scored.columns), "voice", language]
    spoken = scored[scored["voice"].notna()]
    if "loop" not in spoken.columns:  # tables of studies of other versions
        spoken = spoken.assign(loop=False)
    rates = _without_rough(_rated(spoken, by, groups))
    ranking = _ranking(spoken, rates, by, groups)
    counts = {count: (flag, "sum") for count, flag in FLAGS.items() if flag in spoken.columns}
    facts = spoken.groupby(by, observed=True, dropna=False).agg(
        voice_name=("voice_name", _only), gender=("gender", _only), duration_s=("duration_s", "sum"), **counts,
    )  # fmt: skip
    merged = rates.merge(facts.reset_index(), on=by, how="left").assign(**ranking)
    # Rows without speakers have the names of their files.
    several = merged["voice_name"].isna() | (merged["voice"] == NO_SPEAKER)
    merged["voice_name"] = merged["voice_name"].mask(several, merged["voice"])
    first = [*by[:-2], "voice", "voice_name", "gender", language, "unit"]
    merged = merged[[*first, *(name for name in merged.columns if name not in first)]]
    merged = merged.rename(columns={language: "language"})
    if len(speed):
        whose = [*(name for name in SIDES if name in speed.columns and name in by), "voice", "language"]
        merged = merged.merge(summary_of_calls(speed, whose), on=whose, how="left")
    merged = merged.sort_values("ranking_rate", kind="stable")
    if "condition" in by:  # in the order of the request
        places = {name: at for at, name in enumerate(scored["condition"].unique())}
        merged = merged.sort_values("condition", key=lambda names: names.map(places), kind="stable")
    return merged.sort_values("language", kind="stable", ignore_index=True)


def ranking_scores(part: pd.DataFrame, text: str, language: str, keep: list[str]) -> pd.DataFrame:
    """Return rows of one language with the scores of the ranking: readings for Japanese, the usual scores otherwise.

    Args:
        part: Scored rows of a study.
        text: Column of the references.
        language: Column of the language.
        keep: Columns that identify the rows.
    """
    if code_or_none(part[language].iloc[0]) != "ja" or _READING_ERRORS not in part.columns:
        return part
    kept = part[[*keep, text, "hypothesis"]]
    return score(kept, reference=text, hypothesis="hypothesis", language="ja", unit="reading")


def ranking_rates(table: pd.DataFrame) -> pd.Series[float]:
    """Return the rate for the ranking of each row: that of readings if the row has one, otherwise the error rate.

    Japanese is ranked by readings, because a voice does not determine the spelling of a word.
    """
    if READING not in table.columns:
        return table["error_rate"]
    return table[READING].astype("Float64").fillna(table["error_rate"])


def ranking_units(summary: pd.DataFrame) -> pd.Series[str]:
    """The unit of the rate that ranks voices; missing for rows without a language, which have no rate."""
    units = summary["unit"].mask((summary["ranked_by"] == READING).fillna(value=False), "reading")
    return units.mask(summary["language"].map(is_mixed).astype(bool), "mixed")


def _only(values: pd.Series[str]) -> str | None:
    return values.iloc[0] if values.nunique(dropna=False) == 1 else None


def _without_rough(rates: pd.DataFrame) -> pd.DataFrame:
    """Remove the intervals of too few utterances, and add the number of further utterances for an interval."""
    missing = (ENOUGH - rates.pop(_BLOCKS)).clip(lower=0).astype("Int64")
    return rates.assign(**{end: rates[end].mask(missing > 0) for end in _ENDS}, interval_needs=missing)


def _rated(spoken: pd.DataFrame, by: list[str], groups: str | None) -> pd.DataFrame:
    """The rates, and their numbers of blocks."""
    rates = summarize(spoken, by=by, groups=groups)
    if groups is None:
        return rates.assign(**{_BLOCKS: rates["utterances_scored"]})
    done = spoken[spoken["errors"].notna()]
    blocks = done.groupby([*by, "unit"], observed=True)[groups].nunique().rename(_BLOCKS).reset_index()
    return rates.merge(blocks, on=[*by, "unit"], how="left").fillna({_BLOCKS: 0})


def _ranking(
    spoken: pd.DataFrame, rates: pd.DataFrame, by: list[str], groups: str | None
) -> dict[str, pd.Series[float]]:
    """The rate for the ranking of voices, with its interval."""
    names = ("ranking_rate", "ranking_rate_low", "ranking_rate_high")
    figures = {name: rates[name.replace("ranking", "error")].copy() for name in names}
    figures["ranked_by"] = rates["error_rate"].notna().map({True: "error_rate", False: None}).astype("string")
    if READING not in rates.columns or not rates[READING].notna().any():
        return figures
    read = spoken[spoken["reading_errors"].notna()]
    # The same bootstrap, of errors and lengths in readings.
    counted = _rated(
        read.assign(errors=read["reading_errors"], reference_length=read["reading_length"]), by, groups
    )
    found = rates[by].merge(_without_rough(counted)[[*by, "error_rate", *_ENDS]], on=by, how="left")
    known = found["error_rate"].notna()
    for name in names:
        figures[name] = figures[name].mask(known, found[name.replace("ranking", "error")])
    figures["ranked_by"] = figures["ranked_by"].mask(known, READING)
    return figures
