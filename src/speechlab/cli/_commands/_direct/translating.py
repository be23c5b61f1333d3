"""``speechlab translate``."""

from __future__ import annotations

from typing import Annotated

import typer

from speechlab.cli._commands._direct.answers import exit_if_failed, make_batch, note, read_texts
from speechlab.cli._console import print_plain
from speechlab.errors import InvalidRequestError


def translate(
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXT...", help="Texts; - reads them from the input, one in each line."),
    ],
    target_lang: Annotated[str, typer.Option("--to", help="Code of the target language.")],
    source_lang: Annotated[
        str | None,
        typer.Option("--from", help="Code of the source language. [default: by the letters and words]"),
    ] = None,
    keyword: Annotated[list[str] | None, typer.Option(help="Term to preserve; may be repeated.")] = None,
    context: Annotated[str | None, typer.Option(help="Text that helps the translation.")] = None,
) -> None:
    """Translate texts, and print a line for each. The same text is not asked for twice."""
    from speechlab import batch, connect
    from speechlab.text import guess_language

    lines = read_texts(texts, lines=True)
    source = source_lang or guess_language(lines)
    if source is None:
        message = "the language of the text is not clear; give it, as in --from en"
        raise InvalidRequestError(message, parameter="source_lang")
    if source_lang is None:
        note(f"from {source}, by the text; --from says another language")
    options = {"keywords": tuple(keyword or ())} | (
        {} if context is None else {"context": batch.Value(context)}
    )
    languages = {"source_lang": batch.Value(source), "target_lang": batch.Value(target_lang)}
    with connect() as lab:
        made = make_batch(batch.translate, lab, lines, **languages, **options)
    for text in made["translation"].fillna(""):
        print_plain(" ".join(str(text).split("\n")))
    exit_if_failed(made, [f"{line:.40}" for line in lines])
