"""``speechlab quickstart``: the main job, end to end."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from speechlab._pandas import pd
from speechlab.cli._console import (
    console,
    exit_on_interrupt,
    print_headline,
    print_warnings,
    say,
    show_stages,
)
from speechlab.errors import StoreError

if TYPE_CHECKING:
    from speechlab.client import Client
    from speechlab.evaluate import Report

_MIN_FREE_BYTES = 50_000_000
_SENTENCES_PER_VOICE = 3
# Three sentences with more voices would take longer than anybody waits for a first look.
_MANY_VOICES = 12


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("speechlab-quickstart"),
    sentences: Annotated[
        int | None,
        typer.Option(
            min=1, max=40, help="Sentences for each language and voice. [default: 3; 1 if voices are many]"
        ),
    ] = None,
) -> None:
    """Synthesize with every voice, recognize the speech, and report the error rates.

    Starts the embedded service if no other is configured, speaks a few sentences with each voice, recognizes and
    translates them, scores everything, and leaves tables, recordings and a page that plays. A second run reuses what
    is already computed.
    """
    started = time.perf_counter()
    _create_and_check_folder(out)
    with exit_on_interrupt():
        speech, translated = _run_and_save_studies(out, sentences)
    for report in (speech, translated):
        say(f"\n{report.answer}")
        print_headline(report.title, report.headline())
    _print_summary_and_exit(speech, translated, out, time.perf_counter() - started)


def _run_and_save_studies(out: Path, sentences: int | None) -> tuple[Report, Report]:
    """Make all calls, and write what came of them into the folder."""
    from speechlab import batch

    with print_warnings(), show_stages() as show_stage:
        show_stage("starting the service", 0, 1)
        from speechlab.client import connect

        with connect() as lab:
            show_stage("starting the service", 1, 1)
            sentences = sentences or (_SENTENCES_PER_VOICE if len(lab.voices()) <= _MANY_VOICES else 1)
            speech, translated = _run_studies(
                lab, sentences, show_stage, concurrency=min(2, batch.DEFAULT_CONCURRENCY)
            )
        show_stage("writing the report", 0, 1)
        speech.save(out)
        translated.save(out / "translations")
        show_stage("writing the report", 1, 1)
    return speech, translated


def _create_and_check_folder(out: Path) -> None:
    """Fail before the work, not after it, where the results could not be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".speechlab-probe"
        probe.write_bytes(b"")
        probe.unlink()
        free = shutil.disk_usage(out).free
    except OSError as error:
        message = f"cannot write into {out}: {error.strerror or error}; choose another --out"
        raise StoreError(message) from error
    if free < _MIN_FREE_BYTES:
        needed = f"{_MIN_FREE_BYTES / 1e6:.0f} MB are needed"
        message = f"only {free / 1e6:.0f} MB free at {out}, and {needed}; choose another --out"
        raise StoreError(message)


def _run_studies(
    lab: Client, sentences: int, report_progress: Callable[[str, int, int], None], *, concurrency: int
) -> tuple[Report, Report]:
    from speechlab import datasets, evaluate

    names = {"synthesize": "speaking with every voice", "transcribe": "recognizing what was said"}
    quick = datasets.prompts(quick=True)
    chosen = pd.concat([_sample_evenly(quick[quick["language"] == code], sentences) for code in ("ja", "en")])
    voices_report = evaluate.round_trip(
        lab,
        chosen[["id", "language", "text"]],
        concurrency=concurrency,
        progress=lambda stage, done, total: (
            report_progress(names[stage], done, total) if stage in names else None
        ),
    )
    chinese = evaluate.recognition(
        lab,
        _sample_evenly(datasets.zh_speech()[["id", "language", "text", "audio", "duration_s"]], sentences),
        voice=None,
        concurrency=concurrency,
        progress=lambda _, done, total: report_progress("recognizing Chinese recordings", done, total),
    )
    texts = chosen[["id", "text"]].assign(
        source_lang=chosen["language"].astype(str),
        target_lang=chosen["language"].astype(str).map({"ja": "en", "en": "ja"}),
        reference=chosen["translation_en"].where(chosen["language"] == "ja", chosen["translation_ja"]),
    )
    translated = evaluate.translation(
        lab,
        texts,
        concurrency=concurrency,
        title="Translations",
        progress=lambda _, done, total: report_progress("translating", done, total),
    )
    return evaluate.Report.combine("Voices and what was understood", [voices_report, chinese]), translated


def _sample_evenly(frame: pd.DataFrame, count: int) -> pd.DataFrame:
    """Take rows from all over a table: its categories stand one after the other."""
    count = min(count, len(frame))
    return frame.iloc[[index * len(frame) // count for index in range(count)]]


def _print_summary_and_exit(speech: Report, translated: Report, out: Path, seconds: float) -> None:
    rows, failed = len(speech.table), len(speech.failures())
    reused = int((speech.table["status"] == "cached").sum()) + int(
        (translated.table["status"] == "cached").sum()
    )
    audio_s = float(speech.table["duration_s"].sum())
    console.print(
        f"\n{rows} utterances, {audio_s:.0f} s of speech, {failed} failed, {reused} reused; {seconds:.0f} s in all."
    )
    for error in speech.failures()["error"].dropna().unique():
        console.print(f"[red]failed:[/] {escape(error)}", soft_wrap=True)
    # the whole path: who reads a log does not know where the command ran
    page, translations = (
        escape(str(place.absolute() / "report.html")) for place in (out, out / "translations")
    )
    console.print(f"\nHear it:  open [bold]{page}[/]", soft_wrap=True)
    console.print(f"Read it:  open [bold]{translations}[/]", soft_wrap=True)
    console.print(
        f"Use it:   pandas.read_parquet({escape(repr(str(out / 'results.parquet')))})", soft_wrap=True
    )
    console.print(f"Next:     {_describe_next_step()}", soft_wrap=True)
    if failed:
        raise typer.Exit(1)


def _describe_next_step() -> str:
    """Return how to open the notebook, as it has to be typed here."""
    called = Path(sys.argv[0])
    command = "speechlab" if shutil.which("speechlab") else os.path.relpath(called)
    text = f"[bold]{command} lab[/] opens the same in JupyterLab, step by step"
    if find_spec("jupyterlab") is None:
        pip = "pip" if shutil.which("speechlab") else os.path.relpath(called.with_name("pip"))
        text = f"[bold]{pip} install jupyterlab[/], and " + text
    return text
