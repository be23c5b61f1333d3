"""Hashes of functions: of their code and of the values that they hold, equal in all processes."""

from __future__ import annotations

import hashlib
import re
from functools import partial
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from speechlab.text._normalizer import Normalizer

_PLAIN = (str, bytes, int, float, complex, type(None), PurePath, re.Pattern, ModuleType, type, Normalizer)
_BUILT_IN = (BuiltinFunctionType, MethodDescriptorType)
_DEPTH = 8


def hash_function(function: object, *, module: bool = False) -> str:
    """Eight hexadecimal digits of the SHA-256 of a function's code and values.

    The contents of lists, dicts and sets do not count: they may be caches that grow with each text.
    """
    content = (function, _sort_items(_collect_global_values(function))) if module else function
    return hashlib.sha256(repr(_identify_value(content)).encode("utf-8", "replace")).hexdigest()[:8]


def list_unhashed_value_types(function: object) -> dict[str, str]:
    """Return the values behind a function whose content no hash of it can contain: their types, by name."""
    held = _collect_global_values(function)
    inner = function.func if isinstance(function, partial) else function
    if isinstance(function, partial):
        held |= {f"argument {at}": value for at, value in enumerate(function.args)} | function.keywords
    if isinstance(inner, MethodType):
        held |= getattr(inner.__self__, "__dict__", {})
    elif isinstance(inner, FunctionType):
        cells = zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True)
        held |= {name: _get_cell_value(cell) for name, cell in cells}
    else:
        held |= getattr(inner, "__dict__", {}) if not isinstance(inner, type) else {}
    return {
        name: type(value).__qualname__
        for name, value in sorted(held.items())
        if not _is_plain_or_function(value)
    }


def _collect_global_values(function: object) -> dict[str, Any]:
    """The values that a function reads from its module, and those that its own functions read there, by name."""
    values: dict[str, Any] = {}
    waiting = [function]
    while waiting:
        value = waiting.pop()
        value = value.func if isinstance(value, partial) else value
        value = value.__func__ if isinstance(value, MethodType) else value
        if isinstance(value, type) or not isinstance(value, FunctionType):
            kind = value if isinstance(value, type) else type(value)
            members = () if kind.__module__ == "builtins" else vars(kind).values()
            waiting += [member for member in members if isinstance(member, FunctionType)]
            continue
        for name in _list_global_names(value.__code__):
            if name in value.__globals__ and name not in values:
                values[name] = value.__globals__[name]
                if isinstance(values[name], FunctionType) and values[name].__module__ == value.__module__:
                    waiting.append(values[name])
    return values


def _is_plain_or_function(value: object) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_is_plain_or_function, value))
    return isinstance(value, (*_PLAIN, *_BUILT_IN, FunctionType))


def _list_global_names(code: CodeType) -> list[str]:
    inner = [
        name
        for constant in code.co_consts
        if isinstance(constant, CodeType)
        for name in _list_global_names(constant)
    ]
    return [*code.co_names, *inner]


def _identify_value(value: object, depth: int = _DEPTH) -> object:
    """Return the identity of a function or value, equal in all processes."""
    if value is None or isinstance(value, str | bytes | int | float):
        return value
    if isinstance(value, Normalizer):
        return value.signature
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, tuple):
        return [_identify_value(cell, depth - 1) for cell in value]
    if isinstance(value, frozenset):
        return sorted(repr(_identify_value(cell, depth - 1)) for cell in value)
    return _identify_value(_list_identity_parts(value), depth - 1)


def _list_identity_parts(value: object) -> tuple[object, ...]:
    if isinstance(value, ModuleType):
        return (value.__name__,)
    if isinstance(value, _BUILT_IN):
        return value.__module__ if isinstance(value, BuiltinFunctionType) else None, value.__qualname__
    if isinstance(value, type):
        methods = {name: member for name, member in vars(value).items() if isinstance(member, FunctionType)}
        return value.__module__, value.__qualname__, _sort_items(methods)
    if isinstance(value, re.Pattern):
        return value.pattern, value.flags
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, value.co_consts
    if isinstance(value, FunctionType):
        held = tuple(_get_cell_value(cell) for cell in value.__closure__ or ())
        return value.__code__, value.__defaults__, _sort_items(value.__kwdefaults__), held
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, partial):
        return value.func, value.args, _sort_items(value.keywords)
    call = type(value).__call__ if callable(value) else None
    code = call.__code__ if isinstance(call, FunctionType) else None
    return type(value).__qualname__, code, _sort_items(getattr(value, "__dict__", None))


def _sort_items(values: Any) -> tuple[object, ...]:
    return tuple(sorted((values or {}).items(), key=lambda item: str(item[0])))


def _get_cell_value(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return None
