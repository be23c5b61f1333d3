"""Causes of errors: the voice, its engine, or a later stage.

A recogniser or a normaliser makes an error at the same place of the text for most voices. So each error is compared
with the other voices at its place. The first rule that applies gives the cause:

1. *shared*: most of the other voices have an error there, where each engine counts once, and so do most voices of
   another engine.
2. *engine*: most of the other voices of its engine have an error there.
3. *own*: all other errors.

"Most" is more than half. With one engine, the errors of the engine cannot be separated from those of the recogniser,
and both are *shared*. For an engine with one voice, the errors of the engine are *own* errors of the voice. A place
is a token of the reference, with a tolerance of half a word, or of one and a half characters, kana or syllables,
because an alignment may shift an error by that much. A voice with several takes of an utterance has an error at a
place if at least half of its takes have one. Errors of the kind *sound* are compared only with each other, and so are
errors of all other kinds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from speechlab.metrics._differences.alike import ErrorKind, Kinds
from speechlab.metrics._rates.tables import aligned
from speechlab.metrics._signatures import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from speechlab.metrics._rates.tables import ScoredRow

Cause: TypeAlias = Literal["shared", "engine", "own"]


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


_Place: TypeAlias = tuple[float, bool]
"""A place in the reference, and whether an error there is of the kind ``sound``."""


class Take:
    """One hypothesis of one voice.

    Attributes:
        row: Its scored row.
        length: Tokens of the reference.
        homophones: Number of places with another word that sounds alike.
    """

    def __init__(self, row: ScoredRow) -> None:
        found = aligned(row)
        language = parts(row.signature)["lang"]
        self.row = row
        self.length = len(found.reference)
        self._separator = found.separator
        kinds = Kinds(row.reference, row.hypothesis, row.unit, language)
        self.homophones = kinds.homophones or 0
        self.errors: list[_Error] = []
        run: list[tuple[float, int, str | None, str | None]] = []
        for edit in [*found, None]:
            if edit is not None and edit.operation != "equal":
                index = edit.reference_index
                place = index - 0.5 if edit.operation == "insert" else float(index)
                run.append((place, index, edit.reference, edit.hypothesis))
                continue
            if run:
                said, heard = (self._join(one[side] for one in run) for side in (2, 3))
                found_kinds = kinds.of([one[0] for one in run], said, heard)
                number = len(self.errors)
                self.errors += [
                    _Error(*one, kind, number) for one, kind in zip(run, found_kinds, strict=True)
                ]
            run = []
        if kinds.homophones is None:
            self.homophones = len({one.run for one in self.errors if one.kind == "homophone"})

    def _join(self, tokens: Iterable[object]) -> str:
        return self._separator.join(str(one) for one in tokens if one is not None)

    def near(self) -> set[_Place]:
        """The places of its errors, each with all places within the tolerance."""
        reach = 1 if self.row.unit == "word" else 3  # in halves of a token
        steps = [step / 2 for step in range(-reach, reach + 1)]
        return {(one.place + step, one.kind == "sound") for one in self.errors for step in steps}

    def runs(self, shares: Sequence[tuple[Cause, float]]) -> list[ErrorRun]:
        """Its runs of errors, cut where the kind or the cause changes."""
        judged = zip(self.errors, shares, strict=True)
        parts = groupby(judged, key=lambda one: (one[0].run, one[0].kind, one[1][0]))
        return [self._run(cause, list(part)) for (_, _, cause), part in parts]

    def _run(self, cause: Cause, judged: Sequence[tuple[_Error, tuple[Cause, float]]]) -> ErrorRun:
        errors = [error for error, _ in judged]
        kind = errors[0].kind
        lost = any(one.hypothesis is None and one.token == self.length - 1 for one in errors)
        return ErrorRun(
            start=errors[0].token,
            reference=self._join(one.reference for one in errors),
            hypothesis=self._join(one.hypothesis for one in errors),
            errors=len(errors),
            kind=kind,
            cause=cause,
            share=min(share for _, (_, share) in judged),
            at_end=lost and kind == "sound",
        )


def causes(
    takes: Mapping[str, Sequence[Take]],
    faulty: Mapping[str, set[_Place]],
    engines: Mapping[str, str],
) -> dict[str, list[list[ErrorRun]]]:
    """The causes of the errors of one utterance."""

    @cache
    def cause(voice: str, place: _Place) -> tuple[Cause, float]:
        return _cause(engines[voice], _shares(voice, place, faulty, engines))

    return {
        voice: [
            one.runs([cause(voice, (error.place, error.kind == "sound")) for error in one.errors])
            for one in given
        ]
        for voice, given in takes.items()
    }


def faulty_places(takes: Sequence[Take]) -> set[_Place]:
    """The places where a voice has errors in at least half of its takes."""
    counts = Counter(place for one in takes for place in one.near())
    return {place for place, count in counts.items() if 2 * count >= len(takes)}


def _shares(
    voice: str, place: _Place, faulty: Mapping[str, set[_Place]], engines: Mapping[str, str]
) -> dict[str, float]:
    """The share of the other voices with an error at a place, for each engine."""
    found: dict[str, list[bool]] = defaultdict(list)
    for other, places in faulty.items():
        if other != voice:
            found[engines[other]].append(place in places)
    return {engine: sum(has) / len(has) for engine, has in found.items()}


def _cause(own: str, shares: Mapping[str, float]) -> tuple[Cause, float]:
    if not shares:
        return "own", float("nan")
    outside = [share for engine, share in shares.items() if engine != own]
    everyone = sum(shares.values()) / len(shares)
    if everyone > 0.5 and (not outside or max(outside) > 0.5):
        return "shared", everyone
    return ("engine" if outside and shares.get(own, 0.0) > 0.5 else "own"), everyone
