"""Error rates of lists of texts.

Empty references have one rule for a corpus, an utterance, a row and a bootstrap draw: without any reference token,
the errors are divided by 1. So an empty hypothesis has the rate 0.0, and a hypothesis of two words the rate 2.0. This
is jiwer's rule. In a corpus the insertions of such an utterance count like all others. ``empty_references`` is the
number of empty references.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._pandas import pd
from speechlab._require import import_lazily
from speechlab.display import table
from speechlab.metrics._alignment.pairs import Pairs, build_edit_table
from speechlab.metrics._alignment.units import (
    Normalize,
    Preparation,
    Tokens,
    Unit,
    Variants,
    build_preparation,
    warn_if_unspaced,
)
from speechlab.metrics._inputs import Groups, to_text_pairs
from speechlab.metrics._statistics.bootstrap import Bootstrap, Interval

if TYPE_CHECKING:
    import jiwer
    from numpy.typing import NDArray

    from speechlab.metrics._alignment.alignment import Alignment
else:
    jiwer = import_lazily("jiwer")

_UNIT_NAMES = {
    "word": "word (WER)",
    "char": "character (CER)",
    "reading": "kana as spoken",
    "pinyin": "syllable with tone",
    "toneless": "syllable without tone",
}
_FIGURES = (
    *("mean_error_rate", "sentence_error_rate", "match_error_rate"),
    *("word_information_lost", "word_information_preserved"),
    *("errors", "hits", "substitutions", "deletions", "insertions", "reference_length"),
)


class ErrorRate:
    """An error rate with its counts, alignments and intervals.

    The errors are counted at once; counts by operation, alignments and intervals are computed on first use.

    Attributes:
        unit: The unit of counting, such as ``"word"``.
        language: ISO 639-1 code, or None.
        rows: The scored table, the index of the Series, or None.

    Example:
        >>> result = error_rate(["good morning", "good night"], ["good mourning", "night"])
        >>> result.rate, result.substitutions, result.deletions, result.sentence_error_rate
        (0.5, 1, 1, 1.0)
    """

    def __init__(
        self,
        references: list[str],
        hypotheses: list[str],
        preparation: Preparation,
        rows: pd.DataFrame | pd.Index[Any] | None = None,
    ) -> None:
        self._pairs = Pairs(references, hypotheses, preparation)
        self.rows = rows

    @property
    def errors_by_utterance(self) -> NDArray[np.int64]:
        """Errors of each utterance."""
        return self._pairs.errors_and_lengths[0]

    @property
    def lengths_by_utterance(self) -> NDArray[np.int64]:
        """Reference tokens of each utterance."""
        return self._pairs.errors_and_lengths[1]

    @property
    def references(self) -> list[Tokens]:
        """Tokens of each reference after normalization."""
        return self._pairs.tokens[0]

    @property
    def hypotheses(self) -> list[Tokens]:
        """Tokens of each hypothesis, after normalization."""
        return self._pairs.tokens[1]

    @property
    def unit(self) -> Unit:
        return self._pairs.preparation.unit

    @property
    def language(self) -> str | None:
        return self._pairs.preparation.language

    @property
    def errors(self) -> int:
        """Substitutions, deletions and insertions together."""
        return int(self.errors_by_utterance.sum())

    @property
    def reference_length(self) -> int:
        """Tokens of all references."""
        return int(self.lengths_by_utterance.sum())

    @property
    def utterances(self) -> int:
        """The number of compared pairs."""
        return len(self._pairs)

    @property
    def empty_references(self) -> int:
        """The number of references without tokens after normalization."""
        return int((self.lengths_by_utterance == 0).sum())

    @property
    def rate(self) -> float:
        """Corpus rate: all errors over all reference tokens, as a fraction (0.05 is 5%; it can exceed 1).

        NaN if there are no utterances.
        """
        return self.errors / max(self.reference_length, 1) if self.utterances else math.nan

    @property
    def rates_by_utterance(self) -> NDArray[np.float64]:
        """Rate of each utterance."""
        return self.errors_by_utterance / np.maximum(self.lengths_by_utterance, 1)

    @property
    def sentence_error_rate(self) -> float:
        """Share of the utterances that have an error (SER); NaN if there are no utterances."""
        return float((self.errors_by_utterance > 0).mean()) if self.utterances else math.nan

    @property
    def mean_error_rate(self) -> float:
        """Mean of the utterances' rates, in which a short utterance weighs as much as a long one."""
        return float(self.rates_by_utterance.mean()) if self.utterances else math.nan

    @property
    def counts_by_utterance(self) -> NDArray[np.int64]:
        """Hits, substitutions, deletions and insertions (columns) of each utterance (rows)."""
        return self._pairs.tallies

    @property
    def _totals(self) -> list[int]:
        return [int(total) for total in self.counts_by_utterance.sum(axis=0)]

    @property
    def hits(self) -> int:
        """Reference tokens that the hypothesis has."""
        return self._totals[0]

    @property
    def substitutions(self) -> int:
        """Reference tokens that are aligned with another token."""
        return self._totals[1]

    @property
    def deletions(self) -> int:
        """Reference tokens that are aligned with no token."""
        return self._totals[2]

    @property
    def insertions(self) -> int:
        """Hypothesis tokens that are aligned with no token."""
        return self._totals[3]

    @property
    def match_error_rate(self) -> float:
        """MER: errors over hits and errors together; between 0 and 1, NaN if there are no utterances.

        Source: A. C. Morris, V. Maier, P. Green, From WER and RIL to MER and WIL (Interspeech 2004).
        """
        return match_error_rate(*self._totals) if self.utterances else math.nan

    @property
    def word_information_preserved(self) -> float:
        """WIP: hits over reference length times hits over hypothesis length (Morris et al., 2004).

        NaN if there are no utterances.
        """
        return word_information_preserved(*self._totals) if self.utterances else math.nan

    @property
    def word_information_lost(self) -> float:
        """WIL: 1 - WIP."""
        return 1 - self.word_information_preserved

    @property
    def alignments(self) -> tuple[Alignment, ...]:
        """One alignment for each utterance."""
        return self._pairs.alignments

    def edits(self, *, equal: bool = False) -> pd.DataFrame:
        """Return the errors, one row each, with their places in the texts as written.

        Args:
            equal: Also give the tokens that agree.

        Returns:
            The columns of :func:`speechlab.metrics.edits` except ``unit``. ``utterance`` counts from 0, or is a label
            of the index if the texts came from a table or a Series.
        """
        index = getattr(self.rows, "index", self.rows)
        return build_edit_table(self._pairs, None if index is None else list(index), equal=equal)

    def frame(
        self, *, level: float = 0.95, draws: int = 2_000, seed: int = 0, groups: Groups = None
    ) -> pd.DataFrame:
        """Return all figures as a table of one row; join the rows of several systems with ``pandas.concat``.

        Args:
            level: Confidence level, between 0 and 1.
            draws: Number of bootstrap draws.
            seed: The same seed gives the same interval.
            groups: Name of a block for each utterance, or a column of the scored table.

        Returns:
            The columns of :func:`speechlab.metrics.summarize` that every unit has, and
            ``word_information_preserved``.
        """
        low, high = self.confidence_interval(level=level, draws=draws, seed=seed, groups=groups)
        row = {
            "unit": self.unit,
            "utterances": self.utterances,
            "empty_references": self.empty_references,
            "error_rate": self.rate,
            "error_rate_low": low,
            "error_rate_high": high,
            **{name: getattr(self, name) for name in _FIGURES},
            "signature": self.signature,
        }
        return pd.DataFrame([row])

    def confidence_interval(
        self, *, level: float = 0.95, draws: int = 2_000, seed: int = 0, groups: Groups = None
    ) -> Interval:
        """Bootstrap interval of the corpus rate.

        Args:
            level: Confidence level, between 0 and 1.
            draws: Number of bootstrap draws.
            seed: The same seed gives the same interval.
            groups: Name of a block for each utterance, such as its speaker or file, or a column of the scored table.
                Errors of one speaker are correlated, so that an interval by utterance is far too narrow. Whole
                blocks are drawn instead.

        Returns:
            ``(low, high)``; both NaN if there are fewer than two utterances or blocks.
        """
        bootstrap = Bootstrap(level, draws, seed, groups).bind_rows(self.rows)
        return bootstrap.compute_ratio_interval(self.errors_by_utterance, self.lengths_by_utterance)

    def to_jiwer(self) -> jiwer.WordOutput | jiwer.CharacterOutput:
        """Return this result as jiwer has it, for code that takes jiwer's: the same texts, alignments and figures.

        Returns:
            A ``jiwer.CharacterOutput`` of characters or readings, and of all other units a ``jiwer.WordOutput``.

        Example:
            >>> error_rate("Good morning", "good evening", language="en").to_jiwer().wer
            0.5
        """
        output: dict[str, Any] = {
            "references": list(map(list, self.references)),
            "hypotheses": list(map(list, self.hypotheses)),
            "alignments": [
                [jiwer.AlignmentChunk(*run) for run in alignment.blocks] for alignment in self.alignments
            ],
            **dict(zip(("hits", "substitutions", "deletions", "insertions"), self._totals, strict=True)),
        }
        if not self._pairs.preparation.separator:
            return jiwer.CharacterOutput(**output, cer=self.rate)
        preserved = self.word_information_preserved
        return jiwer.WordOutput(
            **output, wer=self.rate, mer=self.match_error_rate, wil=1 - preserved, wip=preserved
        )

    @property
    def signature(self) -> str:
        """Unit, normalizer and versions of the rate in one line, to be reported with it."""
        return self._pairs.preparation.build_signature()

    def __float__(self) -> float:
        return self.rate

    def __repr__(self) -> str:
        return (
            f"<ErrorRate {self.rate:.4f} by {self.unit}: {self.errors} errors in {self.reference_length}, "
            f"{self.utterances} utterances>"
        )

    def _repr_html_(self) -> str:
        low, high = self.confidence_interval()
        none = "none: fewer than two utterances"
        interval = none if math.isnan(low) else f"{100 * low:.2f} to {100 * high:.2f}%"
        name = f"Error rate by {_UNIT_NAMES[self.unit]}"
        rows = [
            (name, _format_rate(self.rate)),
            ("95% interval (bootstrap by utterance)", interval),
            ("Mean of utterances", _format_rate(self.mean_error_rate)),
            ("Utterances with an error", _format_rate(self.sentence_error_rate)),
            ("Substitutions, deletions, insertions", ", ".join(map(str, self._totals[1:]))),
            ("Hits of reference length", f"{self.hits} of {self.reference_length}"),
            ("Utterances (empty references)", f"{self.utterances} ({self.empty_references})"),
            ("Signature", self.signature),
        ]
        return str(table(["Figure", "Value"], rows))


