"""The command and its subcommands."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from speechlab import __version__
from speechlab.cli._commands import (
    batch,
    conform,
    doctor,
    engines,
    keys,
    lab,
    login,
    serve,
    usage,
)
from speechlab.cli._commands._studies import quickstart, study
from speechlab.cli._console import errors
from speechlab.cli._words import Command
from speechlab.errors import ConfigurationError, InvalidRequestError, SpeechLabError

_UsageError: Any = typer.BadParameter.__mro__[2]
"""Raised by a wrong command line: the base of typer's errors, which it does not export."""

_SHORT_HELP = 400
"""Maximum length of a command's text in the list of commands; the first sentence is shown whole, and wraps."""


class _Group(TyperGroup):
    """Commands whose help texts are not cut off, and whose interruption is reported."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        names = self.list_commands(ctx)
        commands = [(name, found) for name in names if (found := self.get_command(ctx, name))]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, found.get_short_help_str(_SHORT_HELP))
                    for name, found in commands
                    if not found.hidden
                ]
            )

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # typer would end with the exit code alone, without a message
            raise typer.Abort from None


app = typer.Typer(
    name="speechlab",
    cls=_Group,
    help="Speech services in notebooks and tables: synthesise, recognise, translate, compare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    # rich's panels cut off long options at 80 columns, call a switch <bool>, and lose what stands in brackets
    rich_markup_mode=None,
)
for _name, _function in (
    ("quickstart", quickstart.quickstart),
    ("serve", serve.serve),
    ("lab", lab.lab),
    ("login", login.login),
    ("doctor", doctor.doctor),
    ("usage", usage.usage),
    ("conform", conform.conform),
):
    app.command(_name, cls=Command)(_function)
for _name, _part in (
    ("batch", batch.app),
    ("engines", engines.app),
    ("keys", keys.app),
    ("study", study.app),
):
    _part.rich_markup_mode = None
    app.add_typer(_part, name=_name, cls=_Group)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"speechlab {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def run() -> None:
    """Run the command; errors of speechlab become one line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a character shows a question mark
    try:
        code = app(standalone_mode=False)
    except SpeechLabError as error:
        errors.print(f"[bold red]error:[/] {_escaped(str(error))}", soft_wrap=True)
        sys.exit(2 if isinstance(error, ConfigurationError | InvalidRequestError) else 1)
    except (KeyboardInterrupt, typer.Abort):
        errors.print("stopped")
        sys.exit(130)
    except _UsageError as error:
        error.show()
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
