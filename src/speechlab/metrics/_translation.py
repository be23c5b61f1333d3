"""Scores of translations, by sacrebleu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TranslationScore", "translation_score"]

_TOKENIZERS = {"ja": "char", "zh": "zh"}
"""sacrebleu's default takes a Japanese or Chinese sentence for one word, and gives 0.00 without a warning."""


@dataclass(frozen=True, slots=True)
class TranslationScore:
    """How close translations come to their references.

    Attributes:
        chrf: chrF, 0 to 100 (Popović 2015), over the corpus.
        bleu: BLEU, 0 to 100, over the corpus, with a tokeniser that fits the language.
        signature: sacrebleu's signature of chrF: what it takes to compute the same number again.
        bleu_signature: The same of BLEU.
        segments: Number of translations.
    """

    chrf: float
    bleu: float
    signature: str
    bleu_signature: str
    segments: int


def translation_score(
    references: Sequence[str], hypotheses: Sequence[str], *, language: str | None = None
) -> TranslationScore:
    """Score translations with chrF and BLEU.

    Args:
        references: Reference translations.
        hypotheses: Translations, as many.
        language: Code of the language translated into; ``ja`` is split into characters and ``zh`` as sacrebleu's
            ``zh`` does, all others as its default, ``13a``.

    Raises:
        InvalidRequestError: There are none, or the two differ in number.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    if len(references) != len(hypotheses) or not references:
        message = f"{len(references)} references do not fit {len(hypotheses)} translations; give one for each"
        raise InvalidRequestError(message, parameter="references")
    chrf, bleu = (
        CHRF(),
        BLEU(tokenize=_TOKENIZERS.get(language or "", "13a"), effective_order=len(references) == 1),
    )
    chrf_score = chrf.corpus_score(list(hypotheses), [list(references)])
    bleu_score = bleu.corpus_score(list(hypotheses), [list(references)])
    return TranslationScore(
        chrf_score.score,
        bleu_score.score,
        str(chrf.get_signature()),
        str(bleu.get_signature()),
        len(references),
    )
