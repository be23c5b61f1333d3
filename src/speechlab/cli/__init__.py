"""The ``speechlab`` command.

Each subcommand is one module; it parses, calls one room and prints. What it does can be done from Python with the
same names. Errors of speechlab end it with one line on stderr and the exit code 1 (2 where the command line or the
machine is set wrongly), never with a traceback.
"""

from __future__ import annotations

from speechlab._door import name_after as _name_after

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    from speechlab.cli._app import run

    run()


_name_after(__name__, globals(), __all__)
