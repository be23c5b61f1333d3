"""Scores of tables: one row for each utterance."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, get_args

from speechlab._arguments import has_column, is_missing, require_columns
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.alignment import Alignment
from speechlab.metrics._alignment.pairs import align_as, unmarked
from speechlab.metrics._alignment.units import Preparation, auto_unit, check_counts, prepare
from speechlab.metrics._columns import with_columns
from speechlab.metrics._rates.chinese import ChineseDifferenceClass, compare_chinese
from speechlab.metrics._rates.japanese import DifferenceClass, compare_japanese
from speechlab.text import language_code

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.metrics._alignment.units import Counts, Normalize

COUNTS = ("hits", "substitutions", "deletions", "insertions")
RATES = {
    "wer": "word",
    "cer": "char",
    "reading_cer": "reading",
    "pinyin_error_rate": "pinyin",
    "toneless_error_rate": "toneless",
}
KINDS = ("notation", "homophone", "tone", "recognition")
"""Classes of differences: of Japanese all but ``tone``, of Chinese all but ``notation``."""
_COLUMNS: dict[str, str] = {
    "unit": "category",
    "normalizer": "category",
    "counts": "category",
    "reference_normalized": "string",
    "hypothesis_normalized": "string",
    "error_rate": "Float64",
    "errors": "Int64",
    **dict.fromkeys(COUNTS, "Int64"),
    "reference_length": "Int64",
    **{f"{kind}_{part}": "Int64" for kind in RATES.values() for part in ("errors", "length")},
    **dict.fromkeys(RATES, "Float64"),
    "tolerant_cer": "Float64",
    "tolerant_errors": "Int64",
    **{f"{kind}_differences": "Int64" for kind in KINDS},
    "alignment": "string",
    "score_error": "string",
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
          of each (see :func:`compare_japanese`). For Chinese ``homophone_differences``, ``tone_differences`` and
          ``recognition_differences`` (see :func:`compare_chinese`).
        - ``alignment``: the difference as text, ``[-reference-]{+hypothesis+}``.
        - ``score_error``: why a row could not be scored: its language does not exist, or does not have that unit,
          or a cell holds no text, or sclite's markings in it cannot be understood. Such a row has missing scores, as
          has one without reference, hypothesis or language (which is no error), and none of them stops the others.

    Raises:
        InvalidRequestError: What is wrong with the call: a column is missing or there twice, or there is no such
            unit, normaliser, way of counting, or language of all rows, or that language does not have the unit.
    """
    check_counts(counts)
    prepare("char" if str(unit) == "auto" else unit, None, normalize)
    hint = "Name the right one, as in reference='text'"
    require_columns(frame, reference, hypothesis, hint=hint)
    require_columns(frame, *dict.fromkeys(frame.columns))
    languages = _languages(frame, language)
    scorers = _Scorers(unit, normalize, counts)
    if not has_column(frame, language, "language"):
        scorers.of_language(language)  # what is wrong for all rows is wrong with the call
    rows = [
        scorers.row(said, heard, tag)
        for said, heard, tag in zip(frame[reference], frame[hypothesis], languages, strict=True)
    ]
    return with_columns(frame, rows, _COLUMNS)


class _Scorers:
    """Scores rows of many languages; what is wrong with a row becomes its ``score_error``."""

    def __init__(self, unit: str, normalize: Normalize, counts: Counts) -> None:
        self._how = unit, normalize, counts
        self._scorers: dict[str, _Scorer | InvalidRequestError] = {}

    def row(self, said: object, heard: object, tag: object) -> dict[str, Any]:
        if is_missing(tag):
            return {}
        try:
            scorer = self.of_language(tag)
        except InvalidRequestError as error:
            return {"score_error": str(error)}
        for name, cell in (("reference", said), ("hypothesis", heard)):
            if not isinstance(cell, str) and not is_missing(cell):
                message = f"the {name} is {cell!r:.60} ({type(cell).__name__}), not a text"
                return scorer.labels | {"score_error": message}
        if is_missing(said) or is_missing(heard):
            return dict(scorer.labels)
        try:
            return scorer.row(str(said), str(heard))
        except InvalidRequestError as error:
            return scorer.labels | {"score_error": str(error)}

    def of_language(self, tag: object) -> _Scorer:
        """The way to score rows of a language, or an error that says why there is none."""
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


class _Scorer:
    """Scores rows of one language."""

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
        # The classes are defined on texts in the normal form of their language.
        automatic = isinstance(normalize, str) and normalize == "auto"
        self.japanese = automatic and "reading" in kinds
        self.chinese = automatic and language == "zh" and "pinyin" in kinds
        self.kinds: dict[str, Preparation] = {kind: prepare(kind, language, normalize) for kind in kinds}

    @property
    def labels(self) -> dict[str, Any]:
        """Columns that say what would be counted, of rows without scores too."""
        return {"unit": self.main.unit, "normalizer": self.main.normalizer, "counts": self.counts}

    def row(self, said: str, heard: str) -> dict[str, Any]:
        """All new columns of one row that have a value."""
        values = self.labels
        one, other = self.main.normalize(said), self.main.normalize(heard)
        aligned = self._align(self.main, (said, heard), (one, other))
        if aligned.places is not None:
            one, other = unmarked(aligned)
        values["reference_normalized"], values["hypothesis_normalized"] = one, other
        for column, kind in RATES.items():
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
        return values | self._differences(said, heard, values.get("char_length", 0))

    def _differences(self, said: str, heard: str, length: int) -> dict[str, Any]:
        if self.japanese:
            japanese = compare_japanese(said, heard)
            return {
                "tolerant_errors": japanese.tolerant_errors,
                "tolerant_cer": japanese.tolerant_errors / max(length, 1),
            } | {f"{kind}_differences": japanese.count(kind) for kind in get_args(DifferenceClass)}
        if self.chinese:
            chinese = compare_chinese(said, heard)
            return {f"{kind}_differences": chinese.count(kind) for kind in get_args(ChineseDifferenceClass)}
        return {}

    def _align(self, way: Preparation, texts: tuple[str, str], normalized: tuple[str, str]) -> Alignment:
        one, other = normalized
        return align_as(self.counts, texts, (way.split(one), way.split(other)), way)

    def _fill(self, values: dict[str, Any], column: str, kind: str, alignment: Alignment) -> None:
        counts = alignment.tally
        errors, length = sum(counts[1:]), sum(counts[:3])
        rate = errors / max(length, 1)
        values |= {column: rate, f"{kind}_errors": errors, f"{kind}_length": length}
        if kind == self.main.unit:
            values |= dict(zip(COUNTS, counts, strict=True))
            values |= {"error_rate": rate, "errors": errors, "reference_length": length}
            values["alignment"] = alignment.text


def _languages(frame: pd.DataFrame, language: str) -> list[object]:
    if has_column(frame, language, "language"):
        return frame[language].tolist()
    try:
        language_code(language)
    except InvalidRequestError:
        message = (
            f"the table has no column {language!r:.60}, and that is no language either; name the column "
            "(language='lang') or the language of all rows (language='ja')"
        )
        raise InvalidRequestError(message, parameter="language") from None
    return [language] * len(frame)
