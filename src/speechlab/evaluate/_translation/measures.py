"""Measures of translations: against references, by back-translation, and without either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from speechlab.errors import InvalidRequestError
from speechlab.evaluate._speech.scorers import SCORE, Scorer, with_scores
from speechlab.evaluate._speech.speed import summary_of_calls
from speechlab.metrics import glossary_terms, score_translations
from speechlab.text import loops, normalizer

if TYPE_CHECKING:
    from speechlab.store import Store

_NO_REFERENCE = "speechlab: no reference"
_TERMS = ("terms_expected", "terms_found")
_FLAGS = {"copies": "copied", "loops": "loop"}
"""Counts of the summary, and the columns of rows that they count."""


class Columns(NamedTuple):
    """Columns of a table of texts; ``reference`` is empty without references."""

    text: str
    reference: str
    source_lang: str
    target_lang: str


def as_glossary(glossary: object) -> dict[str, Any]:
    """Return the source terms with their accepted translations; terms of a list must stay unchanged."""
    if isinstance(glossary, Mapping):
        return dict(glossary)
    if isinstance(glossary, str) or not isinstance(glossary, Sequence):
        message = (
            f"glossary is {glossary!r:.60}; give a list of terms that stay as they are, or a dict from source "
            "terms to what will do for them, as in {'会議室': ['meeting room']}"
        )
        raise InvalidRequestError(message, parameter="glossary")
    return {term: term for term in glossary}


def measured(rows: pd.DataFrame, columns: Columns, glossary: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows with scores, length ratios, flags for copies and loops, and counts of kept terms."""
    types = {"chrf": "float64", "length_ratio": "float64", "copied": "boolean", "loop": "boolean"}
    types |= dict.fromkeys(_TERMS, "Int64") if glossary else {}
    measures = [_measures(row, columns, glossary) for row in rows.to_dict("records")]
    table = pd.DataFrame(measures, columns=list(types), index=rows.index, dtype=object).astype(types)
    return rows.assign(**{name: table[name] for name in types})


def _measures(row: Mapping[Any, Any], columns: Columns, glossary: Mapping[str, Any]) -> dict[str, Any]:
    """The measures of one row; none if a text is missing."""
    source, translated = row[columns.text], row["translation"]
    if not isinstance(translated, str) or not isinstance(source, str):
        return {}
    expected = row[columns.reference] if columns.reference else None
    reference = expected if isinstance(expected, str) else ""
    normalize = normalizer("basic")
    measures: dict[str, Any] = {
        "chrf": _chrf([reference], [translated], row[columns.target_lang])
        if isinstance(expected, str)
        else None,
        "length_ratio": len(translated.strip()) / len(source.strip()),
        "copied": normalize(source) == normalize(translated) and any(map(str.isalpha, source)),
        "loop": loops(translated, reference) and not loops(source),
    }
    if glossary:
        options = {
            "source_language": str(row[columns.source_lang]),
            "language": str(row[columns.target_lang]),
        }
        terms = glossary_terms(None, [translated], glossary, sources=[source], **options)
        measures |= {"terms_expected": terms["expected"].sum(), "terms_found": terms["found"].sum()}
    return measures


def scored_translations(
    table: pd.DataFrame, scorers: Mapping[str, Scorer], columns: Columns, store: Store | str | None
) -> tuple[pd.DataFrame, list[str]]:
    """The table with a column for each scorer of the user, and notes on those that failed."""
    rows = table if columns.reference else table.assign(**{_NO_REFERENCE: ""})
    texts = (columns.text, "translation", columns.reference or _NO_REFERENCE)
    scored, notes = with_scores(rows, scorers, texts, store)
    return scored.drop(columns=_NO_REFERENCE, errors="ignore"), notes


