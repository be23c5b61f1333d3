"""Options shared by several commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, get_type_hints

from speechlab.cli._words import Command

if TYPE_CHECKING:
    import typer


def command(
    app: typer.Typer, name: str, shared: Callable[..., None], *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command from a function; its ``**shared`` are the options of another function.

    An option that both have is the command's own, and comes to the function by its name.

    Args:
        app: The group of commands.
        name: Name of the command.
        shared: The function that lists the options.
        without: Shared options that this command does not have.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = {one: get_type_hints(one, include_extras=True) for one in (function, shared)}
        found: dict[str, inspect.Parameter] = {}
        for where in hints:
            for one in inspect.signature(where).parameters.values():
                if one.kind is not one.VAR_KEYWORD and one.name not in {*without, *found}:
                    kept = one.replace(kind=one.KEYWORD_ONLY, annotation=hints[where][one.name])
                    found[one.name] = kept
        parameters = list(found.values())

        def perform(**options: Any) -> None:
            function(**options)

        perform.__doc__ = function.__doc__
        perform.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        perform.__annotations__ = {one.name: one.annotation for one in parameters}
        app.command(name, cls=Command)(perform)
        return function

    return register
