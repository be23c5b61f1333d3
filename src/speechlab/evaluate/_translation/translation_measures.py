"""Measures of translations: against references, by back-translation, and without either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._speech.scorers import SCORE_PREFIX, Scorer, add_scores
from speechlab.evaluate._speech.speed import summarize_calls
from speechlab.metrics import glossary_terms, score_translations
from speechlab.text import loops, normalizer

if TYPE_CHECKING:
    from speechlab.store import Store

_NO_REFERENCE = "speechlab: no reference"
_TERMS = ("terms_expected", "terms_found")
# Counts of the summary, and the columns of rows that they count.
_FLAGS = {"empties": "empty", "copies": "copied", "loops": "loop"}


class Columns(NamedTuple):
    """Columns of a table of texts; ``reference`` is empty without references."""

    text: str
    reference: str
    source_lang: str
    target_lang: str


def to_glossary(glossary: object) -> dict[str, Any]:
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


def measure_translations(rows: pd.DataFrame, columns: Columns, glossary: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows with scores, length ratios, flags for copies and loops, and counts of kept terms."""
    types = {"chrf": "float64", "length_ratio": "float64"} | dict.fromkeys(_FLAGS.values(), "boolean")
    types |= dict.fromkeys(_TERMS, "Int64") if glossary else {}
    measures = [_measure_row(row, columns, glossary) for row in rows.to_dict("records")]
    table = pd.DataFrame(measures, columns=list(types), index=rows.index, dtype=object).astype(types)
    return rows.assign(**{name: table[name] for name in types})