def with_back(rows: pd.DataFrame, back: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Return rows with back-translations and their chrF against the source, which is missing for copied texts."""
    returned = back.reindex(range(len(rows)))
    joined = rows.assign(**{name: returned[name].to_numpy() for name in ("back_translation", "back_error")})
    scores = [
        _chrf([row[columns.text]], [row["back_translation"]], row[columns.source_lang])
        if isinstance(row["back_translation"], str) and row["copied"] is not True
        else None
        for row in joined.to_dict("records")
    ]
    return joined.assign(back_chrf=pd.array(scores, dtype="float64"))


def summarized(table: pd.DataFrame, columns: Columns, speed: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each direction, and for each system if there are several."""
    text, reference, source_lang, target_lang = columns
    keys = [*(["system"] if "system" in table.columns else []), source_lang, target_lang]
    roles = ["system", "source_lang", "target_lang"]
    timed = summary_of_calls(speed, roles).set_index(roles).to_dict("index") if len(speed) else {}
    on_common = _on_common_texts(table, columns)
    rows = []
    for values, group in table.groupby(keys, observed=True, sort=False):
        texts = group[group["translation"].notna()]
        source, target = values[-2:]
        scored = texts.dropna(subset=["chrf"])
        figures: dict[str, Any] = {"utterances": len(texts), "texts": len(group), "chrf": None}
        if on_common:
            common_values = on_common.get(tuple(map(str, values)), (None, None))
            figures |= dict(zip(("common_chrf", "common_utterances"), common_values, strict=True))
        figures["signature"] = None
        if reference and len(scored):
            figures["chrf"], figures["signature"] = _corpus(
                scored[reference].tolist(), scored["translation"].tolist(), str(target)
            )
        if "back_chrf" in texts.columns:
            returned = texts.dropna(subset=["back_chrf"])
            score, signature = None, None
            if len(returned):
                score, signature = _corpus(
                    returned[text].tolist(), returned["back_translation"].tolist(), str(source)
                )
            figures |= {"back_chrf": score, "signature": figures["signature"] or signature}
        figures |= {"length_ratio": texts["length_ratio"].median()}
        figures |= {name: int(texts[flag].sum()) for name, flag in _FLAGS.items()}
        if set(_TERMS) <= set(texts.columns):
            expected, terms_found = (int(texts[name].sum()) for name in _TERMS)
            figures |= {"terms_expected": expected, "terms_found": terms_found}
            figures["terms_kept"] = terms_found / expected if expected else None
        figures |= {name: texts[name].mean() for name in texts.columns if str(name).startswith(SCORE)}
        figures["processing_s"] = texts["processing_s"].dropna().median()
        system = str(values[0]) if len(keys) == 3 else ""
        calls = timed.get((system, str(source), str(target)), {})
        figures |= {str(name): value for name, value in calls.items()}
        rows.append(dict(zip(keys, values, strict=True)) | figures)
    names = list(
        dict.fromkeys([*keys, "utterances", "texts", "chrf", *(name for row in rows for name in row)])
    )
    summary = pd.DataFrame(rows, columns=[*(name for name in names if name != "signature"), "signature"])
    numbers = [name for name in summary.columns if name not in {*keys, "signature"}]
    kinds = {name: "float64" for name in numbers if summary[name].dtype == object}
    return summary.astype(dict.fromkeys(kinds, "Float64")).astype(
        kinds
    )  # medians without calls are pandas.NA


def _on_common_texts(table: pd.DataFrame, columns: Columns) -> dict[tuple[str, ...], tuple[float, int]]:
    """The score of each system on the texts that all of them have, and their number, where some lack a text."""
    text, reference, *directions = columns
    expected, output, score = (text, "back_translation", "back_chrf")
    if reference:
        expected, output, score = reference, "translation", "chrf"
    if "system" not in table.columns or score not in table.columns:
        return {}
    placed = table.assign(_place=table.groupby("system", sort=False).cumcount(), _has=table[score].notna())
    scores: dict[tuple[str, ...], tuple[float, int]] = {}
    for (source, target), group in placed.groupby(directions, sort=False):
        shared = group.groupby("_place")["_has"].all()
        if shared.all() or not shared.any():
            continue
        shared_rows = group[group["_place"].isin(shared.index[shared])]
        for name, texts in shared_rows.groupby("system", sort=False):
            language = str(target if reference else source)
            chrf, _ = _corpus(texts[expected].tolist(), texts[output].tolist(), language)
            scores[str(name), str(source), str(target)] = chrf, len(texts)
    return scores


def glossary_counts(table: pd.DataFrame, columns: Columns, glossary: Mapping[str, Any]) -> pd.DataFrame:
    """Return the counts of kept terms: the table of :func:`speechlab.metrics.glossary_terms` for each direction."""
    text, _, source_lang, target_lang = columns
    keys = [*(["system"] if "system" in table.columns else []), source_lang, target_lang]
    tables = []
    for values, group in table[table["translation"].notna()].groupby(keys, observed=True, sort=False):
        terms = glossary_terms(
            None,
            group["translation"].tolist(),
            glossary,
            sources=group[text].tolist(),
            source_language=str(values[-2]),
            language=str(values[-1]),
        )
        expected_terms = terms[terms["expected"] > 0].drop(columns="missed_in")
        tables.append(
            expected_terms.assign(**{key: str(value) for key, value in zip(keys, values, strict=True)})[
                [*keys, *expected_terms.columns]
            ]
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _chrf(references: list[Any], outputs: list[str], language: object) -> float:
    return score_translations(references, outputs, language=str(language), metrics=["chrf"]).chrf


def _corpus(references: list[str], outputs: list[str], language: str) -> tuple[float, str]:
    score = score_translations(references, outputs, language=language, metrics=["chrf"])
    return score.chrf, score.signatures["chrf"]
