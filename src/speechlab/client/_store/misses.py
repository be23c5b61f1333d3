"""Errors for calls that are not in the store, naming the difference to the nearest one that is."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from speechlab.client._settings.store_mode import REMEDY
from speechlab.errors import ReplayMiss

if TYPE_CHECKING:
    from speechlab.store import Store

_LOOKED_AT = 2_000
_SHOWN = 60
_DIGEST = re.compile("[0-9a-f]{64}")  # recordings are told apart by these


def miss(store: Store, operation: str, parameters: dict[str, Any], service: str) -> ReplayMiss:
    """The error for a call that is not in the store, naming the parameter that makes the difference."""
    known = store.newest(operation, _LOOKED_AT)
    head = f"this {operation} call is not in {store.path}"
    if not known:
        return ReplayMiss(f"{head}, which holds no {operation} call at all; {REMEDY}", operation=operation)
    key, nearest = min(known, key=lambda item: _distance(parameters, item[1]))
    differing = _differing(parameters, nearest)
    if not differing:
        there = store.facts(key).get("service", "another service")
        text = f"{head}: the same was asked of {there!r}, and this is {service!r}; {REMEDY}"
        return ReplayMiss(text, operation=operation, parameter="service")
    name = differing[0]
    more = f" (and in {', '.join(differing[1:])})" if len(differing) > 1 else ""
    here, there = _shown(parameters.get(name)), _shown(nearest.get(name))
    text = f"{head}: the nearest one there differs in {name}: {here} here, {there} there{more}; {REMEDY}"
    return ReplayMiss(text, operation=operation, parameter=name)


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in one.items()}
    names = [*plain, *(name for name in other if name not in plain)]
    return [name for name in names if plain.get(name) != other.get(name)]


def _distance(one: dict[str, Any], other: dict[str, Any]) -> tuple[int, float]:
    names = _differing(one, other)
    unlike = 0.0
    if "text" in names:
        matcher = SequenceMatcher(None, str(one.get("text"))[:200], str(other.get("text"))[:200])
        unlike = 1.0 - matcher.quick_ratio()
    return len(names), unlike


def _shown(value: object) -> str:
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return f"{value[:12]}…"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
