"""``python -m speechlab.service``, which ``sl.connect()`` starts; its options need the standard library only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from speechlab._require import remove_cwd_from_path
from speechlab.errors import SpeechLabError

_EPILOG = """Settings come from --config, then from SPEECHLAB_SERVICE_* variables (such as
SPEECHLAB_SERVICE_API_KEY, which unlike an argument is not visible in the list of processes), then from these
options; later ones win. Prints one line, "ready {...}", when it accepts requests. Exit status: 0 stopped, 2 could not
start, 3 usage was lost."""

_SETTINGS = {
    "host": "address to listen on (default 127.0.0.1), or unix:PATH",
    "port": "TCP port (default 8100; 0 takes any free one)",
    "data-dir": "folder for keys and usage",
    "users-dir": "stop when no lock file in this folder is held any more",
    "idle-exit-s": "... for so many seconds (default 10)",
    "tts-text-limit": "maximum of characters of a text to speak (default 5000)",
    "queue-limit": "maximum of requests of one engine, waiting ones included",
    "recognizer": "engine for recognition (default whisper)",
    "recognizer-url": "another deployment for recognition, in place of an engine",
    "translator": "default engine for translation (default gemma)",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the service; returns the exit status."""
    options = vars(_build_parser().parse_args(arguments))
    try:
        from speechlab.service._config import load_config, parse_settings
        from speechlab.service._keys import make_key
        from speechlab.service._logs import log, log_to_stderr
        from speechlab.service._server.server import run_until_stopped

        if options.pop("make_key"):
            sys.stdout.write(make_key() + "\n")
            return 0
        path: Path | None = options.pop("config")
        key: str | None = options.pop("api_key")
        further = parse_settings(options.pop("set"), options.pop("engine"))
        overrides: dict[str, Any] = {**options, "api_keys": (key,) if key else None}
        overrides.update(further)
        config, warnings = load_config(path, overrides)
        if warnings:
            log_to_stderr()
        for warning in warnings:
            log(warning, level="warning")
        run_until_stopped(config, warnings)
    except SpeechLabError as error:
        sys.stderr.write(f"speechlab.service: {error}\n")
        return 2
    return 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m speechlab.service", description="The embedded speech service.", epilog=_EPILOG
    )
    add = parser.add_argument
    for name, text in _SETTINGS.items():
        add(f"--{name}", help=text)
    add("--api-key", metavar="KEY", help="key to accept: <prefix>:<body> (default: a new one)")
    add("--config", type=Path, metavar="FILE", help="settings in TOML, or in JSON if it ends in .json")
    option = "option of an engine, such as whisper.model=/models/ct2 or kokoro.enabled=false; may be repeated"
    add("--engine", action="append", default=[], metavar="ENGINE.OPTION=VALUE", help=option)
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="any other setting; may be repeated")
    add("--preload", action="store_true", default=None, help="load all models at the start")
    add("--make-key", action="store_true", help="print a new key and exit")
    return parser


if __name__ == "__main__":
    remove_cwd_from_path()
    sys.exit(main())
