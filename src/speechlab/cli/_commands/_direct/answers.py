"""What these commands share: texts that are read, a batch that is made, and what is said of its failures."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from speechlab.cli._console import errors, exit_on_interrupt
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.client import Client


def note(text: str) -> None:
    """Say something that is no part of the output."""
    errors.print(escape(text), soft_wrap=True)


def read_texts(given: Sequence[str], *, lines: bool = False) -> list[str]:
    """Return the texts of a command; ``-`` stands for the input, as one text or as its lines."""
    texts: list[str] = []
    for text in given:
        read = sys.stdin.read() if text == "-" else text
        texts += [line for line in read.splitlines() if line.strip()] if lines and text == "-" else [read]
    if not texts or not all(text.strip() for text in texts):
        raise InvalidRequestError("there is no text; give one, or - to read the input", parameter="texts")
    return texts


def make_batch(
    function: Callable[..., pd.DataFrame], lab: Client, table: Any, **options: Any
) -> pd.DataFrame:
    """Return the table of a batch, which shows its progress and is resumed by the same command."""
    with exit_on_interrupt(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the reasons are printed at the end
        return function(table, lab, progress=len(table) > 1, **options)


def exit_if_failed(made: pd.DataFrame, names: Sequence[str]) -> None:
    """Say which rows failed and why, and end with status 1 if any did."""
    failed = ~made["status"].isin(["ok", "cached"]).to_numpy()
    for name, error, has_failed in zip(names, made["error"], failed, strict=True):
        if has_failed:
            errors.print(f"[yellow]{escape(name)}:[/] {escape(str(error))}", soft_wrap=True)
    if failed.any():
        raise typer.Exit(1)
