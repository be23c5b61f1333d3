"""``speechlab engines``: listing engines, adding models, and checking them."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from speechlab.cli._console import build_empty_table, console, format_number
from speechlab.errors import ConfigurationError

app = typer.Typer(help="The engines of the embedded service.", no_args_is_help=True)


@app.command("list")
def list_engines() -> None:
    """List the engines, and whether each can run here."""
    from speechlab import engines

    for name, entry in engines.catalogue().items():
        state = engines.status(name)
        if not state.ready:
            ready = f"[yellow]not ready[/], {'' if state.problem else 'needs: '}{escape(state.remedy or '')}"
        elif state.is_unfetched:
            ready = "[green]ready[/]; the first start fetches its model"
        elif state.unassembled_bytes:
            ready = f"[green]ready[/]; first use writes {state.unassembled_bytes / 1e6:.0f} MB"
        else:
            ready = "[green]ready[/]"
        does = {"synthesizer": "speaks", "recognizer": "listens to", "translator": "translates"}[entry.kind]
        console.print(
            f"[bold]{name:<10}[/] {does} {engines.list_some_codes(state.entry.languages)}: {ready}",
            soft_wrap=True,
        )
        licenses = f"code {entry.code_license}; weights {entry.weights_license}"
        for line in (entry.summary, licenses):
            console.print(Padding(Text(line, style="dim"), (0, 0, 0, 11)))
    console.print(f"\nGPU: {escape(engines.describe_gpus())}", soft_wrap=True)
    console.print(f"`speechlab engines add` takes: {', '.join(engines.list_addable_models())}")


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Name of the model; `speechlab engines list` shows them.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="hub|PATH",
            help="'hub' for the official source of the model; for kokoro-voices a folder or archive.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option("--for", metavar="ENGINE", help="Engine of a repository: whisper, llama or kokoro."),
    ] = None,
) -> None:
    """Prepare a model: collect or fetch its files, check each hash, and keep them.

    NAME is a model of `speechlab engines list`, a usual size of Whisper (large-v3-turbo), or a repository of the hub:
    owner/name[@revision][:file].
    """
    from speechlab import engines

    # A download shows a bar of its own.
    is_download = source == "hub" or name not in engines.list_addable_models()
    with contextlib.nullcontext() if is_download else console.status(f"preparing {name} …"):
        added = engines.add_model(name, source=source, engine=engine)
    console.print(
        f"[green]✓[/] {escape(added.name)}: {added.size / 1e6:,.1f} MB in {escape(str(added.folder))}",
        soft_wrap=True,
    )
    console.print(f"  license of the weights: {escape(added.license)}")
    console.print(f"  {escape(', '.join(added.items))}")


@app.command("check")
def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Engines to check. [default: all that are ready]")
    ] = None,
) -> None:
    """Run engines: verify their weights, load them, and do one small piece of work with each."""
    from speechlab import engines

    chosen = names or [name for name in engines.catalogue() if engines.status(name).ready]
    table = build_empty_table(
        "Engines, run for real",
        "engine",
        "",
        "load s",
        "first s",
        "total s",
        "RTF",
        "what came out",
        right=("load s", "first s", "total s", "RTF"),
    )
    bad = False
    for name in chosen:
        with console.status(f"running {name} …"):
            result = engines.check(name)
        bad = bad or not result.ok
        mark = "[green]✓[/]" if result.ok else "[red]✗[/]"
        figures = [
            format_number(result.load_s),
            format_number(result.first_s),
            format_number(result.total_s),
            format_number(result.rtf),
        ]
        table.add_row(
            name,
            mark,
            *figures,
            escape(result.detail) if result.ok else f"[red]{escape(result.error or '')}[/]",
        )
    if not chosen:
        raise ConfigurationError("no engine can run here; pip install 'speechlab[local]' brings them")
    console.print(table)
    raise typer.Exit(1 if bad else 0)
