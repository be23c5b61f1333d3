"""``speechlab batch``: from a table file to a table file, with a store that keeps finished rows."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from speechlab.cli._console import build_empty_table, console, errors
from speechlab.cli._options import option, register_command
from speechlab.errors import InvalidRequestError, SegmentFileError

if TYPE_CHECKING:
    from speechlab.batch import Plan, Run, Value
    from speechlab.client import Client
    from speechlab.segments import WriteResult

_MAX_ERROR_KINDS = 3


def print_run_and_exit(run: Run, written: Path) -> None:
    """Print the outcome of a run; the process ends with an error if rows are missing."""
    from speechlab import batch

    counts = run.manifest["statuses"]
    table = build_empty_table(f"Run {run.id}", "status", "rows", right=("rows",))
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    console.print(table)
    units = {"audio_s": "seconds of audio"}
    spent = run.manifest["usage"].items()
    usage = ", ".join(
        f"cost {value:,.4g}" if name == "cost" else f"{value:,.0f} {units.get(name, name)}"
        for name, value in spent
        if value
    )
    console.print(f"used: {usage or 'nothing'}")
    console.print(f"table: {escape(str(written))}", soft_wrap=True)
    if run.status != "finished":
        errors.print(f"[yellow]stopped:[/] {escape(str(run.manifest.get('reason')))}", soft_wrap=True)
        sys.exit(3)
    if counts.get("error"):
        # The most frequent reasons, each with its first message; the table contains all of them.
        reasons = batch.failures(run).head(_MAX_ERROR_KINDS)
        cells = (reasons[name] for name in ("error_type", "error", "rows"))
        for kind, error, count in zip(*cells, strict=True):
            such = f", and {count - 1:,} more such" if count > 1 else ""
            errors.print(f"[yellow]{escape(kind)}:[/] {escape(error)}{such}", soft_wrap=True)
        sys.exit(1)


def print_segment_files(files: list[WriteResult]) -> None:
    """Print the files of segments."""
    if not files:
        return
    rows, first = sum(file.rows for file in files), files[0]
    where = str(first.path) if len(files) == 1 else f"{len(files):,} files, the first {first.path}"
    console.print(f"segments: {rows:,} in {escape(where)}", soft_wrap=True)
    for note in sorted({note for file in files for note in file.notes}):
        console.print(f"  {escape(note)}", soft_wrap=True)


app = typer.Typer(
    help="Work on a table: a Parquet, CSV, TSV or JSON Lines file or a folder of recordings goes in, results.parquet "
    "comes out. The same command again resumes where it was stopped.",
    no_args_is_help=True,
)

Input = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="The table: .parquet, .csv, .tsv or .jsonl (text also as .gz), or a folder of Parquet files; for asr "
        "also a folder of recordings.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="RUN", help="Folder of the run: results.parquet, and the files needed to continue."
    ),
]
# Options of all batch commands.
_COMMON_OPTIONS = [
    option("concurrency", int, 16, min=1, help="Maximum of concurrent calls."),
    option("rate", float | None, None, help="Maximum of calls started per second."),
    option("max_calls", int | None, None, min=0, help="Stop before more calls than this."),
    option("max_characters", int | None, None, min=0, help="Stop before more characters than this are sent."),
    option("max_audio_s", float | None, None, min=0, help="Stop before more seconds of audio than this."),
    option("max_cost", float | None, None, min=0, help="Stop before the sum of the prices exceeds this."),
    option("price", list[str] | None, None, "--price", metavar="NAME=AMOUNT", help="Price of one of calls, "
    "characters, audio_s or tokens, such as characters=15/1000000; may be repeated."),
    option("max_error_share", float, 0.5, min=0, max=1, help="Stop when a larger share of the calls has failed."),
    option("give_up_after_s", float | None, None, help="Stop when no call has succeeded for this many seconds. "
    "[default: an hour while the service says 'later', a minute while it cannot be reached]"),
    option("retry_failed", bool, True, "--retry-failed/--skip-failed", help="Repeat the calls that failed in "
    "earlier runs."),
    option("repeat", int, 0, help="Number of a deliberate repetition."),
    option("prefix", str, "", help="Prefix for the names of the new columns, for a table that has such columns "
    "already."),
    option("columns", Literal["all", "result"], "all", help="Columns of results.parquet: result leaves out the "
    "bookkeeping."),
    option("dry_run", bool, False, "--dry-run", help="Print calls and cost, and make no call."),
]  # fmt: skip


@register_command(app, "tts", _COMMON_OPTIONS)
def tts(
    source: Input,
    out: Out,
    text: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    voice: Annotated[str, typer.Option(help="Voice by id or name, or the column with it.")] = "voice",
    format: Annotated[
        str | None,
        typer.Option(help="flac, wav, mp3 or ogg, or a column. [default: flac, if the voice has it]"),
    ] = None,
    sample_rate: Annotated[str | None, typer.Option(help="Hz, or a column.")] = None,
    temperature: Annotated[
        str | None, typer.Option(help="Variation, for voices that support it, or a column.")
    ] = None,
    respell: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Lexicon (CSV) of words that the voice misreads.")
    ] = None,
    **shared: Any,
) -> None:
    """Speak each row's text."""
    from speechlab.text import Lexicon

    options = {
        "text": text,
        "voice": voice,
        "format": format,
        "sample_rate": _parse_number_or_column(sample_rate),
        "temperature": _parse_number_or_column(temperature),
        "respell": None if respell is None else Lexicon.read(respell),
    }
    _run_operation("synthesis", source, out, options, **shared)


