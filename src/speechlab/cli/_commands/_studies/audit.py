"""``speechlab audit``: which ranks of published predictions hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from speechlab.cli._console import print_headline, say


def audit(
    source: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Folders of predictions, files, or saved reports.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="REPORT", help="Folder of the report, or one page that ends in .html."),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language code of the texts; Japanese and Chinese are found.")
    ] = None,
    normalize: Annotated[str, typer.Option(help="Normalizer, such as open-asr.")] = "auto",
    title: Annotated[str, typer.Option(help="Title of the report.")] = "Audit",
) -> None:
    """Say of published predictions which ranks hold, which are chance, and who follows wrong references."""
    from speechlab import evaluate

    if out is not None:
        evaluate.Report.check_path(out)
    report = evaluate.audit(source, language=language, normalize=normalize, title=title)
    say(report.answer)
    print_headline(report.title, report.headline())
    for sentence in (*report.findings, *report.notes):
        say(str(sentence))
    if out is not None:
        say(f"report: {report.save(out)}")
