"""``speechlab batch``: a table's file in, a table's file out, with a store beside it that knows what was done."""

from __future__ import annotations

import inspect
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.markup import escape

from speechlab.cli._console import console, errors, plain_table
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.batch import Plan, Run
    from speechlab.client import Client
    from speechlab.segments import Written

_KINDS_OF_ERRORS = 3

app = typer.Typer(
    help="Work on a table: a .parquet, .csv or .jsonl file goes in, results.parquet comes out. The same command "
    "again goes on where it was stopped.",
    no_args_is_help=True,
)

Input = Annotated[Path, typer.Argument(metavar="INPUT", help="The table: .parquet, .csv or .jsonl.")]
Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="RUN", help="Folder of the run: results.parquet and what it needs to go on."
    ),
]
Concurrency = Annotated[int, typer.Option(min=1, help="Calls under way at once.")]
Rate = Annotated[float | None, typer.Option(help="Calls begun per second, at most.")]
MaxCalls = Annotated[int | None, typer.Option(help="Stop before more calls than this.")]
MaxCharacters = Annotated[int | None, typer.Option(help="Stop before more characters than this are sent.")]
MaxAudio = Annotated[float | None, typer.Option(help="Stop before more seconds of audio than this.")]
MaxErrors = Annotated[
    float, typer.Option(min=0, max=1, help="Stop when a larger share of the calls has failed.")
]
Retry = Annotated[
    bool, typer.Option("--retry-failed/--skip-failed", help="Ask again what failed in earlier runs.")
]
Repeat = Annotated[int, typer.Option(help="Number of a deliberate repetition.")]
Prefix = Annotated[
    str, typer.Option(help="Goes before the names of the new columns, for a table that has them already.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what it would take.")]


def _shared(
    concurrency: Concurrency = 8,
    rate: Rate = None,
    max_calls: MaxCalls = None,
    max_characters: MaxCharacters = None,
    max_audio_s: MaxAudio = None,
    max_error_share: MaxErrors = 0.5,
    retry_failed: Retry = True,
    repeat: Repeat = 0,
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """List the options that all of these commands have."""


def _command(name: str, *, without: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function; its ``**shared`` are the options of :func:`_shared` but ``without``."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = {one: get_type_hints(one, include_extras=True) for one in (function, _shared)}
        parameters = [
            one.replace(kind=one.KEYWORD_ONLY, annotation=hints[where][one.name])
            for where in hints
            for one in inspect.signature(where).parameters.values()
            if one.kind is not one.VAR_KEYWORD and one.name != without
        ]

        def command(**options: Any) -> None:
            function(**options)

        command.__doc__ = function.__doc__
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        app.command(name)(command)
        return function

    return register


@_command("tts")
def tts(
    source: Input,
    out: Out,
    text: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    voice: Annotated[str, typer.Option(help="Voice by id or name, or the column that holds it.")] = "voice",
    format: Annotated[str, typer.Option(help="flac, wav, mp3 or ogg, or a column.")] = "flac",
    sample_rate: Annotated[str | None, typer.Option(help="Hz, or a column.")] = None,
    temperature: Annotated[
        str | None, typer.Option(help="Variation, for voices that have it, or a column.")
    ] = None,
    **shared: Any,
) -> None:
    """Speak each row's text."""
    given = {
        "text": text,
        "voice": voice,
        "format": format,
        "sample_rate": _number(sample_rate),
        "temperature": _number(temperature),
    }
    _perform("synthesis", source, out, given, **shared)


@_command("asr", without="max_characters")
def asr(
    source: Input,
    out: Out,
    audio: Annotated[str, typer.Option(help="Column of the paths; relative ones from here.")] = "audio",
    language: Annotated[
        str | None, typer.Option(help="ja, en or zh, or the column that holds it. [default: identify]")
    ] = None,
    vad: Annotated[
        str, typer.Option(help="off, on or segments; the latter writes a file of segments too.")
    ] = "off",
    segments: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where the segments go; the ending tells the format. {file} stands for the recording's name: "
            "'subtitles/{file}.srt'. [default: RUN/segments.parquet]",
        ),
    ] = None,
    hotword: Annotated[list[str] | None, typer.Option(help="Word to boost; may be repeated.")] = None,
    **shared: Any,
) -> None:
    """Transcribe each row's recording."""
    given = {"audio": audio, "language": language, "vad": vad, "hotwords": hotword or None}
    timed = vad not in {"off", "on", "0", "1"}
    if segments is not None and not timed:
        raise InvalidRequestError("--segments needs --vad segments", parameter="segments")
    target = (segments or str(out / "segments.parquet")) if timed else None
    _perform("transcription", source, out, given, segments=target, **shared)


