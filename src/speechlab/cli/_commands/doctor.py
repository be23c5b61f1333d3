"""``speechlab doctor``: a check of the installation, with advice for each problem."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable

import typer
from rich.markup import escape

from speechlab import __version__
from speechlab.cli._console import build_empty_table, console
from speechlab.errors import SpeechLabError

_RECOGNIZER_URL = "SPEECHLAB_SERVICE_RECOGNIZER_URL"
_RECOGNIZER_KEY = "SPEECHLAB_SERVICE_RECOGNIZER_API_KEY"
_LOW_SPACE_BYTES = 2_000_000_000


def doctor() -> None:
    """Check this installation: engines, space for their models, the configured service and its key."""
    checks: tuple[tuple[str, Callable[[], str]], ...] = (
        ("speechlab", lambda: f"{__version__} on Python {platform.python_version()}, {platform.platform()}"),
        ("engines", _check_engines),
        ("model cache", _check_model_cache),
        ("service", _check_service),
        *((("recognizer", _describe_recognizer),) if os.environ.get(_RECOGNIZER_URL) else ()),
    )
    table = build_empty_table("speechlab doctor", "", "what", "result")
    bad = False
    for name, look in checks:
        try:
            with console.status(f"{name} …"):
                table.add_row("[green]✓[/]", name, escape(look()))
        except SpeechLabError as error:
            bad = True
            table.add_row("[red]✗[/]", name, escape(str(error)))
    console.print(table)
    raise typer.Exit(1 if bad else 0)


def _check_engines() -> str:
    from speechlab import engines

    ready = [name for name in engines.catalogue() if engines.status(name).ready]
    if not ready and os.environ.get("SPEECHLAB_BASE_URL"):
        return "none here; the configured service does the work"
    if not ready:
        message = "none can run here; pip install 'speechlab[local]' brings them"
        raise SpeechLabError(message)
    return f"ready: {', '.join(ready)}; GPU: {engines.describe_gpus()}"


def _check_model_cache() -> str:
    from speechlab import engines

    root = engines.ModelStore().root
    place = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if not os.access(place, os.W_OK):
        message = f"{root} cannot be written; set SPEECHLAB_CACHE_DIR to a folder that can"
        raise SpeechLabError(message)
    unwritten = sum(engines.status(name).unassembled_bytes for name in engines.catalogue())
    if free < min(_LOW_SPACE_BYTES, unwritten):
        message = f"only {free / 1e9:.1f} GB free at {root}; the models need 2 GB; set SPEECHLAB_CACHE_DIR elsewhere"
        raise SpeechLabError(message)
    return f"{root}, {free / 1e9:.0f} GB free"


def _check_service() -> str:
    from speechlab.client import connect

    with connect() as lab:
        voices = lab.voices()
        return f"{lab.base_url} answers, with {len(voices)} voices"


def _describe_recognizer() -> str:
    from speechlab.service import load_config

    config, _ = load_config()
    key = "with a key" if config.recognizer_api_key else f"without a key ({_RECOGNIZER_KEY})"
    return f"recordings go to {config.recognizer_url}, {key}"
