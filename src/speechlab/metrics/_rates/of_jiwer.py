"""Results of jiwer as results of this room; the way back is ``ErrorRate.to_jiwer``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab._arguments import build_argument_error
from speechlab._require import import_lazily
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import build_preparation
from speechlab.metrics._rates.error_rate import ErrorRate

if TYPE_CHECKING:
    import jiwer
else:
    jiwer = import_lazily("jiwer")


def from_jiwer(output: jiwer.WordOutput | jiwer.CharacterOutput) -> ErrorRate:
    """Read a result of jiwer: its texts, as they were compared, with a rate, intervals, edits and tables.

    Args:
        output: What ``jiwer.process_words`` or ``jiwer.process_characters`` returned.

    Returns:
        The error rate by words or characters of these texts without a normalizer, with the counts and the alignments
        of ``output``.

    Raises:
        InvalidRequestError: The value is no such result; or a word of it has white space inside, or a text has some
            at its ends, which counts otherwise here.

    Example:
        >>> import jiwer
        >>> from_jiwer(jiwer.process_words(["good morning"], ["good mourning"])).rate
        0.5
    """
    if not isinstance(output, jiwer.WordOutput | jiwer.CharacterOutput):
        raise build_argument_error(
            "output", output, "a result of jiwer.process_words or jiwer.process_characters"
        )
    by_word = isinstance(output, jiwer.WordOutput)
    separator = " " if by_word else ""
    references, hypotheses = (
        list(map(separator.join, side)) for side in (output.references, output.hypotheses)
    )
    result = ErrorRate(references, hypotheses, build_preparation("word" if by_word else "char", None, None))
    for ours, theirs in ((result.references, output.references), (result.hypotheses, output.hypotheses)):
        for row, (tokens, given) in enumerate(zip(ours, theirs, strict=True)):
            if list(tokens) != list(given):
                message = (
                    f"pair {row} of the output has {given!r:.60}, with white space inside a word or at an end; here "
                    "all white space separates words: score the texts with error_rate"
                )
                raise InvalidRequestError(message, parameter="output")
    return result
