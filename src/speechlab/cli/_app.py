"""The command and its subcommands."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

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
    verify,
)
from speechlab.cli._commands._direct import speaking, transcribing, translating
from speechlab.cli._commands._studies import audit, quickstart, study, watch
from speechlab.cli._console import errors, print_error
from speechlab.cli._options import Command, Group
from speechlab.errors import ConfigurationError, InvalidRequestError, SpeechLabError

# Raised by a wrong command line: the base of typer's errors, which it does not export.
_UsageError: Any = typer.BadParameter.__mro__[2]


class RootGroup(Group):
    """The commands by what they are for."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {
        "Use": ("quickstart", "say", "transcribe", "translate", "voices", "batch", "lab", "login"),
        "Evaluate": ("study", "audit", "watch", "verify"),
        "Serve": ("serve", "engines", "keys", "usage"),
        "Check": ("doctor", "conform"),
    }


def _find_documentation() -> str:
    """Return where the documentation lies: in this checkout, or in the repository."""
    pages = Path(__file__).parents[3] / "docs" / "README.md"
    return str(pages) if pages.is_file() else "docs/README.md in the repository of speechlab"


app = typer.Typer(
    name="speechlab",
    cls=RootGroup,
    epilog=f"Documentation: {_find_documentation()}",
    help="Speech services in notebooks and tables: synthesize, recognize, translate, compare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    # rich's panels cut off long options at 80 columns, call a switch <bool>, and lose text in brackets
    rich_markup_mode=None,
)
for _name, _function in (
    ("quickstart", quickstart.quickstart),
    ("say", speaking.say),
    ("transcribe", transcribing.transcribe),
    ("translate", translating.translate),
    ("voices", speaking.voices),
    ("serve", serve.serve),
    ("lab", lab.lab),
    ("login", login.login),
    ("doctor", doctor.doctor),
    ("usage", usage.usage),
    ("conform", conform.conform),
    ("verify", verify.verify),
    ("watch", watch.watch),
    ("audit", audit.audit),
):
    app.command(_name, cls=lab.PassingCommand if _name == "lab" else Command)(_function)
for _name, _subcommands, _group in (
    ("batch", batch.app, Group),
    ("engines", engines.app, Group),
    ("keys", keys.app, Group),
    ("study", study.app, study.StudyGroup),
):
    _subcommands.rich_markup_mode = None
    app.add_typer(_subcommands, name=_name, cls=_group)


def _print_version_and_exit(wanted: bool) -> None:
    if wanted:
        typer.echo(f"speechlab {__version__}")
        raise typer.Exit


@app.callback()
def _declare_root_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version_and_exit, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    del version


def run() -> None:
    """Run the command; errors of speechlab and of the system (a full disk) become one line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a character shows a question mark
    try:
        code = app(standalone_mode=False)
    except SpeechLabError as error:
        print_error(str(error))
        sys.exit(2 if isinstance(error, ConfigurationError | InvalidRequestError) else 1)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print_error(f"{place}{error.strerror or str(error) or type(error).__name__}")
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        errors.print("stopped")
        sys.exit(130)
    except _UsageError as error:
        error.show()
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)
