"""Options: shared by several commands, made from the signatures of functions, and named in messages."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from speechlab.cli._console import print_error
from speechlab.errors import InvalidRequestError

_ARGUMENT_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_MARKUP = re.compile(r":\w+:|`")
# Annotations of arguments that are options as they are.
_OPTION_TYPES: dict[str, Any] = {
    "int": int,
    "int | None": int | None,
    "float": float,
    "float | None": float | None,
    "bool": bool,
    "str": str,
    "str | None": str | None,
    "Sequence[float]": list[float] | None,
    "int | Sequence[int]": list[int] | None,
    "Store | str | None": Path | None,
    "Lexicon | None": Path | None,
}


# Maximum length of a command's text in the list of commands; the first sentence is shown whole, and wraps.
_SHORT_HELP = 400


class Group(TyperGroup):
    """Commands in sections, whose help texts are not cut off, and whose interruption is reported."""

    sections: ClassVar[
        Mapping[str, Sequence[str]]
    ] = {}  # names of commands by their headings; empty for one section

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            commands = [(name, subcommand) for name in names if (subcommand := self.get_command(ctx, name))]
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (name, subcommand.get_short_help_str(_SHORT_HELP))
                        for name, subcommand in commands
                        if not subcommand.hidden
                    ]
                )

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # typer would end with the exit code alone, without a message
            raise typer.Abort from None


class Command(TyperCommand):
    """A command that names its option before a message about an argument."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InvalidRequestError as error:
            flags = (parameter.opts[0] for parameter in self.params if parameter.name == error.parameter)
            option = next((flag for flag in flags if flag.startswith("-")), "")
            if not option or option in error.message:
                raise
            example_value, values = error.example, []
            if example_value is not None:
                values = (
                    [f"{name}={item}" for name, item in example_value.items()]
                    if isinstance(example_value, dict)
                    else [example_value]
                )
            example = " ".join(f"{option} {value}" for value in values)
            print_error(f"{option}: {error.message}{f', as in {example}' if example else ''}")
            raise typer.Exit(2) from None


def register_command(
    app: typer.Typer, name: str, shared: Iterable[inspect.Parameter], *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command from a function; its ``**shared`` are these options, without some of them."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        own = [
            parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[parameter.name])
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        kept = [parameter for parameter in shared if parameter.name not in without]
        app.command(name, cls=Command)(wrap_with_parameters(function, [*own, *kept]))
        return function

    return register


def wrap_with_parameters(
    function: Callable[..., Any], parameters: Iterable[inspect.Parameter]
) -> Callable[..., Any]:
    """Return a function of these parameters, as typer reads them, that calls another with all of them by name."""
    signature = list(parameters)

    def perform(**options: Any) -> Any:
        return function(**options)

    perform.__doc__ = function.__doc__
    perform.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]  # typer reads it
    perform.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    return perform


def option(name: str, kind: Any, default: Any, *flags: str, **settings: Any) -> inspect.Parameter:
    """Build a parameter that typer makes an option of, of type ``kind``; ``settings`` go to ``typer.Option``."""
    annotation = Annotated[kind, typer.Option(*flags, **settings)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def check_writable(path: Path | None, parameter: str) -> None:
    """Refuse a file that cannot be written, before the work and not after it."""
    if path is None:
        return
    if path.is_dir():
        reason = "it is a folder"
    elif not path.parent.is_dir():
        reason = f"there is no folder {path.parent}"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        reason = "it may not be written"
    else:
        return
    raise InvalidRequestError(f"{path} cannot be written: {reason}", parameter=parameter)


def to_option(argument: inspect.Parameter, text: str) -> inspect.Parameter | None:
    """Return the option that an argument of a function is; None for an argument that no option can give."""
    kind = _OPTION_TYPES.get(str(argument.annotation))
    if kind is None:
        return None
    needed = argument.default is argument.empty
    several = kind in {list[float] | None, list[int] | None}
    default = None if several else argument.default
    flags = [f"--{argument.name.replace('_', '-')}"] if kind is bool else []
    least = {"min": 0} if kind in {int, int | None} else {}
    text += " May be repeated." if several else ""
    return option(argument.name, kind, ... if needed else default, *flags, help=text, **least)


def parse_argument_help(function: Callable[..., object]) -> dict[str, str]:
    """Return what a docstring says of each argument, in one sentence."""
    entries = (inspect.getdoc(function) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    texts = {entry[1]: " ".join(entry[2].split()) for entry in _ARGUMENT_ENTRY.finditer(entries)}
    sentences = {name: text.partition(". ")[0].partition("; None")[0] for name, text in texts.items()}
    return {name: f"{_MARKUP.sub('', text).rstrip('.')}." for name, text in sentences.items()}
