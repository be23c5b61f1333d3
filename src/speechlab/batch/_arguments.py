"""Keyword arguments of the functions: listed by type for checkers, shown in signatures, and sorted."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.batch._keeping import KEEPING_DEFAULTS, KeepingOptions
from speechlab.batch._plan.operations import (
    SynthesisParameters,
    TranscriptionParameters,
    TranslationParameters,
)
from speechlab.batch._plan.parameters import defaults_of, types_of
from speechlab.batch._run.options import RUN_DEFAULTS, RunOptions
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")
_NEEDED = re.compile(r"Required\[(.*)\]")


class SynthesisPlanOptions(SynthesisParameters, KeepingOptions, total=False):
    """Arguments of :func:`speechlab.batch.plan_synthesis`."""


class TranscriptionPlanOptions(TranscriptionParameters, KeepingOptions, total=False):
    """Arguments of :func:`speechlab.batch.plan_transcription`."""


class TranslationPlanOptions(TranslationParameters, KeepingOptions, total=False):
    """Arguments of :func:`speechlab.batch.plan_translation`."""


class SynthesisOptions(SynthesisPlanOptions, RunOptions, total=False):
    """Arguments of :func:`speechlab.batch.synthesize`."""


class TranscriptionOptions(TranscriptionPlanOptions, RunOptions, total=False):
    """Arguments of :func:`speechlab.batch.transcribe`."""


class TranslationOptions(TranslationPlanOptions, RunOptions, total=False):
    """Arguments of :func:`speechlab.batch.translate`."""


def explicit(options: type) -> Callable[[F], F]:
    """Show the keyword arguments behind a function's ``**options``: in ``help``, and to completion by tab.

    Args:
        options: The TypedDict that lists them.
    """
    types, keyword = types_of(options), inspect.Parameter.KEYWORD_ONLY
    shown = [
        inspect.Parameter(name, keyword, default=default, annotation=_NEEDED.sub(r"\1", types[name]))
        for name, default in _defaults(options).items()
    ]

    def show(function: F) -> F:
        return _with_keywords(function, shown)

    return show


def described_as(original: Callable[..., Any]) -> Callable[[F], F]:
    """Give a function the description and the keyword arguments of another one that takes the same."""
    shown = [one for one in inspect.signature(original).parameters.values() if one.kind is one.KEYWORD_ONLY]

    def describe(function: F) -> F:
        function.__doc__ = original.__doc__
        return _with_keywords(function, shown)

    return describe


def _with_keywords(function: F, shown: list[inspect.Parameter]) -> F:
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
    return function


def sort_options(what: str, options: Mapping[str, Any], *lists: type) -> tuple[Any, ...]:
    """Sort the options of a call by the lists that they stand in.

    Args:
        what: What was called, for the message.
        options: The options.
        *lists: TypedDicts, each naming some of the options allowed.

    Returns:
        For each list, those of its options that were given.

    Raises:
        InvalidRequestError: An option is unknown, or one that is needed is missing.
    """
    known = {name: default for typed in lists for name, default in _defaults(typed).items()}
    if unknown := sorted(set(options) - set(known)):
        message = (
            f"{', '.join(map(repr, unknown))} is no option of {what}; they are {', '.join(sorted(known))}"
        )
        raise InvalidRequestError(message, parameter=unknown[0])
    for name, default in known.items():
        if default is inspect.Parameter.empty and name not in options:
            message = f"{what} needs {name}: a value for all rows, or the name of a column"
            raise InvalidRequestError(message, parameter=name)
    return tuple(
        {name: options[name] for name in typed.__annotations__ if name in options} for typed in lists
    )


def _defaults(options: type) -> dict[str, Any]:
    """The defaults of a list of options; ``Parameter.empty`` for those that are needed."""
    values = {**defaults_of(options), **KEEPING_DEFAULTS, **RUN_DEFAULTS}
    return {
        name: inspect.Parameter.empty if _NEEDED.fullmatch(kind) else values[name]
        for name, kind in types_of(options).items()
    }
