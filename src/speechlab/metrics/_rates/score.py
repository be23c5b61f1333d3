"""Scores of tables: one row for each utterance."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from speechlab._arguments import has_column, is_dask, is_missing, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.alignment import Alignment
from speechlab.metrics._alignment.counting import edits_and_counts, errors_and_lengths
from speechlab.metrics._alignment.sclite import check_unmarked
from speechlab.metrics._alignment.units import Preparation, auto_unit, check_counts, merged, prepare
from speechlab.metrics._arguments import as_cells
from speechlab.metrics._columns import with_columns
from speechlab.metrics._differences.compare import compared, has_classes
from speechlab.metrics._differences.differences import CLASSES, DifferenceClass
from speechlab.metrics._rates.figures import COUNTS
from speechlab.text import language_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd

    from speechlab.metrics._alignment.units import Counts, Normalize, Unit, Variants

_Columns: TypeAlias = dict[str, list[Any]]

RATES = {
    "wer": "word",
    "cer": "char",
    "reading_cer": "reading",
    "pinyin_error_rate": "pinyin",
    "toneless_error_rate": "toneless",
}
KINDS: tuple[DifferenceClass, ...] = get_args(DifferenceClass)
TOLERANT = {"tolerant_wer": "word_length", "tolerant_cer": "char_length"}
"""Rates that forgive notation, and the column of their lengths."""
_ALWAYS: dict[str, str] = {
    "unit": "category",
    "signature": "category",
    "reference_normalized": "string",
    "hypothesis_normalized": "string",
    "error_rate": "Float64",
    "errors": "Int64",
    **dict.fromkeys(COUNTS, "Int64"),
    "reference_length": "Int64",
}
_SOME: dict[str, str] = {
    **{f"{kind}_{figure}": "Int64" for kind in RATES.values() for figure in ("errors", "length")},
    **dict.fromkeys(RATES, "Float64"),
    **dict.fromkeys(TOLERANT, "Float64"),
    "tolerant_errors": "Int64",
    **{f"{kind}_differences": "Int64" for kind in KINDS},
}
_LAST: dict[str, str] = {"alignment": "string", "score_error": "string"}
SCORES = {**_ALWAYS, **_SOME, **_LAST}
"""Columns that :func:`score` adds, and their types."""


def score(
    references: pd.DataFrame | Iterable[str | None],
    hypotheses: Iterable[str | None] | None = None,
    *,
    reference: str = "text",
    hypothesis: str = "hypothesis",
    language: str = "language",
    unit: str = "auto",
    normalize: Normalize = "auto",
    counts: Counts = "levenshtein",
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
        counts: As for :func:`speechlab.metrics.error_rate`.
        variants: As for :func:`speechlab.metrics.error_rate`.
        merge_compounds: As for :func:`speechlab.metrics.error_rate`; it concerns counts by words alone.

    Returns:
        A new table, of Dask if the given one is, with the same index and order, the columns of the table (for lists,
        two columns with the names above), and the following columns, which replace columns of the same name. Always:

        - ``unit``, ``signature``: the unit of counting, and one line with the unit, the normaliser and the versions.
        - ``reference_normalized``, ``hypothesis_normalized``: the compared texts.
        - ``error_rate`` (fraction), ``errors``, ``hits``, ``substitutions``, ``deletions``, ``insertions``,
          ``reference_length`` (tokens), all in ``unit``.
        - ``alignment``: the difference as text, ``[-reference-]{+hypothesis+}``.
        - ``score_error``: the reason for a row without scores: its language does not exist or does not have the unit,
          a cell is not a text, or has sclite's alternates. Such a row does not stop the others. A row without
          reference, hypothesis or language has missing scores, but no error.

        And for the languages of the table:

        - ``wer``, ``cer``, ``reading_cer`` (fractions), and ``word_errors``, ``word_length``, ``char_errors``,
          ``char_length``, ``reading_errors``, ``reading_length`` (their counts in tokens): words and characters for
          languages with spaces, characters for the others, readings for Japanese if the extra ``ja`` is installed.
        - ``pinyin_error_rate``, ``toneless_error_rate`` (fractions), and ``pinyin_errors``, ``pinyin_length``,
          ``toneless_errors``, ``toneless_length``: syllables of Chinese, with and without tone, if the package
          pypinyin is installed.
        - ``tolerant_wer`` of English, ``tolerant_cer`` of Japanese and Chinese, and ``tolerant_errors``: errors
          without differences of notation, over ``word_length`` or ``char_length``.
        - ``notation_differences``, ``homophone_differences``, ``tone_differences`` (Chinese),
          ``recognition_differences`` and ``filler_differences`` (English, Chinese): the number of differences of each
          class (see :func:`classify_differences`).

    Raises:
        InvalidRequestError: A column is missing or occurs twice; two Series have different indexes; the unit,
            normaliser, rules of counting or language of all rows does not exist; or this language does not have the
            unit.

    Example:
        >>> score(["good morning"], ["good mourning"], language="en")["alignment"][0]
        'good [-morning-]{+mourning+}'
    """
    check_counts(counts, merge_compounds=merge_compounds)
    variants = [group if isinstance(group, str) else tuple(group) for group in variants]
    prepare("char" if str(unit) == "auto" else unit, None, normalize, variants)
    columns = (reference, hypothesis, language)
    how = {"normalize": normalize, "variants": variants, "merge_compounds": merge_compounds}
    if is_dask(references):
        table: pd.DataFrame = _by_partition(references, columns, unit, counts, **how)
        return table
    return _scored(as_cells(references, hypotheses, reference, hypothesis), (), columns, unit, counts, **how)


