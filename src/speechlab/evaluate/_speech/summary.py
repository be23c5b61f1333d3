"""The summary of a study of speech: rates by voice and language, in order, with intervals of sound coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.evaluate._arguments import code_or_none
from speechlab.evaluate._blocks import BLOCK
from speechlab.evaluate._made import SIDES
from speechlab.evaluate._speech.rows import is_mixed
from speechlab.evaluate._speech.speed import summary_of_calls
from speechlab.evaluate._writing.differences import ENOUGH
from speechlab.metrics import classify_differences, score, summarize

if TYPE_CHECKING:
    import pandas as pd

_ENDS = ("error_rate_low", "error_rate_high")
READING, _READING_ERRORS = "reading_cer", "reading_errors"
_RANKED = {
    READING: (_READING_ERRORS, "reading_length"),
    "tolerant_wer": ("tolerant_errors", "word_length"),
    "tolerant_cer": ("tolerant_errors", "char_length"),
}
"""Rates that rank, the first that a language has, and the counts that they are made of; otherwise the error rate.

A voice does not determine how a word is written, so Japanese goes by readings, English and Chinese without notation.
"""
_BLOCKS = "speechlab: blocks"
NO_SPEAKER = "all recordings"
FLAGS = {"loops": "loop", "hallucinations": "hallucination", "tails_lost": "tail_lost"}
"""Columns of the summary with counts of rows, and the columns of flags that they count."""


def summarized(
    scored: pd.DataFrame,
    language: str,
    speed: pd.DataFrame,
    groups: str | None = None,
    items: str | None = None,
) -> pd.DataFrame:
    """Summarise scored rows by voice and language, the best voice of each language first."""
    groups = BLOCK if groups is None and BLOCK in scored.columns else groups
    by = [*(name for name in SIDES if name in scored.columns), "voice", language]
    utterances = scored[scored["voice"].notna()]
    if "loop" not in utterances.columns:  # tables of studies of other versions
        utterances = utterances.assign(loop=False)
    rates = _without_rough(_rated(utterances, by, groups))
    ranking = _ranking(utterances, rates, by, groups)
    common = _common(utterances, by, items)
    counts = {count: (flag, "sum") for count, flag in FLAGS.items() if flag in utterances.columns}
    facts = utterances.groupby(by, observed=True, dropna=False).agg(
        voice_name=("voice_name", _only), gender=("gender", _only), duration_s=("duration_s", "sum"), **counts,
    )  # fmt: skip
    merged = rates.merge(facts.reset_index(), on=by, how="left").assign(**ranking)
    merged["interval_unit"] = _block_unit(utterances, groups)
    merged = merged.merge(common, on=by, how="left")
    merged["common_rate"] = merged["common_rate"].fillna(merged["ranking_rate"])
    # Rows without speakers have the names of their files.
    several = merged["voice_name"].isna() | (merged["voice"] == NO_SPEAKER)
    merged["voice_name"] = merged["voice_name"].mask(several, merged["voice"])
    leading = [*by[:-2], "voice", "voice_name", "gender", language, "unit"]
    merged = merged[[*leading, *(name for name in merged.columns if name not in leading)]]
    merged = merged.rename(columns={language: "language"})
    if len(speed):
        keys = [*(name for name in SIDES if name in speed.columns and name in by), "voice", "language"]
        merged = merged.merge(summary_of_calls(speed, keys), on=keys, how="left")
    merged = merged.sort_values("common_rate", kind="stable")
    if "condition" in by:  # in the order of the request
        places = {name: at for at, name in enumerate(scored["condition"].unique())}
        merged = merged.sort_values("condition", key=lambda names: names.map(places), kind="stable")
    return merged.sort_values("language", kind="stable", ignore_index=True)


def ranking_scores(part: pd.DataFrame, text: str, language: str, keep: list[str]) -> pd.DataFrame:
    """Return rows of one language with the scores of the ranking."""
    code = code_or_none(part[language].iloc[0])
    texts = part[[*keep, text, "hypothesis"]]
    if code == "ja" and _READING_ERRORS in part.columns:
        return score(texts, reference=text, hypothesis="hypothesis", language="ja", unit="reading")
    if code is None or code == "ja" or "tolerant_errors" not in part.columns:
        return part
    # The same texts with the notation of the reference, so that tests by place see what the rate counts.
    has_tolerant = part["tolerant_errors"].notna()
    forgiven = [
        classify_differences(reference, hypothesis, code).tolerant if is_scored else hypothesis
        for reference, hypothesis, is_scored in zip(part[text], part["hypothesis"], has_tolerant, strict=True)
    ]
    rescored = score(
        texts.assign(hypothesis=forgiven), reference=text, hypothesis="hypothesis", language=code
    )
    return rescored.assign(errors=part["tolerant_errors"].where(has_tolerant, rescored["errors"]))


def ranking_units(summary: pd.DataFrame) -> pd.Series[str]:
    """The unit of the rate that ranks voices; missing for rows without a language, which have no rate."""
    units = summary["unit"].mask((summary["ranked_by"] == READING).fillna(value=False), "reading")
    return units.mask(summary["language"].map(is_mixed).astype(bool), "mixed")


def _block_unit(rows: pd.DataFrame, groups: str | None) -> str | None:
    """What intervals count, where that is not the row: speakers, or blocks of rows that repeat something."""
    if groups != BLOCK:
        return None
    if "speaker" not in rows.columns:
        return "block"
    speakers = rows.groupby(BLOCK)["speaker"].nunique()
    return "speaker" if speakers.eq(1).all() and len(speakers) == rows["speaker"].nunique() else "block"


def _only(values: pd.Series[str]) -> str | None:
    return values.iloc[0] if values.nunique(dropna=False) == 1 else None


def _without_rough(rates: pd.DataFrame) -> pd.DataFrame:
    """Remove the intervals of too few blocks, and add the number of further blocks for an interval."""
    lacking = (ENOUGH - rates.pop(_BLOCKS)).clip(lower=0).astype("Int64")
    return rates.assign(**{end: rates[end].mask(lacking > 0) for end in _ENDS}, interval_needs=lacking)


def _rated(rows: pd.DataFrame, by: list[str], groups: str | None) -> pd.DataFrame:
    """The rates, and their numbers of blocks."""
    rates = summarize(rows, by=by, groups=groups)
    if groups is None:
        return rates.assign(**{_BLOCKS: rates["utterances_scored"]})
    scored = rows[rows["errors"].notna()]
    blocks = scored.groupby([*by, "unit"], observed=True)[groups].nunique().rename(_BLOCKS).reset_index()
    return rates.merge(blocks, on=[*by, "unit"], how="left").fillna({_BLOCKS: 0})


def _ranking(
    rows: pd.DataFrame, rates: pd.DataFrame, by: list[str], groups: str | None
) -> dict[str, pd.Series[float]]:
    """The rate for the ranking of voices, with its interval."""
    names = ("ranking_rate", "ranking_rate_low", "ranking_rate_high")
    figures = {name: rates[name.replace("ranking", "error")].copy() for name in names}
    figures["ranked_by"] = rates["error_rate"].notna().map({True: "error_rate", False: None}).astype("string")
    for rate, (errors, length) in reversed(_RANKED.items()):
        if rate not in rates.columns or not rates[rate].notna().any():
            continue
        counted_rows = rows[rows[[rate, errors]].notna().all(axis=1)]
        # The same bootstrap, of other errors and lengths.
        counted = _rated(
            counted_rows.assign(errors=counted_rows[errors], reference_length=counted_rows[length]),
            by,
            groups,
        )
        ranked = rates[by].merge(_without_rough(counted)[[*by, "error_rate", *_ENDS]], on=by, how="left")
        is_ranked = ranked["error_rate"].notna()
        for name in names:
            figures[name] = figures[name].mask(is_ranked, ranked[name.replace("ranking", "error")])
        figures["ranked_by"] = figures["ranked_by"].mask(is_ranked, rate)
    return figures


def _common(rows: pd.DataFrame, by: list[str], items: str | None) -> pd.DataFrame:
    """The rate of each line on the items that all lines of its language have, where some lack an item."""
    import pandas as pd

    columns = [*by, "common_rate", "common_utterances"]
    empty = pd.DataFrame(columns=columns).astype({name: rows[name].dtype for name in by})
    empty = empty.astype({"common_rate": "Float64", "common_utterances": "Int64"})
    scored = rows[rows["errors"].notna()]
    if items is None or not len(scored):
        return empty
    errors, lengths = scored["errors"].astype("Float64"), scored["reference_length"].astype("Float64")
    for rate, (name, length) in reversed(_RANKED.items()):
        if rate in scored.columns:
            errors = scored[name].astype("Float64").where(scored[rate].notna(), errors)
            lengths = scored[length].astype("Float64").where(scored[rate].notna(), lengths)
    scored = scored.assign(errors=errors, reference_length=lengths)
    tables = []
    for _, group in scored.groupby(by[-1], observed=True, sort=False):
        lines = group.groupby(by, observed=True)
        line = lines.ngroup()
        shared = line.groupby(group[items]).nunique() == line.nunique()
        if shared.all() or not shared.any():
            continue
        on_shared = group[group[items].isin(shared.index[shared])].groupby(by, observed=True)
        sums = on_shared[["errors", "reference_length"]].sum()
        rates = sums["errors"] / sums["reference_length"].clip(lower=1)
        tables.append(
            pd.DataFrame({"common_rate": rates, "common_utterances": on_shared.size()}).reset_index()
        )
    return pd.concat(tables, ignore_index=True)[columns] if tables else empty
