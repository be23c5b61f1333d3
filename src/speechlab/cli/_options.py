"""Options shared by several commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    import typer


def command(
    app: typer.Typer, name: str, shared: Callable[..., None], *, without: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command from a function; its ``**shared`` are the options of another function.

    Args:
        app: The group of commands.
        name: Name of the command.
        shared: The function that lists the options.
        without: A shared option that this command does not have.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = {one: get_type_hints(one, include_extras=True) for one in (function, shared)}
        parameters = [
            one.replace(kind=one.KEYWORD_ONLY, annotation=hints[where][one.name])
            for where in hints
            for one in inspect.signature(where).parameters.values()
            if one.kind is not one.VAR_KEYWORD and one.name != without
        ]

        def perform(**options: Any) -> None:
            function(**options)

        perform.__doc__ = function.__doc__
        perform.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        perform.__annotations__ = {one.name: one.annotation for one in parameters}
        app.command(name)(perform)
        return function

    return register
