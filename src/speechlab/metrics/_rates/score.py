"""Scores of tables: one row for each utterance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from speechlab._arguments import has_column, is_dask_frame, is_missing, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.pairs import Pairs
from speechlab.metrics._alignment.units import (
    Normalize,
    Preparation,
    Unit,
    Variants,
    build_preparation,
    choose_unit,
)
from speechlab.metrics._columns import COUNTS, add_columns
from speechlab.metrics._differences.compare import compare_normalized, has_difference_classes
from speechlab.metrics._differences.differences import CLASSES, DifferenceClass, TextComparison
from speechlab.metrics._inputs import to_text_table
from speechlab.text import language_code

if TYPE_CHECKING:
    import pandas as pd

_Columns: TypeAlias = dict[str, list[Any]]

RATES = {
    "wer": "word",
    "cer": "char",
    "reading_cer": "reading",
    "pinyin_error_rate": "pinyin",
    "toneless_error_rate": "toneless",
}
_UNCERTAIN = frozenset({"reading", "pinyin"})
KINDS: tuple[DifferenceClass, ...] = get_args(DifferenceClass)
# Rates that forgive notation, and the column of their lengths.
TOLERANT = {"tolerant_wer": "word_length", "tolerant_cer": "char_length"}
_COMMON_COLUMNS: dict[str, str] = {
    "unit": "category",
    "signature": "category",
    "reference_normalized": "string",
    "hypothesis_normalized": "string",
    "error_rate": "Float64",
    "errors": "Int64",
    **dict.fromkeys(COUNTS, "Int64"),
    "reference_length": "Int64",
}
_LANGUAGE_COLUMNS: dict[str, str] = {
    **{f"{kind}_{figure}": "Int64" for kind in RATES.values() for figure in ("errors", "length")},
    "uncertain_reading_errors": "Int64",
    **dict.fromkeys(RATES, "Float64"),
    **dict.fromkeys(TOLERANT, "Float64"),
    "tolerant_errors": "Int64",
    **{f"{kind}_differences": "Int64" for kind in KINDS},
}
_FINAL_COLUMNS: dict[str, str] = {"alignment": "string", "score_error": "string"}
# Columns that :func:`score` adds, and their types.
SCORE_COLUMNS = {**_COMMON_COLUMNS, **_LANGUAGE_COLUMNS, **_FINAL_COLUMNS}


def score(
    references: pd.DataFrame | Iterable[str | None],
    hypotheses: Iterable[str | None] | None = None,
    *,
    reference: str = "text",
    hypothesis: str = "hypothesis",
    language: str = "language",
    unit: str = "auto",
    normalize: Normalize = "auto",
    variants: Variants = (),
    merge_compounds: bool = False,
) -> pd.DataFrame:
    """Score each utterance of a table, or of two lists.

    Args:
        references: A table with one row for each utterance, of pandas or Dask; or a list or Series of references.
        hypotheses: Hypotheses, one for each reference; None for a table. Two Series must have the same index.
        reference: Column of references.
        hypothesis: Column of hypotheses.
        language: Column of languages; or, if there is no such column, the language of all rows.
        unit: ``"auto"`` (characters for Japanese, Chinese and other languages without spaces, words for the rest),
            or a unit of :func:`speechlab.metrics.error_rate`.
        normalize: As for :func:`speechlab.metrics.error_rate`.
        variants: As for :func:`speechlab.metrics.error_rate`.
        merge_compounds: As for :func:`speechlab.metrics.error_rate`; it concerns counts by words alone.

    Returns:
        A new table, of Dask if the given one is, with the same index and order, the columns of the table (for lists,
        two columns with the names above), and the following columns, which replace columns of the same name. Always:

        - ``unit``, ``signature``: the unit of counting, and one line with the unit, the normalizer and the versions.
        - ``reference_normalized``, ``hypothesis_normalized``: the compared texts.
        - ``error_rate`` (fraction), ``errors``, ``hits``, ``substitutions``, ``deletions``, ``insertions``,
          ``reference_length`` (tokens), all in ``unit``.
        - ``alignment``: the difference as text, ``[-reference-]{+hypothesis+}``.
        - ``score_error``: the reason for a row without scores: its language does not exist or does not have the unit,
          or a cell is not a text. Such a row does not stop the others. A row without
          reference, hypothesis or language has missing scores, but no error.

        And for the languages of the table:

        - ``wer``, ``cer``, ``reading_cer`` (fractions), and ``word_errors``, ``word_length``, ``char_errors``,
          ``char_length``, ``reading_errors``, ``reading_length`` (their counts in tokens): words and characters for
          languages with spaces, characters for the others, readings for Japanese if the extra ``ja`` is installed.
        - ``pinyin_error_rate``, ``toneless_error_rate`` (fractions), and ``pinyin_errors``, ``pinyin_length``,
          ``toneless_errors``, ``toneless_length``: syllables of Chinese, with and without tone, if the package
          pypinyin is installed.
        - ``uncertain_reading_errors`` of Japanese and Chinese: kana or syllables with tone that differ only because
          the dictionary reads one side in another way, although both can be read alike (気温/起温). The errors and
          rates of readings and syllables are without them.
        - ``tolerant_wer`` of English, ``tolerant_cer`` of Japanese and Chinese, and ``tolerant_errors``: errors
          without differences of notation, over ``word_length`` or ``char_length``.
        - ``notation_differences``, ``homophone_differences``, ``tone_differences`` (Chinese),
          ``recognition_differences`` and ``filler_differences`` (English, Chinese): the number of differences of each
          class (see :func:`classify_differences`).

    Raises:
        InvalidRequestError: A column is missing or occurs twice; two Series have different indexes; the unit,
            normalizer or language of all rows does not exist; or this language does not have the
            unit.

    Example:
        >>> score(["good morning"], ["good mourning"], language="en")["alignment"][0]
        'good [-morning-]{+mourning+}'
    """
    variants = [group if isinstance(group, str) else tuple(group) for group in variants]
    build_preparation(
        "char" if str(unit) == "auto" else unit, None, normalize, variants, merge_compounds=merge_compounds
    )
    columns = (reference, hypothesis, language)
    how = {"normalize": normalize, "variants": variants, "merge_compounds": merge_compounds}
    if is_dask_frame(references):
        lazy: Any = references
        of_rows = has_column(lazy._meta, language, "language")  # noqa: SLF001 - as Dask documents for extensions
        tags = lazy[language].dropna().unique().compute().tolist() if of_rows else [language]

        def score_part(part: pd.DataFrame) -> pd.DataFrame:
            # Each partition with the columns of all languages; their categories differ.
            rows = _score_table(part, sorted(map(str, tags)), columns, unit, **how)
            return rows.astype({"unit": "string", "signature": "string"})

        table: pd.DataFrame = lazy.map_partitions(
            score_part,
            meta=score_part(lazy._meta),  # noqa: SLF001 - as above
            enforce_metadata=False,
        )
        return table
    return _score_table(
        to_text_table(references, hypotheses, reference, hypothesis), (), columns, unit, **how
    )


def _score_table(
    frame: pd.DataFrame, tags: Iterable[str], columns: Sequence[str], unit: str, **ways: Any
) -> pd.DataFrame:
    """Return the scores of a table, with the columns of further languages."""
    reference, hypothesis, language = columns
    hint = "Name the right one, as in reference='text'"
    frame = require_columns(frame, reference, hypothesis, argument="references", hint=hint)
    frame = require_columns(frame, *dict.fromkeys(frame.columns), argument="references")
    languages = _list_languages(frame, language)
    automatic = isinstance(ways["normalize"], str) and ways["normalize"] == "auto"
    scorer_of = cache(
        partial(_Scorer, unit=unit, prepared=partial(build_preparation, **ways), automatic=automatic)
    )
    if not has_column(frame, language, "language"):
        scorer_of(language)  # an error of all rows is an error of the call
        tags = [*tags, language]
    texts = frame[reference].tolist(), frame[hypothesis].tolist()
    scores = _score_rows(*texts, languages, tags, scorer_of)
    types = {
        name: kind for name, kind in SCORE_COLUMNS.items() if name not in _LANGUAGE_COLUMNS or name in scores
    }
    return add_columns(frame, scores, types)


def _score_rows(
    said: Sequence[Any],
    recognized: Sequence[Any],
    languages: Sequence[object],
    further: Iterable[str],
    scorer_of: Callable[[str], _Scorer],
) -> _Columns:
    """Return all new columns that a language of the rows, or a further one, can have."""
    columns: _Columns = {name: [None] * len(said) for name in (*_COMMON_COLUMNS, *_FINAL_COLUMNS)}
    rows_of: dict[str, list[int]] = {tag: [] for tag in further}
    for row, tag in enumerate(languages):
        if isinstance(tag, str):
            rows_of.setdefault(tag, []).append(row)
        elif not is_missing(tag):
            message = f"the language is {tag!r:.60} ({type(tag).__name__}), not a code such as 'ja'"
            columns["score_error"][row] = message
    for tag, rows in rows_of.items():
        try:
            scorer = scorer_of(tag)
        except InvalidRequestError as error:
            for row in rows:
                columns["score_error"][row] = str(error)
            continue
        columns |= {name: [None] * len(said) for name in scorer.names if name not in columns}
        rows_with_texts = []
        for row in rows:
            columns["unit"][row], columns["signature"][row] = scorer.main.unit, scorer.signature
            if isinstance(said[row], str) and isinstance(recognized[row], str):
                rows_with_texts.append(row)
            for name, cell in (("hypothesis", recognized[row]), ("reference", said[row])):
                if not isinstance(cell, str) and not is_missing(cell):
                    message = f"the {name} is {cell!r:.60} ({type(cell).__name__}), not a text"
                    columns["score_error"][row] = message
        scorer.score_into_columns(said, recognized, rows_with_texts, columns)
    return columns


class _Scorer:
    """The scorer of rows in one language."""

    def __init__(self, tag: str, unit: str, prepared: Callable[..., Preparation], automatic: bool) -> None:
        self.language = language = language_code(tag)
        self.main = prepared(choose_unit(language) if unit == "auto" else unit, language)
        kinds = [self.main.unit]
        if self.main.unit == "word":
            kinds.append("char")
        if language == "ja" and find_spec("pyopenjtalk") is not None:
            kinds.extend(kind for kind in ("char", "reading") if kind not in kinds)
        if language == "zh" and find_spec("pypinyin") is not None:
            kinds.extend(kind for kind in ("char", "pinyin", "toneless") if kind not in kinds)
        # The classes are defined for texts after the normalizer of their language.
        base = choose_unit(language)
        self.classes: tuple[DifferenceClass, ...] = ()
        if automatic and base in kinds and has_difference_classes(language):
            self.classes = CLASSES[language]
        self.base: Unit = base
        self.kinds: dict[str, Preparation] = {kind: prepared(kind, language) for kind in kinds}
        self.signature = self.main.build_signature(also=kinds)

    @property
    def names(self) -> list[str]:
        """The columns of this language, in addition to those of all languages."""
        rates = [(column, kind) for column, kind in RATES.items() if kind in self.kinds]
        return [
            *(name for column, kind in rates for name in (column, f"{kind}_errors", f"{kind}_length")),
            *(("uncertain_reading_errors",) if _UNCERTAIN.intersection(self.kinds) else ()),
            *((self._tolerant, "tolerant_errors") if self.classes else ()),
            *(f"{kind}_differences" for kind in self.classes),
        ]

    @property
    def _tolerant(self) -> str:
        return next(name for name, length in TOLERANT.items() if length == f"{self.base}_length")

    def score_into_columns(
        self, said: Sequence[str], recognized: Sequence[str], rows: list[int], columns: _Columns
    ) -> None:
        """Write the scores of some rows into the columns; a row with an error gets a ``score_error`` instead."""
        if not rows:
            return
        try:
            scores = self._compute_scores([said[row] for row in rows], [recognized[row] for row in rows])
        except InvalidRequestError as error:
            if len(rows) == 1:
                columns["score_error"][rows[0]] = str(error)
                return
            half = len(rows) // 2
            self.score_into_columns(said, recognized, rows[:half], columns)
            self.score_into_columns(said, recognized, rows[half:], columns)
            return
        for name, cells in scores.items():
            column = columns[name]
            for row, cell in zip(rows, cells, strict=True):
                column[row] = cell

    def _compute_scores(self, said: list[str], recognized: list[str]) -> _Columns:
        texts = said, recognized
        reference, hypothesis = normal = (
            self.main.normalize_texts(said),
            self.main.normalize_texts(recognized),
        )
        comparisons = self._compare_texts(texts, normal)
        pairs = Pairs(*texts, self.main, normal, comparisons)
        if self.main.merge_compounds:
            hypothesis = pairs.canonical_hypotheses
        tallies = pairs.tallies.T.tolist()
        columns: _Columns = {
            "reference_normalized": reference,
            "hypothesis_normalized": hypothesis,
            "alignment": [alignment.text for alignment in pairs.alignments],
            **dict(zip(COUNTS, tallies, strict=True)),
        }
        for kind, preparation in self.kinds.items():
            counted = pairs
            if kind != self.main.unit:
                same = normal if self._has_same_normalization(preparation) else None
                counted = Pairs(*texts, preparation, same, comparisons)
            if kind in _UNCERTAIN:
                columns["uncertain_reading_errors"] = counted.uncertain_errors
            errors, lengths = (side.tolist() for side in counted.errors_and_lengths)
            rate = next(column for column, unit in RATES.items() if unit == kind)
            columns |= {
                f"{kind}_errors": errors,
                f"{kind}_length": lengths,
                rate: _compute_rates(errors, lengths),
            }
        main = [columns[f"{self.main.unit}_{figure}"] for figure in ("errors", "length")]
        columns |= {"errors": main[0], "reference_length": main[1], "error_rate": _compute_rates(*main)}
        return columns | self._count_difference_classes(comparisons, columns.get(f"{self.base}_length", []))

    def _has_same_normalization(self, way: Preparation) -> bool:
        """Return whether the texts as normalized for the main unit are those of another."""
        return way.normalizer == self.main.normalizer

    def _compare_texts(
        self, texts: tuple[list[str], list[str]], normal: tuple[list[str], list[str]]
    ) -> list[TextComparison] | None:
        if not self.classes:
            return None
        preparation = self.kinds[self.base]
        if not self._has_same_normalization(preparation):
            normal = preparation.normalize_texts(texts[0]), preparation.normalize_texts(texts[1])
        return [compare_normalized(*four, self.language) for four in zip(*texts, *normal, strict=True)]

    def _count_difference_classes(
        self, comparisons: list[TextComparison] | None, lengths: list[int]
    ) -> _Columns:
        if comparisons is None:
            return {}
        errors = [pair.tolerant_errors for pair in comparisons]
        classes: _Columns = {
            f"{kind}_differences": [pair.count(kind) for pair in comparisons] for kind in self.classes
        }
        return classes | {"tolerant_errors": errors, self._tolerant: _compute_rates(errors, lengths)}


def _compute_rates(errors: list[int], lengths: list[int]) -> list[float]:
    return [count / max(length, 1) for count, length in zip(errors, lengths, strict=True)]


def _list_languages(frame: pd.DataFrame, language: str) -> list[object]:
    if has_column(frame, language, "language"):
        return frame[language].tolist()
    try:
        language_code(language)
    except InvalidRequestError:
        message = (
            f"the table has no column {language!r:.60}, which is not a language either; name the column "
            "(language='lang') or the language of all rows (language='ja')"
        )
        raise InvalidRequestError(message, parameter="language") from None
    return [language] * len(frame)


def group_by_language(
    references: Any, hypotheses: object, reference: str, hypothesis: str, language: str
) -> tuple[pd.DataFrame, dict[str, list[tuple[int, str, str]]]]:
    """Return a table, and the number, reference and hypothesis of its rows with both texts, for each language."""
    frame = to_text_table(references, hypotheses, reference, hypothesis)
    hint = "Name the right one, as in reference='text'"
    frame = require_columns(frame, reference, hypothesis, argument="references", hint=hint)
    rows: dict[str, list[tuple[int, str, str]]] = {}
    sides = zip(_list_languages(frame, language), frame[reference], frame[hypothesis], strict=True)
    for number, (tag, reference_text, hypothesis_text) in enumerate(sides):
        if isinstance(tag, str) and isinstance(reference_text, str) and isinstance(hypothesis_text, str):
            rows.setdefault(language_code(tag), []).append((number, reference_text, hypothesis_text))
    return frame, rows
