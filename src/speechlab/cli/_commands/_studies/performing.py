"""A study performed for the command line: its table read, its report written, and the status that it ends with."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from speechlab.cli._commands._studies.systems import connected
from speechlab.cli._console import console, errors, say, stages, warnings_told
from speechlab.cli._headline import headline
from speechlab.errors import InvalidRequestError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from speechlab.evaluate import Changes, Report

WORSE = 4
"""Exit status where ``--fail-if`` has found something: it goes before 2 (nothing can be said) and 1 (rows failed)."""
_UNPAIRED = "no row is in both reports, so nothing can be said of what is worse; run the same rows"
_UNTIMED = "not both reports timed the same items, so nothing can be said of speed; give --speed 6 to both"
_ROWS_FAILED = r"[\d,]+ of [\d,]+ rows failed"
"""Warning of studies that the command tells in its own words, at the end."""
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
    *(
        "Pairs",
        "Earlier",
        "Now",
        "Difference",
        "p (Holm)",
        "chrF back",
        "Length",
        "Copies",
        "Loops",
        "Terms kept",
    ),
    *("First word (s)", "Whole (s)", "Lost"),
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
    evaluate.Report.check_path(out)
    before = _earlier(earlier, fail_if or (), timed=bool(given.get("speed")))
    with warnings_told(without=_ROWS_FAILED):
        rows = _rows(source, language, split, sample, seed)
    missing = {name: value for name, value in columns.items() if value and name not in rows.columns}
    rows = rows.assign(**missing)
    with _stoppable(), warnings_told(without=_ROWS_FAILED), connected(*services) as lab, stages() as told:
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
    for sentence in (*report.findings, *report.notes):
        say(sentence)
    _end(report, out, before, fail_if or ())


@contextmanager
def _stoppable() -> Iterator[None]:
    """Say after an interrupt that nothing is lost, and end."""
    try:
        yield
    except KeyboardInterrupt:
        errors.print("stopped; what was finished is kept, and the same command goes on from there")
        raise typer.Exit(130) from None


def _plain(stage: str) -> str:
    return stage.replace("synthesize", "speaking").replace("transcribe", "recognising")


def _earlier(folder: Path | None, fail_if: Sequence[str], *, timed: bool) -> Report | None:
    """Read the earlier report before the work, not after it."""
    if folder is None and fail_if:
        message = f"--fail-if {fail_if[0]} needs something to compare with; give --earlier REPORT"
        raise InvalidRequestError(message, parameter="earlier")
    report: Report | None = None if folder is None else saved(folder)
    if "slower" in fail_if and not (timed and len(getattr(report, "speed", ()))):
        raise InvalidRequestError(_UNTIMED, parameter="speed")
    return report


def saved(folder: Path) -> Any:
    """Read a report that was saved.

    Raises:
        InvalidRequestError: There is none.
        StoreError: It is damaged.
    """
    from speechlab.evaluate import Report

    try:
        return Report.load(folder)
    except StoreError as error:
        if error.__cause__ is None or isinstance(error.__cause__, FileNotFoundError):
            raise InvalidRequestError(str(error), parameter="earlier") from error
        raise


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
    headline(report.title, report.headline(), _FIGURES)
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
    """Print the changes, and end with their exit status."""
    headline("What changed", changes.headline(), _FIGURES)
    for sentence in changes.findings:
        say(sentence)
    if out is not None:
        console.print(f"report: {escape(str(changes.save(out)))}", soft_wrap=True)
    unknown = [_UNPAIRED] if "worse" in fail_if and not changes.paired else []
    unknown += [_UNTIMED] if "slower" in fail_if and not len(changes.speed) else []
    if ("worse" in fail_if and changes.worse) or ("slower" in fail_if and changes.slower):
        for message in unknown:
            errors.print(f"[yellow]{escape(message)}[/]", soft_wrap=True)
        raise typer.Exit(WORSE)
    if unknown:
        raise InvalidRequestError("; ".join(unknown), parameter="earlier")
