"""``speechlab serve``: the embedded service as a separate process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from speechlab.cli._options import option, wrap_with_parameters

_OPTIONS = [
    option("host", str | None, None, metavar="ADDRESS", help="Address to listen on. [default: 127.0.0.1]"),
    option("port", int | None, None, metavar="PORT", min=0, max=65535, help="Port; 0 takes a free one. [default: "
    "8100]"),
    option("api_key", list[str] | None, None, metavar="KEY", help="Key to accept, of the form PREFIX:BODY; may be "
    "repeated. Without one, a new key is made."),
    option("data_dir", Path | None, None, metavar="DIR", help="Folder for keys and usage. [default: a folder among "
    "the user's data]"),
    option("recognizer_url", str | None, None, metavar="URL", help="Another deployment for recognition; its key is "
    "in SPEECHLAB_SERVICE_RECOGNIZER_API_KEY."),
    option("engine", list[str] | None, None, metavar="ENGINE.OPTION=VALUE", help="Option of an engine, such as "
    "kokoro.enabled=false; may be repeated."),
    option("setting", list[str] | None, None, "--set", metavar="NAME=VALUE", help="Any other setting, such as "
    "queue_limit=8; may be repeated. help(speechlab.service.ServiceConfig) lists them."),
    option("config", Path | None, None, metavar="FILE", help="A TOML file with settings."),
    option("preload", bool, False, "--preload", help="Load all models at the start; /readyz reports when they are "
    "loaded."),
    option("make_key", bool, False, "--make-key", help="Print a new key and exit."),
]  # fmt: skip


def _serve(
    *,
    make_key: bool,
    config: Path | None,
    setting: list[str] | None,
    engine: list[str] | None,
    api_key: list[str] | None,
    preload: bool,
    **settings: Any,
) -> None:
    """Serve speech on this machine until stopped.

    Prints one line, `ready {"base_url": …, "ws_base_url": …, "api_key": …}`, when it accepts requests.
    """
    from speechlab import service

    if make_key:
        typer.echo(service.make_key())
        return
    settings |= {"api_keys": tuple(api_key) if api_key else None, "preload": preload or None}
    settings |= service.parse_settings(setting or (), engine or ())
    loaded, warnings = service.load_config(config, settings)
    for warning in warnings:
        typer.echo(warning, err=True)
    if loaded.data_dir is None:
        loaded = loaded.model_copy(update={"data_dir": service.resolve_default_data_dir()})
    service.run_until_stopped(loaded)


serve = wrap_with_parameters(_serve, _OPTIONS)
