"""``speechlab study``: a question about a table, answered with a report; what changed since another, for CI jobs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from speechlab._arguments import is_missing
from speechlab.cli._commands._studies.systems import bands_of, connected, glossary_of, settings_of
from speechlab.cli._console import console, errors, number, plain_table, stages
from speechlab.cli._options import command
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from speechlab.evaluate import Changes, Report

WORSE = 4
"""Exit status where ``--fail-if worse`` has found something."""
_KINDS_OF_ERRORS = 3
_FIGURES = (
    *(
        "Texts",
        "chrF",
        "Utterances",
        "Error rate",
        "95 % interval",
        "First sound (s)",
        "RTF",
        "First in",
        "Its own",
    ),
    *("Pairs", "Earlier", "Now", "Difference", "p (Holm)"),
)
"""Columns of headlines that hold numbers."""

app = typer.Typer(
    help="Answer a question about a table with a report: a folder, or one page (.html). Ends with 0; with 1 when "
    "rows failed; with 4 when --fail-if worse has found a significant change for the worse.",
    no_args_is_help=True,
)

Input = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="The table: .csv, .tsv, .jsonl or .parquet; or a folder in the layout of LibriSpeech, AISHELL, JSUT, "
        "Common Voice or FLEURS.",
    ),
]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="REPORT", help="Folder of the report, or one page that ends in .html."),
]
Earlier = Annotated[
    Path | None,
    typer.Option(
        metavar="REPORT", help="Folder of an earlier report: say what changed, significantly, since then."
    ),
]
FailIf = Annotated[
    Literal["worse"] | None,
    typer.Option(
        help="End with 4 if a voice and language, a direction of translation, or the number of failed rows, is "
        "significantly worse."
    ),
]
Language = Annotated[str | None, typer.Option(help="Code of all rows, if the table has no such column.")]
Split = Annotated[list[str] | None, typer.Option(help="Part of a corpus, such as test; may be repeated.")]
Sample = Annotated[int | None, typer.Option(min=1, help="Draw so many rows by chance, by language.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed draws the same rows, and the same noise.")]
Store = Annotated[
    Path | None, typer.Option(help="Where results are kept and reused. [default: the user's own store]")
]
Concurrency = Annotated[int, typer.Option(min=1, help="Calls under way at once.")]


Voices = Annotated[
    list[str] | None,
    typer.Option("--voice", help="Id or name of a voice; may be repeated. [default: all that fit]"),
]
Speed = Annotated[int, typer.Option(min=0, help="With how many texts of each language speed is measured.")]
Services = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=URL",
        help="A service to compare; may be repeated. No URL is the usual service; the key of NAME is that of "
        "SPEECHLAB_API_KEY_NAME, or else that of speechlab login. [default: the usual service]",
    ),
]
Adapters = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=JSON",
        help="That this service speaks OpenAI's API: its models for speech, transcription and translation, and its "
        "voices; may be repeated.",
    ),
]


def _shared(
    earlier: Earlier = None,
    fail_if: FailIf = None,
    language: Language = None,
    split: Split = None,
    sample: Sample = None,
    seed: Seed = 0,
    store: Store = None,
    concurrency: Concurrency = 16,
) -> None:
    """List the options that all studies have."""


@command(app, "recognition", _shared)
def recognition(
    source: Input,
    out: Out,
    service: Services = None,
    openai: Adapters = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=JSON", help="Parameters of transcribe to compare, by name; may be repeated."
        ),
    ] = None,
    hotword: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TERM", help="A likely word; may be repeated. With and without them is compared."
        ),
    ] = None,
    noise_db: Annotated[
        list[float] | None,
        typer.Option(metavar="DB", help="Add noise this far below the speech; may be repeated."),
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            metavar="KIND|FILE", help="speech (shaped like the recording), white, or a recording of noise."
        ),
    ] = "speech",
    band: Annotated[
        list[str] | None,
        typer.Option(metavar="LOW-HIGH", help="Limit the recordings to a band, in Hz; may be repeated."),
    ] = None,
    speechless: Annotated[
        int, typer.Option(min=0, help="Recordings of each kind without speech; text there is made up.")
    ] = 0,
    **shared: Any,
) -> None:
    """Recognise recordings and score what was understood, by services and settings, in noise and bands."""
    given = {
        "settings": settings_of(setting or (), {"hotwords": {"hotwords": hotword}}, "transcribe"),
        "noise_db": noise_db or [],
        "noise": noise,
        "band_hz": bands_of(band or ()),
        "speechless": speechless,
    }
    _perform("recognition", source, out, given, services=(service or (), openai or ()), **shared)


@command(app, "round-trip", _shared)
def round_trip(
    source: Input,
    out: Out,
    service: Services = None,
    openai: Adapters = None,
    voice: Voices = None,
    speed: Speed = 0,
    **shared: Any,
) -> None:
    """Speak texts with voices, recognise the speech, and score what was understood."""
    given = {"voices": voice or None, "speed": speed}
    _perform("round_trip", source, out, given, services=(service or (), openai or ()), **shared)


@command(app, "voices", _shared)
def voices(
    source: Input,
    out: Out,
    voice: Voices = None,
    speed: Speed = 5,
    takes: Annotated[int, typer.Option(min=1, help="How often each sentence is spoken.")] = 1,
    **shared: Any,
) -> None:
    """Say which voice to take: how well it is understood, how fast it is, how it sounds, and how sure that is."""
    _perform("voices", source, out, {"voices": voice or None, "speed": speed, "takes": takes}, **shared)


@command(app, "translation", _shared)
def translation(
    source: Input,
    out: Out,
    source_lang: Annotated[
        str | None, typer.Option(help="Code of the language of all texts, if the table has no such column.")
    ] = None,
    target_lang: Annotated[
        str | None, typer.Option(help="Code of the language wanted, if the table has no such column.")
    ] = None,
    service: Services = None,
    openai: Adapters = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=JSON", help="Parameters of translate to compare, by name; may be repeated."
        ),
    ] = None,
    keyword: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TERM",
            help="A term to keep as it is; may be repeated. With and without them is compared.",
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What the texts are from. With and without it is compared."),
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Terms to be counted: .json, .csv or .tsv (columns term and target), or one in each line.",
        ),
    ] = None,
    back: Annotated[
        bool, typer.Option("--back", help="Translate back as well, and compare with the text.")
    ] = False,
    speed: Annotated[
        int, typer.Option(min=0, help="With how many texts the time to the first word is measured.")
    ] = 0,
    **shared: Any,
) -> None:
    """Translate texts and score them: columns text, source_lang, target_lang and, where there are any, reference."""
    codes = {"source_lang": source_lang, "target_lang": target_lang}
    switched: dict[str, dict[str, Any]] = {"keywords": {"keywords": keyword}, "context": {"context": context}}
    given = {
        "settings": settings_of(setting or (), switched, "translate"),
        "glossary": glossary_of(glossary),
        "back": back,
        "speed": speed,
    }
    services = (service or (), openai or ())
    _perform("translation", source, out, given, columns=codes, services=services, **shared)


@app.command("compare")
def compare(
    now: Annotated[Path, typer.Argument(metavar="REPORT", help="Folder of the later report.")],
    earlier: Annotated[Path, typer.Argument(metavar="EARLIER", help="Folder of the earlier report.")],
    out: Annotated[
        Path | None, typer.Option(metavar="REPORT", help="Folder, or page (.html), for what changed.")
    ] = None,
    fail_if: FailIf = None,
) -> None:
    """Say what changed, significantly, between two saved reports of one study."""
    from speechlab.evaluate import Report

    _end_changes(Report.load(now).compare(earlier), out, fail_if)


def _perform(
    study: str,
    source: Path,
    out: Path,
    given: dict[str, Any],
    *,
    earlier: Path | None,
    fail_if: str | None,
    language: str | None,
    split: list[str] | None,
    sample: int | None,
    seed: int,
    store: Path | None,
    concurrency: int,
    columns: Mapping[str, str | None] = MappingProxyType({}),
    services: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> None:
    """Read the table, make the study, and write its report."""
    from speechlab import evaluate

    before = _earlier(earlier, fail_if)
    rows = _rows(source, language, split, sample, seed)
    missing = {name: value for name, value in columns.items() if value and name not in rows.columns}
    rows = rows.assign(**missing)
    with connected(*services) as lab, stages() as told:
        given |= {"store": None if store is None else str(store), "concurrency": concurrency}
        report: Report
        if study == "recognition":  # one stage, whose progress has no name
            report = evaluate.recognition(
                lab, rows, progress=partial(told, "recognising"), seed=seed, **given
            )
        elif study == "translation":
            report = evaluate.translation(lab, rows, progress=partial(told, "translating"), **given)
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
    _end(report, out, before, fail_if)


def _plain(stage: str) -> str:
    return stage.replace("synthesize", "speaking").replace("transcribe", "recognising")


def _earlier(folder: Path | None, fail_if: str | None) -> Report | None:
    """Read the earlier report before the work, not after it."""
    from speechlab.evaluate import Report

    if folder is None and fail_if is not None:
        message = f"--fail-if {fail_if} needs something to compare with; give --earlier REPORT"
        raise InvalidRequestError(message, parameter="earlier")
    report: Report | None = None if folder is None else Report.load(folder)
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


def _end(report: Report, out: Path, earlier: Report | None, fail_if: str | None) -> None:
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
        _end_changes(report.compare(earlier), None, fail_if)
    if len(failed):
        raise typer.Exit(1)


def _end_changes(changes: Changes, out: Path | None, fail_if: str | None) -> None:
    _print(changes, "What changed")
    console.print(escape(changes.words), soft_wrap=True)
    if out is not None:
        console.print(f"report: {escape(str(changes.save(out)))}", soft_wrap=True)
    if fail_if is None:
        return
    if not changes.paired:
        message = "no row is in both reports, so nothing can be said of what is worse; run the same rows"
        raise InvalidRequestError(message, parameter="earlier")
    if changes.worse:
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
