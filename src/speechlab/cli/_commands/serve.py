"""``speechlab serve``: the embedded service as a separate process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on. [default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help="Port; 0 takes a free one. [default: 8100]"),
    ] = None,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Key to accept, of the form PREFIX:BODY; may be repeated. Without one, a new key is made.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for keys and usage. [default: a folder among the user's data]"
        ),
    ] = None,
    recognizer_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Another deployment for recognition; its key is in SPEECHLAB_SERVICE_RECOGNIZER_API_KEY.",
        ),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENGINE.OPTION=VALUE",
            help="Option of an engine, such as kokoro.enabled=false; may be repeated.",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting, such as queue_limit=8; may be repeated. docs/service.md lists them.",
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A TOML file with settings.")] = None,
    preload: Annotated[
        bool,
        typer.Option("--preload", help="Load all models at the start; /readyz reports when they are loaded."),
    ] = False,
    make_key: Annotated[bool, typer.Option("--make-key", help="Print a new key and exit.")] = False,
) -> None:
    """Serve speech on this machine until stopped.

    Prints one line, `ready {"base_url": …, "ws_base_url": …, "api_key": …}`, when it accepts requests.
    """
    from speechlab import service

    if make_key:
        typer.echo(service.make_key())
        return
    overrides = {
        "host": host,
        "port": port,
        "api_keys": tuple(api_key) if api_key else None,
        "data_dir": data_dir,
        "recognizer_url": recognizer_url,
        "preload": preload or None,
        **service.given_settings(setting or (), engine or ()),
    }
    settings, warnings = service.load_config(config, overrides)
    for warning in warnings:
        typer.echo(warning, err=True)
    if settings.data_dir is None:
        settings = settings.model_copy(update={"data_dir": service.default_data_dir()})
    service.serve(settings)