def _by_partition(frame: Any, columns: Sequence[str], unit: str, counts: Counts, **ways: Any) -> Any:
    """The scores of a DataFrame of Dask, each partition with the columns of all languages."""
    meta, language = frame._meta, columns[2]  # noqa: SLF001 - the name that Dask documents for extensions
    of_rows = has_column(meta, language, "language")
    tags = frame[language].dropna().unique().compute().tolist() if of_rows else [language]

    def scored(part: pd.DataFrame) -> pd.DataFrame:
        table = _scored(part, sorted(map(str, tags)), columns, unit, counts, **ways)
        return table.astype(
            {"unit": "string", "signature": "string"}
        )  # partitions differ in their categories

    return frame.map_partitions(scored, meta=scored(meta), enforce_metadata=False)


def _scored(
    frame: pd.DataFrame, tags: Iterable[str], columns: Sequence[str], unit: str, counts: Counts, **ways: Any
) -> pd.DataFrame:
    """The scores of a table, with the columns of further languages."""
    reference, hypothesis, language = columns
    hint = "Name the right one, as in reference='text'"
    require_columns(frame, reference, hypothesis, hint=hint)
    require_columns(frame, *dict.fromkeys(frame.columns))
    languages = _languages(frame, language)
    automatic = isinstance(ways["normalize"], str) and ways["normalize"] == "auto"
    scorers = _Scorers(unit, partial(prepare, **ways), counts, automatic)
    if not has_column(frame, language, "language"):
        scorers.of_language(language)  # an error of all rows is an error of the call
    for tag in tags:
        with suppress(InvalidRequestError):
            scorers.of_language(tag)
    scores = scorers.columns(frame[reference].tolist(), frame[hypothesis].tolist(), languages)
    types = {name: kind for name, kind in SCORES.items() if name not in _SOME or name in scores}
    return with_columns(frame, scores, types)


class _Scorers:
    """The scorer of rows in several languages; an error in a row becomes its ``score_error``."""

    def __init__(self, *how: Any) -> None:
        self._how = how
        self._scorers: dict[str, _Scorer | InvalidRequestError] = {}

    def columns(self, said: Sequence[Any], heard: Sequence[Any], tags: Sequence[object]) -> _Columns:
        """All new columns that a language of the rows can have."""
        columns: _Columns = {name: [None] * len(said) for name in (*_ALWAYS, *_LAST)}
        rows: dict[str, list[int]] = {}
        for row, (reference, hypothesis, tag) in enumerate(zip(said, heard, tags, strict=True)):
            if is_missing(tag):
                continue
            try:
                scorer = self.of_language(tag)
            except InvalidRequestError as error:
                columns["score_error"][row] = str(error)
                continue
            columns["unit"][row], columns["signature"][row] = scorer.main.unit, scorer.signature
            columns["score_error"][row] = _no_text(reference, hypothesis)
            if isinstance(reference, str) and isinstance(hypothesis, str):
                rows.setdefault(str(tag), []).append(row)
        for scorer in [candidate for candidate in self._scorers.values() if isinstance(candidate, _Scorer)]:
            columns |= {name: [None] * len(said) for name in scorer.names if name not in columns}
        for tag, positions in rows.items():
            scores = self.of_language(tag).columns(
                [said[i] for i in positions], [heard[i] for i in positions]
            )
            for name, cells in scores.items():
                column = columns[name]
                for position, cell in zip(positions, cells, strict=True):
                    column[position] = cell
        return columns

    def of_language(self, tag: object) -> _Scorer:
        """The scorer of rows in one language."""
        if not isinstance(tag, str):
            message = f"the language is {tag!r:.60} ({type(tag).__name__}), not a code such as 'ja'"
            raise InvalidRequestError(message, parameter="language")
        if tag not in self._scorers:
            try:
                self._scorers[tag] = _Scorer(language_code(tag), *self._how)
            except InvalidRequestError as error:
                self._scorers[tag] = error
        scorer = self._scorers[tag]
        if isinstance(scorer, InvalidRequestError):
            raise scorer
        return scorer


