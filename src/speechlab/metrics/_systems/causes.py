"""Causes of errors: the voice, its engine, or a later stage.

A recognizer or a normalizer makes an error at the same place of the text for most voices. So each error is compared
with the other voices at its place. The first rule that applies gives the cause:

1. *shared*: most of the other voices have an error there, where each engine counts once, and so do most voices of
   another engine.
2. *engine*: most of the other voices of its engine have an error there.
3. *own*: all other errors.

"Most" is more than half. With one engine, the errors of the engine cannot be separated from those of the recognizer,
and both are *shared*. For an engine with one voice, the errors of the engine are *own* errors of the voice. A place
is a token of the reference, with a tolerance of half a word, or of one and a half characters, kana or syllables,
because an alignment may shift an error by that much. A voice with several takes of an utterance has an error at a
place if at least half of its takes have one. Errors of the kind *sound* are compared only with each other, and so are
errors of all other kinds.

The kinds, of which the first that applies is taken, for a run of errors; if none applies, an error in Japanese or
Chinese characters gets the kind of the difference that contains it:

1. *number*: both sides are equal without spaces, full stops and signs between digits, and have digits (10:35/1035);
   or they sound alike and one of them has digits. $10/€10, -5/5 and 1.5/15 are different sums and numbers.
2. *spelling*: both sides are equal without spaces and full stops (good bye/goodbye), or the difference is *notation*
   in :func:`speechlab.metrics.classify_differences`.
3. *homophone*: both sides sound alike, by the pronouncing dictionary of English, the readings of Japanese, or the
   syllables and tones of Chinese.
4. *sound*: all other errors.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from speechlab.metrics._differences.compare import (
    classify_differences,
    compare_normalized,
    has_difference_classes,
)
from speechlab.metrics._rates.tables import ScoredRow, align_row, parse_signature

ErrorKind: TypeAlias = Literal["sound", "homophone", "number", "spelling"]
# Ignored: white space, signs between digits, and full stops that are no decimal points.
_IGNORED_SIGNS = re.compile(r"\s|(?<=\d)[^\w\s.](?=\d)|(?<!\d)\.|\.(?!\d)")
_DIGIT = re.compile(r"\d")
# Kinds of the classes of inaudible differences.
_KINDS: dict[str, ErrorKind] = {"homophone": "homophone", "notation": "spelling"}
Cause: TypeAlias = Literal["shared", "engine", "own"]


def _classify_error_places(
    row: ScoredRow, language: str
) -> tuple[list[tuple[int, int, ErrorKind]], int | None]:
    """Places of differences in the reference with their kinds, and the number of homophones if it is known."""
    if (
        row.reference == row.hypothesis
        or language not in {"ja", "zh"}
        or not has_difference_classes(language)
    ):
        return [], None
    comparison = classify_differences(row.reference, row.hypothesis, language)
    homophones = comparison.count("homophone")  # even if they are no errors in the unit, such as readings
    # Differences have places in the normalized reference. These are places of tokens only if the reference is
    # normalized.
    if row.unit != "char" or comparison.reference != row.reference:
        return [], homophones
    spans = [
        (difference.start, difference.start + len(difference.reference), _KINDS.get(difference.kind, "sound"))
        for difference in comparison.differences
    ]
    return spans, homophones


def _classify_equivalent_run(said: str, recognized: str, language: str) -> ErrorKind | None:
    """Return the kind of all errors of a run, if both of its sides say it."""
    reference, hypothesis = (_IGNORED_SIGNS.sub("", text) for text in (said, recognized))
    if reference and reference == hypothesis:
        return "number" if _DIGIT.search(reference) else "spelling"
    if language == "en" and said and recognized:
        kinds = {
            difference.kind
            for difference in compare_normalized(said, recognized, said, recognized, "en").differences
        }
        if kinds <= {"notation", "homophone"}:
            return "number" if _DIGIT.search(said + recognized) else _KINDS[min(kinds, default="notation")]
    return None


class ErrorRun(NamedTuple):
    """A run of errors of one kind and one cause."""

    start: int  # index of its first token in the reference; for an insertion, index of the next token
    reference: str  # its tokens in the reference; may be empty
    hypothesis: str  # its tokens in the hypothesis; may be empty
    errors: int  # number of errors
    kind: ErrorKind  # kind of the errors
    cause: Cause  # cause of the errors
    # share of the other voices with an error there, where each engine counts once; the smallest share of
    # the run; NaN without other voices
    share: float
    at_end: bool  # whether the last token of the reference is left out, not only spelled differently


class _Error(NamedTuple):
    place: float
    token: int
    reference: str | None
    hypothesis: str | None
    kind: ErrorKind
    run: int


# A place in the reference, and whether an error there is of the kind ``sound``.
_Place: TypeAlias = tuple[float, bool]


class Take:
    """One hypothesis of one voice."""

    def __init__(self, row: ScoredRow) -> None:
        steps = align_row(row)
        language = parse_signature(row.signature)["lang"]
        self.row = row
        self.length = len(steps.reference)  # in tokens
        self._separator = steps.separator
        spans, homophones = _classify_error_places(row, language)
        self.errors: list[_Error] = []
        self.runs: list[ErrorRun] = []  # once their causes are known
        run: list[tuple[float, int, str | None, str | None]] = []
        for edit in [*steps, None]:
            if edit is not None and edit.operation != "equal":
                index = edit.reference_index
                place = index - 0.5 if edit.operation == "insert" else float(index)
                run.append((place, index, edit.reference, edit.hypothesis))
                continue
            if run:
                reference, hypothesis = (self._join_tokens(step[side] for step in run) for side in (2, 3))
                kind = _classify_equivalent_run(reference, hypothesis, language)
                number = len(self.errors)
                for step in run:
                    kinds = (kind_of for first, last, kind_of in spans if first - 1 < step[0] < last)
                    at_place: ErrorKind = next(kinds, "sound")
                    self.errors.append(_Error(*step, kind or at_place, number))
            run = []
        if homophones is None:
            homophones = len({error.run for error in self.errors if error.kind == "homophone"})
        self.homophones = homophones

    def _join_tokens(self, tokens: Iterable[object]) -> str:
        return self._separator.join(str(token) for token in tokens if token is not None)

    def list_near_places(self) -> set[_Place]:
        """Return the places of its errors, each with all places within the tolerance."""
        reach = 1 if self.row.unit == "word" else 3  # in halves of a token
        steps = [step / 2 for step in range(-reach, reach + 1)]
        return {(error.place + step, error.kind == "sound") for error in self.errors for step in steps}

    def assign_causes(self, cause_at: Callable[[_Place], tuple[Cause, float]]) -> None:
        """Cut the runs of errors where the kind or the cause changes."""
        judged = [(error, cause_at((error.place, error.kind == "sound"))) for error in self.errors]
        groups = groupby(judged, key=lambda one: (one[0].run, one[0].kind, one[1][0]))
        self.runs = []
        for (_, kind, cause), group in groups:
            errors, causes = zip(*group, strict=True)
            at_end = any(error.hypothesis is None and error.token == self.length - 1 for error in errors)
            run = ErrorRun(
                start=errors[0].token,
                reference=self._join_tokens(error.reference for error in errors),
                hypothesis=self._join_tokens(error.hypothesis for error in errors),
                errors=len(errors),
                kind=kind,
                cause=cause,
                share=min(share for _, share in causes),
                at_end=at_end and kind == "sound",
            )
            self.runs.append(run)


def assign_causes_to_takes(
    takes: Mapping[str, Sequence[Take]], engines: Mapping[str, str]
) -> dict[str, set[_Place]]:
    """Find the causes of the errors of one utterance, and return the places where each voice has errors."""
    faulty = {}
    for voice, several in takes.items():
        counts = Counter(place for take in several for place in take.list_near_places())
        faulty[voice] = {place for place, count in counts.items() if 2 * count >= len(several)}

    @cache
    def find_cause(voice: str, place: _Place) -> tuple[Cause, float]:
        # The share of the other voices with an error there, for each engine.
        shares: dict[str, list[bool]] = defaultdict(list)
        for neighbor, places in faulty.items():
            if neighbor != voice:
                shares[engines[neighbor]].append(place in places)
        if not shares:
            return "own", float("nan")
        share_of = {engine: sum(has) / len(has) for engine, has in shares.items()}
        outside = [share for engine, share in share_of.items() if engine != engines[voice]]
        everyone = sum(share_of.values()) / len(share_of)
        if everyone > 0.5 and (not outside or max(outside) > 0.5):
            return "shared", everyone
        return ("engine" if outside and share_of.get(engines[voice], 0.0) > 0.5 else "own"), everyone

    for voice, several in takes.items():
        for take in several:
            take.assign_causes(partial(find_cause, voice))
    return faulty