def _measure_row(row: Mapping[Any, Any], columns: Columns, glossary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the measures of one row; none if a text is missing."""
    source, translated = row[columns.text], row["translation"]
    if not isinstance(translated, str) or not isinstance(source, str):
        return {}
    expected = row[columns.reference] if columns.reference else None
    reference = expected if isinstance(expected, str) else ""
    normalize = normalizer("basic")
    measures: dict[str, Any] = {
        "chrf": _compute_chrf(expected, translated, row[columns.target_lang]),
        "length_ratio": len(translated.strip()) / len(source.strip()) if source.strip() else None,
        "empty": bool(source.strip()) and not translated.strip(),
        # A reference that is the source, such as a name, makes no copy of it.
        "copied": normalize(source) == normalize(translated) != normalize(reference)
        and any(map(str.isalpha, source)),
        "loop": loops(translated, reference) and not loops(source),
    }
    if glossary:
        languages = {"source_language": row[columns.source_lang], "language": row[columns.target_lang]}
        terms = _count_glossary_terms([source], [translated], glossary, languages)
        measures |= {"terms_expected": terms["expected"].sum(), "terms_found": terms["found"].sum()}
    return measures


def add_translation_scores(
    table: pd.DataFrame, scorers: Mapping[str, Scorer], columns: Columns, store: Store | str | None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the table with a column for each scorer of the user, and notes on those that failed."""
    rows = table if columns.reference else table.assign(**{_NO_REFERENCE: ""})
    texts = (columns.text, "translation", columns.reference or _NO_REFERENCE)
    scored, notes = add_scores(rows, scorers, texts, store)
    return scored.drop(columns=_NO_REFERENCE, errors="ignore"), notes


def add_back_translations(rows: pd.DataFrame, back: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Return rows with back-translations and their chrF against the source, which is missing for copied texts."""
    returned = back.reindex(index=range(len(rows)), columns=["back_translation", "back_error"])
    joined = rows.assign(**{str(name): returned[name].to_numpy() for name in returned})
    scores = [
        None
        if row["copied"] is True
        else _compute_chrf(row[columns.text], row["back_translation"], row[columns.source_lang])
        for row in joined.to_dict("records")
    ]
    return joined.assign(back_chrf=pd.array(scores, dtype="float64"))


def rescore_translations(table: pd.DataFrame, columns: Columns, terms: Mapping[str, Any]) -> pd.DataFrame:
    """Score translations, and translations back where there are any."""
    rows = measure_translations(table, columns, terms)
    if "back_translation" not in rows.columns:
        return rows
    return add_back_translations(rows.reset_index(drop=True), rows.reset_index(drop=True), columns)


def summarize_translations(table: pd.DataFrame, columns: Columns, speed: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each direction, and for each system if there are several."""
    text, reference, *_ = columns
    keys = _list_key_columns(table, columns)
    roles = ["system", "source_lang", "target_lang"]
    timed = summarize_calls(speed, roles).set_index(roles).to_dict("index") if len(speed) else {}
    on_common = _score_common_texts(table, columns)
    rows: list[dict[Any, Any]] = []
    for values, group in table.groupby(keys, observed=True, sort=False):
        texts = group[group["translation"].notna()]
        *system, source, target = map(str, values)
        score, signature = score_corpus(texts.dropna(subset=["chrf"]), reference, "translation", target)
        figures: dict[str, Any] = {"utterances": len(texts), "texts": len(group), "chrf": score}
        if on_common:
            shared = on_common.get((*system, source, target), (None, None))
            figures |= dict(zip(("common_chrf", "common_utterances"), shared, strict=True))
        if "back_chrf" in texts.columns:
            returned = texts.dropna(subset=["back_chrf"])
            figures["back_chrf"], back_signature = score_corpus(returned, text, "back_translation", source)
            signature = signature or back_signature
        figures["length_ratio"] = texts["length_ratio"].median()
        figures |= {name: int(texts[flag].sum()) for name, flag in _FLAGS.items() if flag in texts}
        if set(_TERMS) <= set(texts.columns):
            expected, matched = (int(texts[name].sum()) for name in _TERMS)
            share = matched / expected if expected else None
            figures |= {"terms_expected": expected, "terms_found": matched, "terms_kept": share}
        figures |= {name: texts[name].mean() for name in texts.columns if str(name).startswith(SCORE_PREFIX)}
        figures["processing_s"] = texts["processing_s"].dropna().median()
        calls: dict[Any, Any] = timed.get((system[0] if system else "", source, target), {})
        rows.append({**dict(zip(keys, values, strict=True)), **figures, **calls, "signature": signature})
    names = dict.fromkeys([*keys, "utterances", "texts", "chrf", *(name for row in rows for name in row)])
    summary = pd.DataFrame(rows, columns=[*(name for name in names if name != "signature"), "signature"])
    numbers = [name for name in summary.columns if name not in {*keys, "signature"}]
    unknown = [
        name for name in numbers if summary[name].dtype == object
    ]  # medians without calls are pandas.NA
    return summary.astype(dict.fromkeys(unknown, "Float64")).astype(dict.fromkeys(unknown, "float64"))


def _list_key_columns(table: pd.DataFrame, columns: Columns) -> list[str]:
    """Return the columns that name a line of a summary: the direction, and the system if there are several."""
    return [*(["system"] if "system" in table.columns else []), columns.source_lang, columns.target_lang]


def _score_common_texts(table: pd.DataFrame, columns: Columns) -> dict[tuple[str, ...], tuple[Any, int]]:
    """The score of each system on the texts that all of them have, and their number, where some lack a text."""
    text, reference, *directions = columns
    expected, output, score = (text, "back_translation", "back_chrf")
    if reference:
        expected, output, score = reference, "translation", "chrf"
    if "system" not in table.columns or score not in table.columns:
        return {}
    placed = table.assign(_place=table.groupby("system", sort=False).cumcount(), _has=table[score].notna())
    scores: dict[tuple[str, ...], tuple[Any, int]] = {}
    for (source, target), group in placed.groupby(directions, sort=False):
        shared = group.groupby("_place")["_has"].all()
        if shared.all() or not shared.any():
            continue
        shared_rows = group[group["_place"].isin(shared.index[shared])]
        for name, texts in shared_rows.groupby("system", sort=False):
            chrf, _ = score_corpus(texts, expected, output, str(target if reference else source))
            scores[str(name), str(source), str(target)] = chrf, len(texts)
    return scores


def count_glossary_terms(table: pd.DataFrame, columns: Columns, glossary: Mapping[str, Any]) -> pd.DataFrame:
    """Return the counts of kept terms: the table of :func:`speechlab.metrics.glossary_terms` for each direction."""
    keys = _list_key_columns(table, columns)
    translated = table[table["translation"].notna()]
    tables = []
    for values, group in translated.groupby(keys, observed=True, sort=False) if glossary else ():
        labels = dict(zip(keys, map(str, values), strict=True))
        languages = {"source_language": values[-2], "language": values[-1]}
        terms = _count_glossary_terms(
            group[columns.text].tolist(), group["translation"].tolist(), glossary, languages
        )
        expected_terms = terms[terms["expected"] > 0].drop(columns="missed_in")
        tables.append(expected_terms.assign(**labels)[[*keys, *expected_terms.columns]])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _count_glossary_terms(
    sources: list[str], outputs: list[str], glossary: Mapping[str, Any], languages: Mapping[str, object]
) -> pd.DataFrame:
    codes = {name: str(code) for name, code in languages.items()}
    return glossary_terms(None, outputs, glossary, sources=sources, **codes)


def _compute_chrf(reference: object, output: object, language: object) -> float | None:
    """Return the score of one text; None if it or its reference is missing."""
    if not isinstance(reference, str) or not isinstance(output, str):
        return None
    return score_translations([reference], [output], language=str(language), metrics=["chrf"]).chrf


def score_corpus(
    texts: pd.DataFrame, reference: str, output: str, language: str
) -> tuple[float | None, str | None]:
    """Return the score of all texts together and its signature; None without a text."""
    if not len(texts):
        return None, None
    references, outputs = texts[reference].tolist(), texts[output].tolist()
    score = score_translations(references, outputs, language=language, metrics=["chrf"])
    return score.chrf, score.signatures["chrf"]