def _no_text(said: object, heard: object) -> str | None:
    for name, cell in (("reference", said), ("hypothesis", heard)):
        if not isinstance(cell, str) and not is_missing(cell):
            return f"the {name} is {cell!r:.60} ({type(cell).__name__}), not a text"
    return None


class _Scorer:
    """The scorer of rows in one language."""

    def __init__(
        self, language: str, unit: str, prepared: Callable[..., Preparation], counts: Counts, automatic: bool
    ) -> None:
        self.language = language
        self.counts: Counts = counts
        self.main = prepared(auto_unit(language) if unit == "auto" else unit, language)
        kinds = [self.main.unit]
        if self.main.unit == "word":
            kinds.append("char")
        if language == "ja" and find_spec("pyopenjtalk") is not None:
            kinds.extend(kind for kind in ("char", "reading") if kind not in kinds)
        if language == "zh" and find_spec("pypinyin") is not None:
            kinds.extend(kind for kind in ("char", "pinyin", "toneless") if kind not in kinds)
        # The classes are defined for texts after the normaliser of their language.
        base = auto_unit(language)
        self.classes: tuple[DifferenceClass, ...] = ()
        if automatic and base in kinds and has_classes(language):
            self.classes = CLASSES[language]
        self.base: Unit = base
        self.kinds: dict[str, Preparation] = {kind: prepared(kind, language) for kind in kinds}
        self.signature = self.main.signature(counts, also=kinds)

    @property
    def names(self) -> list[str]:
        """The columns of this language, in addition to those of all languages."""
        rates = [(column, kind) for column, kind in RATES.items() if kind in self.kinds]
        return [
            *(name for column, kind in rates for name in (column, f"{kind}_errors", f"{kind}_length")),
            *((self._tolerant, "tolerant_errors") if self.classes else ()),
            *(f"{kind}_differences" for kind in self.classes),
        ]

    @property
    def _tolerant(self) -> str:
        return next(name for name, length in TOLERANT.items() if length == f"{self.base}_length")

    def columns(self, said: list[str], heard: list[str]) -> _Columns:
        """The scores of all rows; a row with an error gets a ``score_error`` instead."""
        try:
            return self._columns(said, heard)
        except InvalidRequestError as error:
            if len(said) == 1:
                return {name: [None] for name in (*_ALWAYS, *_LAST, *self.names)} | {
                    "unit": [self.main.unit],
                    "signature": [self.signature],
                    "score_error": [str(error)],
                }
        half = len(said) // 2
        first, second = self.columns(said[:half], heard[:half]), self.columns(said[half:], heard[half:])
        return {name: first[name] + second[name] for name in first}

    def _columns(self, said: list[str], heard: list[str]) -> _Columns:
        reference, hypothesis = self.main.normalized(said), self.main.normalized(heard)
        columns: _Columns = {
            "unit": [self.main.unit] * len(said),
            "signature": [self.signature] * len(said),
            "score_error": [None] * len(said),
        }
        separate = hypothesis
        if self.main.merge_compounds:
            hypothesis = merged(reference, hypothesis)
        if self.counts == "sclite":
            check_unmarked(said, heard)
            aligned = self._by_sclite(self.main, reference, hypothesis)
            tallies, columns["alignment"] = (
                [list(pair.tally) for pair in aligned],
                [pair.text for pair in aligned],
            )
        else:
            tallies, columns["alignment"] = self._aligned(reference, hypothesis)
        columns |= {"reference_normalized": reference, "hypothesis_normalized": hypothesis}
        columns |= {name: [tally[place] for tally in tallies] for place, name in enumerate(COUNTS)}
        errors, lengths = [sum(tally[1:]) for tally in tallies], [sum(tally[:3]) for tally in tallies]
        columns |= {"errors": errors, "reference_length": lengths, "error_rate": _rates(errors, lengths)}
        for column, kind in RATES.items():
            if kind in self.kinds:
                if kind != self.main.unit:
                    errors, lengths = self._counted(self.kinds[kind], (said, heard), (reference, separate))
                else:
                    errors, lengths = columns["errors"], columns["reference_length"]
                columns |= {
                    f"{kind}_errors": errors,
                    f"{kind}_length": lengths,
                    column: _rates(errors, lengths),
                }
        return columns | self._differences(
            (said, heard), (reference, hypothesis), columns.get(f"{self.base}_length", [])
        )

    def _aligned(self, one: list[str], other: list[str]) -> tuple[list[list[int]], list[str]]:
        """Hits, substitutions, deletions and insertions of each pair, and its difference as text."""
        preparation = self.main
        reference, hypothesis = preparation.canonical_of(one), preparation.canonical_of(other)
        edits_of, tallies = edits_and_counts(reference, hypothesis, preparation.cut)
        texts = [
            Alignment(
                a, b, preparation.separator, None, "levenshtein", edits, bool(preparation.separator)
            ).text
            for a, b, edits in zip(reference, hypothesis, edits_of, strict=True)
        ]
        return tallies.tolist(), texts

    def _counted(
        self, way: Preparation, texts: tuple[list[str], list[str]], normal: tuple[list[str], list[str]]
    ) -> tuple[list[int], list[int]]:
        """Errors and reference lengths in another unit."""
        if way.normalizer != self.main.normalizer:
            normal = way.normalized(texts[0]), way.normalized(texts[1])
        if self.counts == "sclite":
            tallies = [pair.tally for pair in self._by_sclite(way, *normal)]
            return [sum(tally[1:]) for tally in tallies], [sum(tally[:3]) for tally in tallies]
        errors, lengths = errors_and_lengths(way.canonical_of(normal[0]), way.canonical_of(normal[1]), way)
        return errors.tolist(), lengths.tolist()

    def _differences(
        self, texts: tuple[list[str], list[str]], normal: tuple[list[str], list[str]], lengths: list[int]
    ) -> _Columns:
        if not self.classes:
            return {}
        preparation = self.kinds[self.base]
        if preparation.normalizer != self.main.normalizer:
            normal = preparation.normalized(texts[0]), preparation.normalized(texts[1])
        comparisons = [compared(*four, self.language) for four in zip(*texts, *normal, strict=True)]
        errors = [pair.tolerant_errors for pair in comparisons]
        classes: _Columns = {
            f"{kind}_differences": [pair.count(kind) for pair in comparisons] for kind in self.classes
        }
        return classes | {"tolerant_errors": errors, self._tolerant: _rates(errors, lengths)}

    def _by_sclite(self, way: Preparation, one: list[str], other: list[str]) -> list[Alignment]:
        sides = zip(map(way.split, one), map(way.split, other), strict=True)
        return [Alignment(*side, way.separator, counts=self.counts) for side in sides]


def _rates(errors: list[int], lengths: list[int]) -> list[float]:
    return [count / max(length, 1) for count, length in zip(errors, lengths, strict=True)]


def _languages(frame: pd.DataFrame, language: str) -> list[object]:
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


def texts_by_language(
    frame: pd.DataFrame, reference: str, hypothesis: str, language: str
) -> dict[str, list[tuple[int, str, str]]]:
    """Number, reference and hypothesis of the rows of each language that have both texts."""
    require_columns(frame, reference, hypothesis, hint="Name the right one, as in reference='text'")
    rows: dict[str, list[tuple[int, str, str]]] = {}
    sides = zip(_languages(frame, language), frame[reference], frame[hypothesis], strict=True)
    for number, (tag, reference_text, hypothesis_text) in enumerate(sides):
        if isinstance(tag, str) and isinstance(reference_text, str) and isinstance(hypothesis_text, str):
            rows.setdefault(language_code(tag), []).append((number, reference_text, hypothesis_text))
    return rows
