"""A study performed for the command line: its table read, its report written, and the status that it ends with."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from speechlab._arguments import is_missing
from speechlab.cli._commands._studies.systems import connected
from speechlab.cli._console import console, errors, number, plain_table, stages
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from speechlab.evaluate import Changes, Report

WORSE = 4
"""Exit status where ``--fail-if`` has found something."""
_UNTIMED = "not both reports timed the same items, so nothing can be said of speed; give --speed 6 to both"
_KINDS_OF_ERRORS = 3
_FIGURES = (
    *(
        "Texts",
        "chrF",
        "Utterances",
        "Error rate",
        "95 % interval",
        "First sound (s)",
        "Text (s)",
        "RTF",
        "First in",
        "Its own",
    ),
    *("Pairs", "Earlier", "Now", "Difference", "p (Holm)"),
)
"""Columns of headlines that hold numbers."""


def performed(
    study: str,
    source: Path,
    out: Path,
    given: dict[str, Any],
    *,
    earlier: Path | None,
    fail_if: Sequence[str] | None,
    language: str | None,
    split: list[str] | None,
    sample: int | None,
    seed: int,
    store: Path | None,
    concurrency: int,
    give_up_after_s: float | None,
    columns: Mapping[str, str | None] = MappingProxyType({}),
    services: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> None:
    """Read the table, make the study, and write its report."""
    from speechlab import evaluate

    if study == "speech_to_speech" and earlier is not None:
        message = "reports of speech to speech are not compared with each other; leave --earlier out"
        raise InvalidRequestError(message, parameter="earlier")
    before = _earlier(earlier, fail_if or (), timed=bool(given.get("speed")))
    rows = _rows(source, language, split, sample, seed)
    missing = {name: value for name, value in columns.items() if value and name not in rows.columns}
    rows = rows.assign(**missing)
    with connected(*services) as lab, stages() as told:
        given |= {
            "store": None if store is None else str(store),
            "concurrency": concurrency,
            "give_up_after_s": give_up_after_s,
        }
        report: Report
        if study == "recognition":  # one stage, whose progress has no name
            report = evaluate.recognition(
                lab, rows, progress=partial(told, "recognising"), seed=seed, **given
            )
        elif study == "translation":
            report = evaluate.translation(lab, rows, progress=partial(told, "translating"), **given)
        elif study == "speech_to_speech":
            told_of = partial(told, "recognising, translating, speaking")
            report = evaluate.speech_to_speech(lab, rows, progress=told_of, **given)
        else:
            texts = rows.drop(columns=["audio", "duration_s"], errors="ignore")
            makes: dict[str, Any] = {"round_trip": evaluate.round_trip, "voices": evaluate.voices}
            made = makes[study]
            report = made(
                lab, texts, progress=lambda stage, done, total: told(_plain(stage), done, total), **given
            )
    if isinstance(report, evaluate.VoicesReport):
        console.print(escape(report.advice), soft_wrap=True)
    if isinstance(report, evaluate.RecognitionReport) and report.words:
        console.print(escape(report.words), soft_wrap=True)
    if isinstance(report, evaluate.TranslationReport):
        for said in (*report.findings, *report.notes):
            console.print(escape(said), soft_wrap=True)
    _end(report, out, before, fail_if or ())


def _plain(stage: str) -> str:
    return stage.replace("synthesize", "speaking").replace("transcribe", "recognising")


def _earlier(folder: Path | None, fail_if: Sequence[str], *, timed: bool) -> Report | None:
    """Read the earlier report before the work, not after it."""
    from speechlab.evaluate import Report

    if folder is None and fail_if:
        message = f"--fail-if {fail_if[0]} needs something to compare with; give --earlier REPORT"
        raise InvalidRequestError(message, parameter="earlier")
    report: Report | None = None if folder is None else Report.load(folder)
    if "slower" in fail_if and not (timed and len(getattr(report, "speed", ()))):
        raise InvalidRequestError(_UNTIMED, parameter="speed")
    return report


def _rows(
    source: Path, language: str | None, split: list[str] | None, sample: int | None, seed: int
) -> pd.DataFrame:
    from speechlab import datasets

    rows = datasets.read(source, language=language, split=split or None)
    if sample is None:
        return rows
    return datasets.sample(
        rows, sample, by=[name for name in ("language",) if name in rows.columns], seed=seed
    )


def _end(report: Report, out: Path, earlier: Report | None, fail_if: Sequence[str]) -> None:
    """Write the report, say what was found, and end with the status of the answer."""
    written = report.save(out)
    _print(report, report.title)
    console.print(f"report: {escape(str(written))}", soft_wrap=True)
    failed = report.table[report.table["status"].isin(["error", "skipped"])]
    if len(failed):
        errors.print(f"[yellow]{len(failed):,} of {len(report.table):,} rows failed:[/]")
        for error, count in failed["error"].astype("str").value_counts().head(_KINDS_OF_ERRORS).items():
            errors.print(f"  {count:,} like {escape(str(error))}", soft_wrap=True)
    if earlier is not None:
        ended_with(report.compare(earlier), None, fail_if)
    if len(failed):
        raise typer.Exit(1)


def ended_with(changes: Changes, out: Path | None, fail_if: Sequence[str]) -> None:
    """Say what changed, and end with its status."""
    _print(changes, "What changed")
    console.print(escape(changes.words), soft_wrap=True)
    if out is not None:
        console.print(f"report: {escape(str(changes.save(out)))}", soft_wrap=True)
    if "worse" in fail_if and not changes.paired:
        message = "no row is in both reports, so nothing can be said of what is worse; run the same rows"
        raise InvalidRequestError(message, parameter="earlier")
    if "slower" in fail_if and not len(changes.speed):
        raise InvalidRequestError(_UNTIMED, parameter="speed")
    if ("worse" in fail_if and changes.worse) or ("slower" in fail_if and changes.slower):
        raise typer.Exit(WORSE)


def _print(report: Report, title: str) -> None:
    head = report.headline()
    table = plain_table(title, *map(str, head.columns), right=_FIGURES)
    for row in head.itertuples(index=False, name=None):
        table.add_row(*map(_written, row))
    console.print(table)


def _written(cell: object) -> str:
    if is_missing(cell):
        return "–"
    return number(cell) if isinstance(cell, float) else escape(str(cell))
