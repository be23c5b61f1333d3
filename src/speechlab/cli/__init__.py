"""The ``speechlab`` command.

Each subcommand is one module that parses arguments, calls one package and prints. Python offers the same functions
under the same names. An error of speechlab ends the command with one line on stderr and exit code 1, or 2 for a wrong
command line or configuration, never with a traceback.
"""

from __future__ import annotations

from typing import Any

from speechlab._door import set_module_to_room as _name_after

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    import gc
    import sys

    if sys.argv[1:] == ["--version"]:  # at once: the subcommands take ten times as long to load
        from speechlab import __version__

        print(f"speechlab {__version__}")
        return
    # Imports make many objects that stay: the search for garbage among them takes an eighth of a short command.
    gc.set_threshold(50_000)
    try:
        from speechlab.cli._app import run
    except ModuleNotFoundError as error:
        from speechlab._require import explain_missing

        raise SystemExit(f"Error: {explain_missing(error)}") from None

    run()


_name_after(__name__, globals(), __all__)


def __getattr__(name: str) -> Any:
    """Return the Typer application, for tests: all subcommands are loaded with it."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from speechlab.cli._app import app

    return app
