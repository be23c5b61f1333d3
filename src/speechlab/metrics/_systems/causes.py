"""Whose an error is: the voice's, its engine's, or whoever's comes after the voice.

What a recogniser or a normaliser gets wrong whatever the voice, it gets wrong at one place of the text for most
voices. So each error is held against the other voices at its place, by the first rule that holds:

1. Most of the others have an error there, each engine counting once, and most voices of another engine: *shared*.
2. Most of the other voices of its engine do, and most other engines do not: *engine*.
3. It is the voice's *own*.

"Most" is more than half. With one engine its faults cannot be told from the recogniser's, and both are shared; of
an engine with one voice they are the voice's own. A place is a token of the reference, give or take ``NEAR`` tokens,
since an alignment may shift an error by that much. A voice that spoke an utterance several times has an error there
if it has it in at least half of the takes. What only looks wrong (kinds other than *sound*) is held against errors
that do, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from speechlab.metrics._differences.alike import ErrorKind, Kinds
from speechlab.metrics._rates.tables import aligned
from speechlab.metrics._signatures import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from speechlab.metrics._rates.tables import ScoredRow

Cause: TypeAlias = Literal["shared", "engine", "own"]
NEAR = {"word": 0.5}
"""How far two errors may lie apart and be at one place, in tokens; 1.5 for characters, kana and syllables."""
_NEAR = 1.5


class ErrorRun(NamedTuple):
    """A run of errors of one cause.

    Attributes:
        start: Index of its first token in the reference; of an insertion, of the token that follows.
        reference: Its tokens in the reference; may be empty.
        hypothesis: Its tokens in the hypothesis; may be empty.
        errors: How many.
        kind: What it is about.
        cause: Whose it is.
        share: Which part of the other voices has an error there, each engine counting once; NaN without others.
        at_end: Whether the last token of the reference is left out.
    """

    start: int
    reference: str
    hypothesis: str
    errors: int
    kind: ErrorKind
    cause: Cause
    share: float
    at_end: bool


class _Error(NamedTuple):
    place: float
    token: int
    reference: str | None
    hypothesis: str | None
    kind: ErrorKind
    run: int


_Place: TypeAlias = tuple[float, bool]
"""A place in the reference, and whether something sounds wrong there."""


class Take:
    """One hypothesis of one voice.

    Attributes:
        row: Its scored row.
        length: Tokens of the reference.
        homophones: Places that sound alike and are another word.
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
                kind = kinds.of(run[0][1], said, heard)
                self.errors += [_Error(*one, kind, len(self.errors)) for one in run]
            run = []
        if kinds.homophones is None:
            self.homophones = len({one.run for one in self.errors if one.kind == "homophone"})

    def _join(self, tokens: Iterable[object]) -> str:
        return self._separator.join(str(one) for one in tokens if one is not None)

    def near(self) -> set[_Place]:
        """The places where it has an error, each widened to those that are as good as the same."""
        reach = round(2 * NEAR.get(self.row.unit, _NEAR))
        steps = [step / 2 for step in range(-reach, reach + 1)]
        return {(one.place + step, one.kind == "sound") for one in self.errors for step in steps}

    def faults(self, shares: Sequence[tuple[Cause, float]]) -> list[ErrorRun]:
        """Its runs of errors, cut where the cause changes."""
        found: list[ErrorRun] = []
        before: tuple[int, Cause] | None = None
        for error, (cause, share) in zip(self.errors, shares, strict=True):
            at_end = error.hypothesis is None and error.token == self.length - 1
            if before == (error.run, cause):
                last = found.pop()
                found.append(
                    last._replace(
                        reference=self._join(one for one in (last.reference, error.reference) if one),
                        hypothesis=self._join(one for one in (last.hypothesis, error.hypothesis) if one),
                        errors=last.errors + 1,
                        share=min(last.share, share),
                        at_end=last.at_end or at_end,
                    )
                )
            else:
                texts = error.reference or "", error.hypothesis or ""
                found.append(ErrorRun(error.token, *texts, 1, error.kind, cause, share, at_end))
            before = error.run, cause
        return found


def causes(
    takes: Mapping[str, Sequence[Take]], engines: Mapping[str, str]
) -> dict[str, list[list[ErrorRun]]]:
    """Whose the errors of one utterance are.

    Args:
        takes: The takes of each voice.
        engines: The engine of each voice.

    Returns:
        For each voice the faults of each of its takes.
    """
    faulty = {voice: _faulty(given) for voice, given in takes.items()}

    @cache
    def cause(voice: str, place: _Place) -> tuple[Cause, float]:
        return _cause(engines[voice], _shares(voice, place, faulty, engines))

    return {
        voice: [
            one.faults([cause(voice, (error.place, error.kind == "sound")) for error in one.errors])
            for one in given
        ]
        for voice, given in takes.items()
    }


def _faulty(takes: Sequence[Take]) -> set[_Place]:
    """Where a voice has errors in at least half of its takes."""
    counts = Counter(place for one in takes for place in one.near())
    return {place for place, count in counts.items() if 2 * count >= len(takes)}


def _shares(
    voice: str, place: _Place, faulty: Mapping[str, set[_Place]], engines: Mapping[str, str]
) -> dict[str, float]:
    """Which part of the other voices of each engine has an error at a place."""
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
