"""The command and its subcommands."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from speechlab import __version__
from speechlab.cli import (
    _batch,
    _conform,
    _doctor,
    _engines,
    _keys,
    _lab,
    _login,
    _quickstart,
    _serve,
    _usage,
)
from speechlab.cli._console import errors
from speechlab.errors import ConfigurationError, InvalidRequestError, SpeechLabError

__all__ = ["app", "run"]

_UsageError: Any = typer.BadParameter.__mro__[2]
"""What a wrong command line raises: the base of typer's errors, which it does not export."""

app = typer.Typer(
    name="speechlab",
    help="Speech services in notebooks and tables: synthesise, recognise, translate, compare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("quickstart")(_quickstart.quickstart)
app.command("serve")(_serve.serve)
app.command("lab")(_lab.lab)
app.command("login")(_login.login)
app.command("doctor")(_doctor.doctor)
app.command("usage")(_usage.usage)
app.command("conform")(_conform.conform)
app.add_typer(_batch.app, name="batch")
app.add_typer(_engines.app, name="engines")
app.add_typer(_keys.app, name="keys")


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
            stream.reconfigure(errors="replace")  # a terminal without the sign for it shows a question mark
    try:
        code = app(standalone_mode=False)
    except SpeechLabError as error:
        errors.print(f"[bold red]error:[/] {_escaped(str(error))}", soft_wrap=True)
        sys.exit(2 if isinstance(error, ConfigurationError | InvalidRequestError) else 1)
    except (KeyboardInterrupt, typer.Abort):
        errors.print("stopped; what was finished is kept")
        sys.exit(130)
    except _UsageError as error:
        error.show()
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
