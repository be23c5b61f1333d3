"""Words and characters of a text, where two texts differ in them, and repetitions that nobody said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from speechlab._arguments import check_text


def words(text: str) -> list[str]:
    """Split a text at white space of any kind, including tabs, line breaks, no-break and ideographic spaces.

    Example:
        >>> words("one\u00a0two\u3000three")
        ['one', 'two', 'three']
    """
    check_text(text)
    return text.split()


def characters(text: str) -> list[str]:
    """Split a text into its Unicode characters, without the white space at both ends.

    White space inside the text counts, as in jiwer; the normalizers for Japanese and Chinese remove it first.
    Characters are code points: a flag or a family emoji is several characters.

    Example:
        >>> characters(" 三時 に ")
        ['三', '時', ' ', 'に']
    """
    check_text(text)
    return list(text.strip())


def find_differing_runs(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Starts and ends, in both, of the runs of characters or words between those that are equal."""
    from rapidfuzz.distance import Levenshtein

    i = j = 0
    for op in Levenshtein.opcodes(one, other):
        if op.tag == "equal":
            if (i, j) != (op.src_start, op.dest_start):
                yield i, op.src_start, j, op.dest_start
            i, j = op.src_end, op.dest_end
    if (i, j) != (len(one), len(other)):
        yield i, len(one), j, len(other)


_SIGNS = re.compile(r"[\W_]+")
_SHORT, _LONG = re.compile(r"(.{4,200}?)\1{2,}"), re.compile(r"(.{12,400}?)\1+")


def loops(text: str, reference: str = "") -> bool:
    """Return whether a text has a repetition that its reference does not have.

    The rule: without spaces and punctuation, a string of at least four characters occurs three or more times in a
    row, or one of at least twelve twice; and the reference does not have this repetition.

    Args:
        text: The text, such as a hypothesis.
        reference: The text that was said, if it is known.

    Raises:
        InvalidRequestError: One of them is not a text.

    Example:
        >>> loops("Thank you so much, thank you so much."), loops("Bye bye.")
        (True, False)
    """
    check_text(text)
    check_text(reference, "reference")
    letters, reference_letters = _strip_case_and_signs(text), _strip_case_and_signs(reference)
    for rule in (_SHORT, _LONG):
        for match in rule.finditer(letters):
            unit = match[1]
            if unit * (len(match[0]) // len(unit)) not in reference_letters:
                return True
    return False


def _strip_case_and_signs(text: str) -> str:
    return _SIGNS.sub("", text.casefold())
