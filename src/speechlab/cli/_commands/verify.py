"""``speechlab verify``: whether the numbers of a report follow from its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from speechlab.cli._console import build_empty_table, console, say
from speechlab.errors import InvalidRequestError, StoreError

# Maximum number of places that are listed.
_MAX_PLACES = 20


def verify(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A page or a folder that report.save wrote.")],
    store: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the store of its batches, whose replies are compared with the rows, too."
        ),
    ] = None,
) -> int:
    """Compute every number of a saved report again from the rows in it, without a network, and compare.

    The exit status is 0 if all are equal, 1 if any differs, and 2 if there is nothing to compute them from.
    """
    from speechlab.evaluate import verify as verified

    try:
        verdict = verified(path, store=store)
    except StoreError as error:  # 1 would say that a number differs
        raise InvalidRequestError(str(error), parameter="path") from error
    say(str(verdict))
    if len(verdict.unequal) > 1:
        table = build_empty_table("", "place", "reported", "recomputed")
        for row in verdict.unequal.head(_MAX_PLACES).itertuples(index=False):
            table.add_row(*(escape(f"{cell:.80}") for cell in row))
        console.print(table)
    return 0 if verdict else 1
