"""Errors for calls that are not in the store, with the difference to the nearest kept call."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final

import orjson

from speechlab.client._settings.store_mode import REMEDY
from speechlab.errors import ReplayMiss

if TYPE_CHECKING:
    from speechlab.store import Store

_LOOKED_AT = 2_000
_SHOWN = 60
_BEFORE = 20
_ABSENT: Final = object()
_DIGEST = re.compile("[0-9a-f]{64}")  # parameters contain recordings as digests


def miss(store: Store, operation: str, parameters: dict[str, Any], service: str) -> ReplayMiss:
    """The error for a call that is not in the store; it names the parameter that differs."""
    known = store.newest(operation, _LOOKED_AT)
    head = f"this {operation} call is not in {store.path}"
    if not known:
        return ReplayMiss(f"{head}, which holds no {operation} call at all; {REMEDY}", operation=operation)
    key, nearest = min(known, key=lambda item: _distance(parameters, item[1]))
    differing = _differing(parameters, nearest)
    if not differing:
        return _miss_of_the_same(head, store.facts(key).get("service"), operation, service)
    name = differing[0]
    more = f" (and in {', '.join(differing[1:])})" if len(differing) > 1 else ""
    here, there = _contrast(parameters.get(name, _ABSENT), nearest.get(name, _ABSENT))
    text = f"{head}: the nearest one there differs in {name}: {here} here, {there} there{more}; {REMEDY}"
    return ReplayMiss(text, operation=operation, parameter=name)


def _miss_of_the_same(head: str, asked: str | None, operation: str, service: str) -> ReplayMiss:
    """The error without a different parameter: a key also contains the service and the number of a repetition."""
    if not service:
        text = f"{head}: the same is there, but not of which service it was asked; {REMEDY}"
        return ReplayMiss(text, operation=operation, parameter="service")
    if asked == service:
        text = f"{head}: the same is there as a repetition, or from another version of the contract; {REMEDY}"
        return ReplayMiss(text, operation=operation)
    of = "another service, or as a repetition" if asked is None else repr(asked)
    text = f"{head}: the same was asked of {of}, and this is {service!r}; {REMEDY}"
    return ReplayMiss(text, operation=operation, parameter="service")


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Names of the parameters that differ in keys: first different values, then different spellings (1 and 1.0)."""
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in one.items()}
    names = [*plain, *(name for name in other if name not in plain)]
    differing = [name for name in names if not _same(plain.get(name, _ABSENT), other.get(name, _ABSENT))]
    return sorted(differing, key=lambda name: plain.get(name) == other.get(name))


def _same(one: object, other: object) -> bool:
    if one is other or isinstance(one, str) or _ABSENT in (one, other):
        return one == other
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


def _distance(one: dict[str, Any], other: dict[str, Any]) -> tuple[int, float, int]:
    names = _differing(one, other)
    unlike = 0.0
    if "text" in names:
        matcher = SequenceMatcher(None, str(one.get("text"))[:200], str(other.get("text"))[:200])
        unlike = 1.0 - matcher.quick_ratio()
    of_value = sum(one.get(name) != other.get(name) for name in names)
    return of_value, unlike, len(names)  # another spelling is nearer than another value


def _contrast(one: object, other: object) -> tuple[str, str]:
    """Two values, shortened for display so that the difference is visible."""
    here, there = _shown(one), _shown(other)
    if _looks_of(here) != _looks_of(there):
        return here, there
    show = ascii if _looks_of(repr(one)) == _looks_of(repr(other)) else repr
    texts = show(one), show(other)
    parting = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
    start = max(0, parting - _BEFORE)
    here, there = (_cut(f"{'…' if start else ''}{text[start:]}") for text in texts)
    return here, there


def _looks_of(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "not given"
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return f"{value[:12]}…"
    return _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
