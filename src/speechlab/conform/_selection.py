"""The list of all checks, their selection, and the statements that no check covers."""

from __future__ import annotations

from functools import cache

from speechlab.conform._http_checks import (
    access,
    recognition,
    segments,
    sound,
    speech,
    sse,
    translation,
    voices,
)
from speechlab.conform._model import Check
from speechlab.conform._realtime_checks import frames, handshake, session, speaking

_AREAS = (
    *(access, voices, speech, sound, recognition, segments, translation, sse),
    *(handshake, session, speaking, frames),
)

_LOAD = "needs a very high load, which this tool never makes"
_FAULT = "needs the failure of a backend at a certain moment, which cannot be chosen from outside"
_INSIDE = "visible only inside the service"
_SETTINGS = "needs a service with other settings"

OUT_OF_REACH: dict[int, str] = {
    16: _LOAD,
    17: f"the metered amounts are {_INSIDE}",
    26: "needs a voice that is switched off during the run",
    46: _FAULT,
    53: _SETTINGS,
    63: "needs a service without its models",
    72: f"the options of an engine are {_INSIDE}",
    86: f"{_SETTINGS}, and {_FAULT}",
    87: "needs a harmful recording, which this tool never sends",
    97: "the preservation of terms is a question of quality, for a study",
    122: _LOAD,
    123: "needs a stop of the service",
    147: _FAULT,
    148: _FAULT,
    152: f"{_LOAD}; {_FAULT}",
    153: f"cancellation and metering after a client has left are {_INSIDE}",
    163: "needs a connection that is not read for minutes",
}
"""Statements that cannot be checked from outside without harm, and the reasons."""


@cache
def checks() -> tuple[Check, ...]:
    """Return every check, in the order of the first statement of each."""
    all_checks = [value for area in _AREAS for value in vars(area).values() if isinstance(value, Check)]
    twice = {each.id for each in all_checks if sum(namesake.id == each.id for namesake in all_checks) > 1}
    if twice:
        raise ValueError(f"there are two checks named {', '.join(sorted(twice))}")
    return tuple(sorted(all_checks, key=lambda each: each.statements[0]))


def chosen(only: str | None = None, *, quick: bool = False) -> tuple[Check, ...]:
    """Return checks by number or id.

    Args:
        only: Numbers, ranges and ids with commas, such as ``"20-46,115,43-framing"``; None for all.
        quick: Leave out checks that are slow or need many calls.

    Raises:
        ValueError: An item is neither a number, nor a range, nor an id.

    Example:
        >>> sorted({check.area for check in chosen("103-107")})
        ['sse']
        >>> len(chosen(quick=True)) < len(chosen())
        True
    """
    candidates = [each for each in checks() if each.quick or not quick]
    if only is None:
        return tuple(candidates)
    numbers: set[int] = set()
    names: set[str] = set()
    ids = {each.id for each in checks()}
    for item in filter(None, (text.strip() for text in only.split(","))):
        low, dash, high = item.partition("-")
        if low.isdigit() and (not dash or high.isdigit()):
            numbers.update(range(int(low), int(high if dash else low) + 1))
        elif item in ids:
            names.add(item)
        else:
            raise ValueError(f"{item!r} is neither a number, nor a range like 20-46, nor the id of a check")
    return tuple(each for each in candidates if each.id in names or numbers & set(each.statements))
