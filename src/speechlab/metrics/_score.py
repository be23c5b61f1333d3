"""Scores of tables: one row for each utterance, then one for each group."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment import Alignment, align_as, unmarked
from speechlab.metrics._bootstrap import ratio_interval, sum_blocks
from speechlab.metrics._counting import count_edits
from speechlab.metrics._japanese import DifferenceClass, compare_japanese
from speechlab.metrics._units import Preparation, auto_unit, check_counts, prepare
from speechlab.text import language_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from speechlab.metrics._units import Counts, Normalize

__all__ = ["score", "summarize"]

_COUNTS = ("hits", "substitutions", "deletions", "insertions")
_RATES = {
    "wer": "word",
    "cer": "char",
    "reading_cer": "reading",
    "pinyin_error_rate": "pinyin",
    "toneless_error_rate": "toneless",
}
_KINDS: tuple[DifferenceClass, ...] = ("notation", "homophone", "recognition")
_COLUMNS: dict[str, str] = {
    "unit": "category",
    "normalizer": "category",
    "counts": "category",
    "reference_normalized": "string",
    "hypothesis_normalized": "string",
    "error_rate": "Float64",
    "errors": "Int64",
    **dict.fromkeys(_COUNTS, "Int64"),
    "reference_length": "Int64",
    **{f"{kind}_{part}": "Int64" for kind in _RATES.values() for part in ("errors", "length")},
    **dict.fromkeys(_RATES, "Float64"),
    "tolerant_cer": "Float64",
    "tolerant_errors": "Int64",
    **{f"{kind}_differences": "Int64" for kind in _KINDS},
    "alignment": "string",
}
"""Columns that :func:`score` adds, and their types."""


def score(
    frame: pd.DataFrame,
    reference: str = "text",
    hypothesis: str = "hypothesis",
    language: str = "language",
    unit: str = "auto",
    normalize: Normalize = "auto",
    counts: Counts = "levenshtein",
) -> pd.DataFrame:
    """Score each row of a table.

    Args:
        frame: One row for each utterance.
        reference: Column with what was said.
        hypothesis: Column with what was recognised.
        language: Column with the language of each row; or, if there is no such column, the language of all rows.
        unit: ``"auto"`` (characters for Japanese, Chinese and other languages without spaces, words for the rest),
            or a unit of :func:`speechlab.metrics.error_rate`.
        normalize: As for :func:`speechlab.metrics.error_rate`.
        counts: As for :func:`speechlab.metrics.error_rate`. In a transcript with sclite's markings, characters are
            counted on the alternatives that the words took.

    Returns:
        A new table: same index, same order, the columns of ``frame``, and these (columns of ``frame`` with such a
        name are replaced):

        - ``unit``, ``normalizer``, ``counts``: what was counted, the signature of the normaliser, and the way of
          counting.
        - ``reference_normalized``, ``hypothesis_normalized``: the texts that were compared.
        - ``error_rate`` (fraction), ``errors``, ``hits``, ``substitutions``, ``deletions``, ``insertions``,
          ``reference_length`` (tokens), all in ``unit``.
        - ``wer``, ``cer``, ``reading_cer`` (fractions), and ``word_errors``, ``word_length``, ``char_errors``,
          ``char_length``, ``reading_errors``, ``reading_length`` (tokens) behind them: words and characters for
          languages with spaces, characters for the others, readings for Japanese if the extra ``ja`` is installed.
        - ``pinyin_error_rate``, ``toneless_error_rate`` and the same two columns behind each: syllables of Chinese,
          with and without tone, if the package pypinyin is installed.
        - ``tolerant_cer`` and ``tolerant_errors``: characters of Japanese with spellings forgiven, over
          ``char_length``; ``notation_differences``, ``homophone_differences``, ``recognition_differences``: how many
          of each (see :func:`compare_japanese`).
        - ``alignment``: the difference as text, ``[-reference-]{+hypothesis+}``.

        A row without reference, hypothesis or language has missing scores, and stops nothing.

    Raises:
        InvalidRequestError: A column is missing, a language or a way of counting does not exist, or markings of
            sclite cannot be understood.
    """
    check_counts(counts)
    _require_columns(frame, reference, hypothesis)
    languages = _languages(frame, language)
    plans = {
        code: _Plan(code, unit, normalize, counts) for code in dict.fromkeys(languages) if code is not None
    }
    rows = [
        plans[code].row(said, heard) if code is not None else {}
        for said, heard, code in zip(frame[reference], frame[hypothesis], languages, strict=True)
    ]
    return _attach(frame, rows)


class _Plan:
    """How the rows of one language are scored."""

    def __init__(self, language: str, unit: str, normalize: Normalize, counts: Counts) -> None:
        self.counts = counts
        self.main = prepare(auto_unit(language) if unit == "auto" else unit, language, normalize)
        kinds = [self.main.unit]
        if self.main.unit == "word":
            kinds.append("char")
        if language == "ja" and find_spec("pyopenjtalk") is not None:
            kinds.extend(kind for kind in ("char", "reading") if kind not in kinds)
        if language == "zh" and find_spec("pypinyin") is not None:
            kinds.extend(kind for kind in ("char", "pinyin", "toneless") if kind not in kinds)
        # The classes are defined on texts in the normal form for Japanese.
        self.classes = "reading" in kinds and normalize == "auto"
        self.kinds: dict[str, Preparation] = {kind: prepare(kind, language, normalize) for kind in kinds}

    def row(self, said: object, heard: object) -> dict[str, Any]:
        """All new columns of one row that have a value."""
        values: dict[str, Any] = {
            "unit": self.main.unit,
            "normalizer": self.main.normalizer,
            "counts": self.counts,
        }
        if not isinstance(said, str) or not isinstance(heard, str):
            return values
        one, other = self.main.normalize(said), self.main.normalize(heard)
        aligned = self._align(self.main, (said, heard), (one, other))
        if aligned.places is not None:
            one, other = unmarked(aligned)
        values["reference_normalized"], values["hypothesis_normalized"] = one, other
        for column, kind in _RATES.items():
            if kind in self.kinds:
                way = self.kinds[kind]
                if kind == self.main.unit:
                    alignment = aligned
                elif way.normalizer != self.main.normalizer:
                    tokens = way.tokens(said), way.tokens(heard)
                    alignment = Alignment(*tokens, way.separator, counts=self.counts)
                else:
                    alignment = self._align(way, (one, other), (one, other))
                self._fill(values, column, kind, alignment)
        if self.classes:
            compared = compare_japanese(said, heard)
            values["tolerant_errors"] = compared.tolerant_errors
            values["tolerant_cer"] = compared.tolerant_errors / max(values["char_length"], 1)
            values |= {f"{kind}_differences": compared.count(kind) for kind in _KINDS}
        return values

    def _align(self, way: Preparation, texts: tuple[str, str], normalized: tuple[str, str]) -> Alignment:
        one, other = normalized
        return align_as(self.counts, texts, way, (way.split(one), way.split(other)))

    def _fill(self, values: dict[str, Any], column: str, kind: str, alignment: Alignment) -> None:
        counts = (
            alignment.tally
            if self.counts != "levenshtein"
            else count_edits(alignment.reference, alignment.hypothesis)
        )
        errors, length = sum(counts[1:]), sum(counts[:3])
        rate = errors / max(length, 1)
        values |= {column: rate, f"{kind}_errors": errors, f"{kind}_length": length}
        if kind == self.main.unit:
            values |= dict(zip(_COUNTS, counts, strict=True))
            values |= {"error_rate": rate, "errors": errors, "reference_length": length}
            values["alignment"] = alignment.text


def _attach(frame: pd.DataFrame, rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    columns = {}
    for name, kind in _COLUMNS.items():
        values = [row.get(name) for row in rows]
        if kind == "string":
            # Half surrogate pairs, which Arrow cannot hold, become question marks.
            values = [value.encode("utf-8", "replace").decode() if value else value for value in values]
        columns[name] = (
            pd.Categorical(values)
            if kind == "category"
            else pd.array([pd.NA if value is None else value for value in values], dtype=kind)  # type: ignore[call-overload]
        )
    # Arrays without an index go by position: the index may hold a label twice.
    added = pd.DataFrame(columns, index=frame.index)
    kept = frame.drop(columns=[name for name in _COLUMNS if name in frame.columns])
    return pd.concat([kept, added], axis=1)


def _require_columns(frame: pd.DataFrame, *names: str) -> None:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        have = ", ".join(map(repr, frame.columns)) or "none"
        message = f"the table has no column {missing[0]!r}; it has {have}. Name the right one, as in reference='text'"
        raise InvalidRequestError(message, parameter=missing[0])


def _languages(frame: pd.DataFrame, language: str) -> list[str | None]:
    if language not in frame.columns:
        try:
            return [language_code(language)] * len(frame)
        except InvalidRequestError:
            message = (
                f"the table has no column {language!r}, and {language!r} is no language either; name the column "
                "(language='lang') or the language of all rows (language='ja')"
            )
            raise InvalidRequestError(message, parameter="language") from None
    codes = {value: language_code(value) for value in frame[language].dropna().unique()}
    return [codes.get(value) if isinstance(value, str) else None for value in frame[language]]


def summarize(
    scored: pd.DataFrame,
    by: str | Sequence[str] = (),
    level: float = 0.95,
    n: int = 2_000,
    seed: int = 0,
    groups: str | None = None,
) -> pd.DataFrame:
    """Corpus rates of groups of scored rows.

    Args:
        scored: What :func:`score` returned.
        by: Columns to group by, such as ``["voice"]``; none for all rows together. Units are never mixed: there is
            one row for each group and unit.
        level: Confidence level of the intervals.
        n: Bootstrap draws of each interval.
        seed: The same seed gives the same table.
        groups: Column of blocks, such as ``"speaker"``, that are drawn as wholes; None to draw utterances.

    Returns:
        A table, sorted by group, with the columns of ``by`` and ``unit``, ``n`` (rows), ``n_scored`` (rows with
        scores), ``empty_references``, ``error_rate``, ``error_rate_low``, ``error_rate_high``, ``mean_error_rate``
        (mean of the rows' rates), ``errors``, ``hits``, ``substitutions``, ``deletions``, ``insertions``,
        ``reference_length``, ``wer``, ``cer``, ``reading_cer``, ``tolerant_cer`` and the
        counts of Japanese differences. Rates are fractions, lengths tokens. Rates of
        groups without any score are missing.

    Raises:
        InvalidRequestError: A column is missing.
    """
    import pandas as pd

    keys = [by] if isinstance(by, str) else list(by)
    _require_columns(scored, *keys, "unit", "errors", "reference_length", *([groups] if groups else []))
    rows = []
    names = [*keys, *([] if "unit" in keys else ["unit"])]
    for values, part in scored.groupby(names, observed=True, sort=True, dropna=False):
        figures = _figures(part, level=level, n=n, seed=seed, groups=groups)
        rows.append(dict(zip(names, values, strict=True)) | figures)
    columns = [*names, *_SUMMARY]
    table = pd.DataFrame(rows, columns=columns)
    return table.astype(_SUMMARY | {"unit": "string"})


_SUMMARY: dict[str, str] = {
    "n": "Int64",
    "n_scored": "Int64",
    "empty_references": "Int64",
    "error_rate": "Float64",
    "error_rate_low": "Float64",
    "error_rate_high": "Float64",
    "mean_error_rate": "Float64",
    "errors": "Int64",
    **dict.fromkeys(_COUNTS, "Int64"),
    "reference_length": "Int64",
    **dict.fromkeys(_RATES, "Float64"),
    "tolerant_cer": "Float64",
    **{f"{kind}_differences": "Int64" for kind in _KINDS},
}


def _figures(part: pd.DataFrame, *, level: float, n: int, seed: int, groups: str | None) -> dict[str, Any]:
    done = part[part["errors"].notna()]
    errors = done["errors"].to_numpy(dtype=np.int64)
    lengths = done["reference_length"].to_numpy(dtype=np.int64)
    figures: dict[str, Any] = {
        "n": len(part),
        "n_scored": len(done),
        "empty_references": int((lengths == 0).sum()),
    }
    if not len(done):
        return figures
    blocks = sum_blocks(done[groups], errors, lengths) if groups else [errors, lengths]
    low, high = ratio_interval(*blocks, level=level, n=n, seed=seed)
    figures |= {
        "error_rate": errors.sum() / max(lengths.sum(), 1),
        "error_rate_low": low,
        "error_rate_high": high,
        "mean_error_rate": float((errors / np.maximum(lengths, 1)).mean()),
        "errors": errors.sum(),
        "reference_length": lengths.sum(),
    }
    figures |= {name: done[name].sum() for name in _COUNTS}
    for column, kind in _RATES.items():
        known = done[done[f"{kind}_errors"].notna()]
        if len(known):
            figures[column] = known[f"{kind}_errors"].sum() / max(int(known[f"{kind}_length"].sum()), 1)
    return figures | _japanese_figures(done)


def _japanese_figures(done: pd.DataFrame) -> dict[str, Any]:
    known = done[done["tolerant_errors"].notna()]
    if not len(known):
        return {}
    rate = known["tolerant_errors"].sum() / max(int(known["char_length"].sum()), 1)
    return {"tolerant_cer": rate} | {
        f"{kind}_differences": known[f"{kind}_differences"].sum() for kind in _KINDS
    }
