"""``speechlab batch``: a table's file in, a table's file out, with a store beside it that knows what was done."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from speechlab.cli._console import console, errors, number, plain_table
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.batch import Plan, Run
    from speechlab.client import Client

__all__ = ["app"]

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


@app.command("tts")
def tts(
    source: Input,
    out: Out,
    text: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    voice: Annotated[str, typer.Option(help="Column of the voices, by id or name.")] = "voice",
    format: Annotated[str, typer.Option(help="flac, wav, mp3 or ogg.")] = "flac",
    sample_rate: Annotated[int | None, typer.Option(help="Hz.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Variation, for voices that have it.")] = None,
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
    """Speak each row's text."""
    from speechlab import batch, connect

    limits = _limits(max_calls, max_characters, max_audio_s)
    how = _how(concurrency, rate, max_error_share, retry_failed, limits)
    with connect() as lab:
        plan = batch.plan_synthesis(
            source,
            lab,
            text=text,
            voice=voice,
            format=format,
            sample_rate=sample_rate,
            temperature=temperature,
            repeat=repeat,
            store=out,
            prefix=prefix,
        )
        _perform(plan, lab, out, how, dry_run)


@app.command("asr")
def asr(
    source: Input,
    out: Out,
    audio: Annotated[str, typer.Option(help="Column of the paths; relative ones from here.")] = "audio",
    language: Annotated[
        str | None, typer.Option(help="ja, en, zh, or 'language' for that column. [default: identify]")
    ] = None,
    vad: Annotated[
        str, typer.Option(help="off, on or segments; the latter writes segments.parquet too.")
    ] = "off",
    hotword: Annotated[list[str] | None, typer.Option(help="Word to boost; may be repeated.")] = None,
    concurrency: Concurrency = 8,
    rate: Rate = None,
    max_calls: MaxCalls = None,
    max_audio_s: MaxAudio = None,
    max_error_share: MaxErrors = 0.5,
    retry_failed: Retry = True,
    repeat: Repeat = 0,
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Transcribe each row's recording."""
    from speechlab import batch, connect

    limits = _limits(max_calls, None, max_audio_s)
    how = _how(concurrency, rate, max_error_share, retry_failed, limits)
    options: dict[str, Any] = {"vad": vad}
    if hotword:
        options["hotwords"] = hotword
    with connect() as lab:
        plan = batch.plan_transcription(
            source, lab, audio=audio, language=language, repeat=repeat, store=out, prefix=prefix, **options
        )
        _perform(plan, lab, out, how, dry_run, segments=vad == "segments")


@app.command("translate")
def translate(
    source: Input,
    out: Out,
    source_lang: Annotated[str, typer.Option("--from", help="Language code, or the column that holds it.")],
    target_lang: Annotated[str, typer.Option("--to", help="Language code, or the column that holds it.")],
    text: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    keyword: Annotated[list[str] | None, typer.Option(help="Term to preserve; may be repeated.")] = None,
    context: Annotated[str | None, typer.Option(help="Helps to understand; not translated.")] = None,
    model: Annotated[str | None, typer.Option(help="Model id.")] = None,
    concurrency: Concurrency = 8,
    rate: Rate = None,
    max_calls: MaxCalls = None,
    max_characters: MaxCharacters = None,
    max_error_share: MaxErrors = 0.5,
    retry_failed: Retry = True,
    repeat: Repeat = 0,
    prefix: Prefix = "",
    dry_run: DryRun = False,
) -> None:
    """Translate each row's text."""
    from speechlab import batch, connect

    limits = _limits(max_calls, max_characters, None)
    how = _how(concurrency, rate, max_error_share, retry_failed, limits)
    with connect() as lab:
        plan = batch.plan_translation(
            source,
            lab,
            text=text,
            source_lang=source_lang,
            target_lang=target_lang,
            keywords=tuple(keyword or ()),
            context=context,
            model=model,
            repeat=repeat,
            store=out,
            prefix=prefix,
        )
        _perform(plan, lab, out, how, dry_run)


def _limits(calls: int | None, characters: int | None, audio_s: float | None) -> dict[str, float | None]:
    return {"calls": calls, "characters": characters, "audio_s": audio_s}


def _how(
    concurrency: int, rate: float | None, share: float, retry: bool, limits: dict[str, Any]
) -> dict[str, Any]:
    from speechlab.batch import Budget

    return {
        "concurrency": concurrency,
        "rate": rate,
        "max_error_share": share,
        "retry_failed": retry,
        "budget": Budget(**limits),
    }


def _perform(
    plan: Plan, lab: Client, out: Path, how: dict[str, Any], dry_run: bool, *, segments: bool = False
) -> None:
    import warnings

    from speechlab import batch

    if dry_run:
        counts = plan.summary()
        console.print(", ".join(f"{value:,g} {name.replace('_', ' ')}" for name, value in counts.items()))
        return
    if out.exists() and not out.is_dir():
        raise InvalidRequestError(f"--out {out} is a file; name a folder", parameter="out")
    # a shell, a queue or a closing terminal ends a job with TERM: stop as with Ctrl+C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the reason is printed below
        try:
            run = batch.run(plan, lab, **how)
        except KeyboardInterrupt:
            errors.print("stopped; what was finished is kept, and the same command again goes on from there")
            raise typer.Exit(130) from None
    written = run.export(out / "results.parquet")
    if segments:
        table = batch.segments(run.table(), out, prefix=plan.prefix)
        table.to_parquet(out / "segments.parquet")
    _tell(run, written)


def _tell(run: Run, written: Path) -> None:
    counts = run.manifest["statuses"]
    table = plain_table(f"Run {run.id}", "status", "rows", right=("rows",))
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    console.print(table)
    usage = ", ".join(f"{number(value, 0)} {name}" for name, value in run.manifest["usage"].items() if value)
    console.print(f"used: {usage or 'nothing'}")
    console.print(f"table: {escape(str(written))}", soft_wrap=True)
    if run.status != "finished":
        errors.print(f"[yellow]stopped:[/] {escape(str(run.manifest.get('reason')))}", soft_wrap=True)
        sys.exit(3)
    if counts.get("error"):
        sys.exit(1)