@_command("translate", without="max_audio_s")
def translate(
    source: Input,
    out: Out,
    source_lang: Annotated[str, typer.Option("--from", help="Language code, or the column that holds it.")],
    target_lang: Annotated[str, typer.Option("--to", help="Language code, or the column that holds it.")],
    text: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    keyword: Annotated[list[str] | None, typer.Option(help="Term to preserve; may be repeated.")] = None,
    context: Annotated[
        str | None, typer.Option(help="Helps to understand, not translated; or a column.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model id, or a column.")] = None,
    **shared: Any,
) -> None:
    """Translate each row's text."""
    given = {
        "source_lang": source_lang,
        "target_lang": target_lang,
        "text": text,
        "keywords": tuple(keyword or ()),
        "context": context,
        "model": model,
    }
    _perform("translation", source, out, given, **shared)


def _number(value: str | None) -> str | float | None:
    """Read a number; other text names a column."""
    try:
        plain = None if value is None else float(value)
    except ValueError:
        return value
    return int(plain) if plain is not None and plain.is_integer() else plain


def _perform(
    operation: str,
    source: Path,
    out: Path,
    given: dict[str, Any],
    *,
    repeat: int,
    prefix: str,
    dry_run: bool,
    segments: str | None = None,
    max_calls: int | None,
    max_characters: int | None = None,
    max_audio_s: float | None = None,
    **options: Any,
) -> None:
    from speechlab import batch, connect
    from speechlab.segments import format_of, formats

    if out.exists() and not out.is_dir():
        raise InvalidRequestError(f"--out {out} is a file; name a folder", parameter="out")
    if segments is not None:  # before hours of work, not after
        known = formats().set_index("format")["recordings"]
        if known[format_of(segments)] == "one" and "{file}" not in segments:
            message = f"a file such as {segments} is of one recording; put {{file}} into its name"
            raise InvalidRequestError(message, parameter="segments")
    budget = batch.Budget(max_calls, max_characters, max_audio_s)
    plans: dict[str, Callable[..., Plan]] = {
        "synthesis": batch.plan_synthesis,
        "transcription": batch.plan_transcription,
        "translation": batch.plan_translation,
    }
    with connect() as lab:
        plan = plans[operation](source, lab, **given, repeat=repeat, store=out, prefix=prefix)
        if dry_run:
            _print_summary(plan.summary())
            return
        run = _run(plan, lab, {**options, "budget": budget})
        written = run.export(out / "results.parquet")
        files = run.write_segments(segments) if segments is not None else []
    _print_segments(files)
    _print_run(run, written)


def _run(plan: Plan, lab: Client, options: dict[str, Any]) -> Run:
    import warnings

    from speechlab import batch

    # a shell, a queue or a closing terminal ends a job with TERM: stop as with Ctrl+C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the reason is printed below
        try:
            return batch.run(plan, lab, **options)
        except KeyboardInterrupt:
            errors.print("stopped; what was finished is kept, and the same command again goes on from there")
            raise typer.Exit(130) from None


def _print_summary(counts: dict[str, float]) -> None:
    rows = ("rows", "invalid", "calls", "cached", "duplicates")
    console.print(", ".join(f"{counts[name]:,g} {name}" for name in rows))
    console.print(
        f"to send: {counts['characters']:,g} characters, {counts['audio_s']:,.0f} seconds of recordings"
    )


def _print_run(run: Run, written: Path) -> None:
    counts = run.manifest["statuses"]
    table = plain_table(f"Run {run.id}", "status", "rows", right=("rows",))
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    console.print(table)
    units = {"audio_s": "seconds of audio"}
    spent = run.manifest["usage"].items()
    usage = ", ".join(f"{value:,.0f} {units.get(name, name)}" for name, value in spent if value)
    console.print(f"used: {usage or 'nothing'}")
    console.print(f"table: {escape(str(written))}", soft_wrap=True)
    if run.status != "finished":
        errors.print(f"[yellow]stopped:[/] {escape(str(run.manifest.get('reason')))}", soft_wrap=True)
        sys.exit(3)
    if counts.get("error"):
        _print_errors(run)
        sys.exit(1)


def _print_segments(files: list[Written]) -> None:
    if not files:
        return
    rows, first = sum(file.rows for file in files), files[0]
    where = str(first.path) if len(files) == 1 else f"{len(files):,} files, the first {first.path}"
    console.print(f"segments: {rows:,} in {escape(where)}", soft_wrap=True)
    for note in sorted({note for file in files for note in file.notes}):
        console.print(f"  {escape(note)}", soft_wrap=True)


def _print_errors(run: Run) -> None:
    """Print the commonest kinds of errors, each with its first message; the table has all of them."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    prefix = run.manifest.get("prefix", "")
    for part in run.parts():
        wrong = part[part[f"{prefix}status"] == "error"]
        for kind, message in zip(wrong[f"{prefix}error_type"], wrong[f"{prefix}error"], strict=True):
            counts[str(kind)] += 1
            first.setdefault(str(kind), str(message))
    for kind, count in counts.most_common(_KINDS_OF_ERRORS):
        such = f", and {count - 1:,} more such" if count > 1 else ""
        errors.print(f"[yellow]{escape(kind)}:[/] {escape(first[kind])}{such}", soft_wrap=True)