@register_command(app, "asr", _COMMON_OPTIONS, without={"max_characters"})
def asr(
    source: Input,
    out: Out,
    audio: Annotated[
        str, typer.Option(help="Column of the paths, relative to the current folder.")
    ] = "audio",
    language: Annotated[
        str | None,
        typer.Option(help="Code such as ja, en, zh or de, or the column with it. [default: identify]"),
    ] = None,
    vad: Annotated[
        str, typer.Option(help="off, on or segments; segments also writes a file of segments.")
    ] = "off",
    segments: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File for the segments; its extension sets the format. {file} stands for the recording's name: "
            "'subtitles/{file}.srt'. [default: RUN/segments.parquet]",
        ),
    ] = None,
    segments_format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Format of the segments, if the extension is ambiguous, such as nemo or lhotse for .jsonl; "
            "speechlab.segments.formats() lists them.",
        ),
    ] = None,
    hotword: Annotated[list[str] | None, typer.Option(help="Word to boost; may be repeated.")] = None,
    **shared: Any,
) -> None:
    """Transcribe each row's recording."""
    options = {"audio": audio, "language": language, "vad": vad, "hotwords": hotword or None}
    timed = vad not in {"off", "on", "0", "1"}
    for name, value in (("segments", segments), ("segments-format", segments_format)):
        if value is not None and not timed:
            raise InvalidRequestError(f"--{name} needs --vad segments", parameter=name)
    if segments_format is not None and segments is None:
        raise InvalidRequestError("--segments-format needs --segments FILE", parameter="segments-format")
    target = (segments or str(out / "segments.parquet")) if timed else None
    _run_operation("transcription", source, out, options, segments=target, form=segments_format, **shared)


@register_command(app, "translate", _COMMON_OPTIONS, without={"max_audio_s"})
def translate(
    source: Input,
    out: Out,
    source_lang: Annotated[
        str, typer.Option("--from", help="Code of the source language, or the column with it.")
    ],
    target_lang: Annotated[
        str, typer.Option("--to", help="Code of the target language, or the column with it.")
    ],
    text: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    keyword: Annotated[list[str] | None, typer.Option(help="Term to preserve; may be repeated.")] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="Text that helps the translation, or a column. '=hints' is a text, never a column."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model id, or a column. '=base' is an id, never a column.")
    ] = None,
    **shared: Any,
) -> None:
    """Translate each row's text."""
    options = {
        "source_lang": source_lang,
        "target_lang": target_lang,
        "text": text,
        "keywords": tuple(keyword or ()),
        "context": _parse_text_or_column(context),
        "model": _parse_text_or_column(model),
    }
    _run_operation("translation", source, out, options, **shared)


def _parse_text_or_column(value: str | None) -> str | Value | None:
    """Read a text or the name of a column; a leading sign marks a text."""
    from speechlab.batch import Value

    return Value(value[1:]) if value is not None and value.startswith("=") else value