def match_error_rate(hits: int, substitutions: int, deletions: int, insertions: int) -> float:
    """MER from counts; 0 without tokens."""
    errors = substitutions + deletions + insertions
    return errors / (hits + errors) if hits + errors else 0.0


def word_information_preserved(hits: int, substitutions: int, deletions: int, insertions: int) -> float:
    """WIP from counts."""
    reference_length, hypothesis_length = hits + substitutions + deletions, hits + substitutions + insertions
    if not reference_length:
        return 0.0 if hypothesis_length else 1.0
    return (hits / reference_length) * (hits / hypothesis_length) if hypothesis_length else 0.0


def _format_rate(rate: float) -> str:
    return "none" if math.isnan(rate) else f"{100 * rate:.2f}%"


def error_rate(
    references: str | Iterable[str] | pd.DataFrame,
    hypotheses: str | Iterable[str] | None = None,
    unit: Unit = "word",
    language: str | None = None,
    normalize: Normalize = "auto",
    *,
    variants: Variants = (),
    merge_compounds: bool = False,
    reference: str = "text",
    hypothesis: str = "hypothesis",
) -> ErrorRate:
    """Error rate of hypotheses against references: WER, CER or reading error rate.

    Args:
        references: References: one text, a list or a Series; or a table with both sides.
        hypotheses: Hypotheses, one for each reference; None for a table. Two Series must have the same index.
        unit: ``"word"`` (WER; white space of any kind separates), ``"char"`` (CER; code points), ``"reading"``
            (kana as spoken, Japanese only; needs the extra ``ja``), or ``"pinyin"`` and ``"toneless"`` (syllables
            with and without tone, Chinese only; need the package pypinyin).
        language: Language of all texts, such as ``"en"``, ``"ja-JP"`` or ``"zh"``. Without it, texts that seem to
            have no spaces between words give a warning if the unit is words.
        normalize: ``"auto"`` for the language's normalizer (no language: none; readings: ``ja-reading``), None for no
            normalization, the name of a normalizer, a ``speechlab.text.Normalizer``, or any function from str to str.
        variants: Groups of words or phrases that count as one, such as ``[["Jon", "John"], ["a lot", "lots"]]``.
            The first of a group takes the place of the others, after normalization.
        merge_compounds: Adjacent words cost nothing if they are together one word of the other side (white
            paper/whitepaper), as kaldialign and the Open ASR Leaderboard count; for words only.
        reference: Column of references in a table.
        hypothesis: Column of hypotheses in a table.

    Returns:
        The rate, with counts, alignments, intervals and a signature.

    Raises:
        InvalidRequestError: The numbers of texts differ, two Series have different indexes, a value is not a text, or
            the unit, language or normalizer does not exist or does not match.

    Example:
        >>> result = error_rate(["this is a test"], ["this test"])
        >>> result.rate, result.deletions
        (0.5, 2)
        >>> error_rate("三時に会議", "3時に会議", unit="char", language="ja").rate
        0.0
    """
    preparation = build_preparation(unit, language, normalize, variants, merge_compounds=merge_compounds)
    remedy = "leave such pairs out, or use speechlab.metrics.score, which skips missing values"
    reference_texts, hypothesis_texts, rows = to_text_pairs(
        references, hypotheses, reference, hypothesis, remedy
    )
    if unit == "word" and language is None and str(normalize) == "auto":
        warn_if_unspaced(reference_texts, "use unit='char' and name the language, as in language='ja'")
    return ErrorRate(reference_texts, hypothesis_texts, preparation, rows)