def _parse_number_or_column(value: str | None) -> str | float | None:
    """Read a number; other text is the name of a column."""
    try:
        figure = None if value is None else float(value)
    except ValueError:
        return value
    return int(figure) if figure is not None and figure.is_integer() else figure


def _run_operation(
    operation: str,
    source: Path,
    out: Path,
    given: dict[str, Any],
    *,
    repeat: int,
    prefix: str,
    columns: Literal["all", "result"],
    dry_run: bool,
    segments: str | None = None,
    form: str | None = None,
    max_calls: int | None,
    max_characters: int | None = None,
    max_audio_s: float | None = None,
    max_cost: float | None,
    price: list[str] | None,
    **options: Any,
) -> None:
    from speechlab import batch, connect

    if out.exists() and not out.is_dir():
        raise InvalidRequestError(f"--out {out} is a file; name a folder", parameter="out")
    if segments is not None:  # reported before hours of work, not after
        _check_segments_target(segments, form)
    prices = _parse_prices(price)
    if max_cost is not None and prices is None:
        message = (
            f"--max-cost {max_cost:g} needs the prices of your contract, as in --price characters=15/1000000"
        )
        raise InvalidRequestError(message, parameter="max_cost")
    budget = batch.Budget(max_calls, max_characters, max_audio_s, cost=max_cost, prices=prices)
    plans: dict[str, Callable[..., Plan]] = {
        "synthesis": batch.plan_synthesis,
        "transcription": batch.plan_transcription,
        "translation": batch.plan_translation,
    }
    with connect() as lab:
        given |= {"repeat": repeat, "store": out, "prefix": prefix, "columns": columns}
        plan = plans[operation](source, lab, **given, give_up_after_s=options["give_up_after_s"])
        if dry_run:
            counts = plan.summary(prices)
            names = ("rows", "invalid", "calls", "cached", "duplicates")
            console.print(", ".join(f"{counts[name]:,g} {name}" for name in names))
            amounts = f"{counts['characters']:,g} characters, {counts['audio_s']:,.0f} seconds of recordings"
            console.print(f"to send: {amounts}")
            if "cost" in counts:
                console.print(f"cost, estimated: {counts['cost']:,.4g}")
            return
        run = _run_plan(plan, lab, {**options, "budget": budget})
        written = run.export(out / "results.parquet", columns=columns)
        files, warned = _write_segments(run, segments, form) if segments is not None else ([], [])
    print_segment_files(files)
    for message in warned:
        errors.print(f"[yellow]{escape(message)}[/]", soft_wrap=True)
    print_run_and_exit(run, written)


def _parse_prices(given: list[str] | None) -> dict[str, float] | None:
    prices = {}
    for text in given or ():
        name, _, amount = text.partition("=")
        number, _, for_many = amount.partition("/")
        try:
            prices[name] = float(number) / (float(for_many) if for_many else 1)
        except (ValueError, ZeroDivisionError):
            message = f"--price {text} is not a price; give, for example, --price characters=15/1000000"
            raise InvalidRequestError(message, parameter="price") from None
    return prices or None


def _run_plan(plan: Plan, lab: Client, options: dict[str, Any]) -> Run:
    import warnings

    from speechlab import batch

    # a shell, a queue or a closing terminal ends a job with TERM: stop as after Ctrl+C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the reason is printed below
        try:
            return batch.run(plan, lab, **options)
        except KeyboardInterrupt as stopped:
            run = str(stopped).partition(". ")[0]  # the rest is about Python
            errors.print(escape(run) or "stopped; what was finished is kept", soft_wrap=True)
            errors.print("run the same command again to continue")
            raise typer.Exit(130) from None


def _check_segments_target(path: str, form: str | None) -> None:
    from speechlab.segments import choose_format_name, formats

    try:
        name = choose_format_name(path, form)
    except SegmentFileError as error:
        raise InvalidRequestError(error.message, parameter="segments_format") from error
    if formats().set_index("format")["recordings"][name] == "one" and "{file}" not in path:
        message = f"a file such as {path} is for one recording; put {{file}} into its name"
        raise InvalidRequestError(message, parameter="segments")


def _write_segments(run: Run, path: str, form: str | None) -> tuple[list[WriteResult], list[str]]:
    """Write the segments, and return notes about rows without any."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        files = run.write_segments(path, form)
    return files, [str(warning.message) for warning in caught]
