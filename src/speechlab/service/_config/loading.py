"""Loading of settings from a file, the environment and arguments; later ones win."""

from __future__ import annotations

import json
import os
import re
import tomllib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from speechlab.errors import ConfigurationError
from speechlab.service._config.settings import ENVIRONMENT_PREFIX, ServiceConfig, setting_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_LISTS = frozenset({"api_keys", "operator_keys", "allowed_hosts", "ws_origins", "cors_origins"})
_BRACKETED = re.compile(r"\s*\[(?![0-9a-f.]*:[0-9a-f:.]*\])", re.IGNORECASE)
"""A list in JSON, with its quotes or after a shell has removed them; ``[::1]`` is a host."""
_OBJECTS = frozenset({"engines", "service_requests_per_minute", "service_concurrent"})
_SINGLE = {"api_key": "api_keys", "operator_key": "operator_keys"}
"""Variables for a single key, in addition to those for several."""


def load_config(
    path: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[ServiceConfig, list[str]]:
    """Load the settings: the file, then ``SPEECHLAB_SERVICE_*``, then the arguments."""
    warnings: list[str] = []
    settings: dict[str, Any] = {}
    if path is not None:
        settings.update(_known(_read_file(path), str(path), warnings))
    settings.update(_from_environment(os.environ if environment is None else environment, warnings))
    arguments = {name: value for name, value in (overrides or {}).items() if value is not None}
    if isinstance(arguments.get("engines"), dict) and isinstance(settings.get("engines"), dict):
        arguments["engines"] = _merged(settings["engines"], arguments["engines"])
    settings.update(arguments)
    return ServiceConfig.of(settings), warnings


def _known(settings: Mapping[str, Any], source: str, warnings: list[str]) -> dict[str, Any]:
    names = setting_names()
    warnings.extend(
        f"{source}: unknown setting {name!r} is ignored; there are {', '.join(names)}"
        for name in settings
        if name not in names
    )
    return {name: value for name, value in settings.items() if name in names}


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        read = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(f"the configuration file {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(
            f"the configuration file {path} is neither TOML nor .json: {error}"
        ) from error
    if not isinstance(read, dict):
        raise ConfigurationError(f"the configuration file {path} must contain settings by name")
    return read


def _from_environment(environment: Mapping[str, str], warnings: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    single_keys: dict[str, list[str]] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or not text:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name in _SINGLE:
            single_keys.setdefault(_SINGLE[name], []).append(text)
        elif name in setting_names():
            settings[name] = _from_text(name, text, variable)
        else:
            names = ", ".join(setting.upper() for setting in setting_names())
            warnings.append(
                f"unknown environment variable {variable} is ignored; after the prefix come {names}"
            )
    for name, keys in single_keys.items():
        settings[name] = (*settings.get(name, ()), *keys)
    return settings


def _from_text(name: str, text: str, source: str) -> Any:
    """Read the text of an environment variable or an argument: lists are separated by commas, objects are JSON."""
    if name in _LISTS:
        if _BRACKETED.match(text):
            raise ConfigurationError(
                f"{source} must be a list separated by commas, without brackets or quotes: a,b"
            )
        return tuple(item.strip() for item in text.split(",") if item.strip())
    if name not in _OBJECTS:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        example = '{"whisper": {"model": "/models/ct2"}}' if name == "engines" else '{"tts": 60}'
        message = f"{source} must be a JSON object, such as {example}"
        raise ConfigurationError(message)
    return value


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for name, options in second.items():
        merged[name] = {**merged.get(name, {}), **options}
    return merged


def given_settings(options: Iterable[str], engines: Iterable[str] = ()) -> dict[str, Any]:
    """Read settings from the command line, as arguments for :func:`load_config`."""
    settings: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if name not in setting_names():
            near = get_close_matches(name, setting_names(), 1)
            hint = f"did you mean {near[0]}?" if near else "docs/service.md lists the settings"
            raise ConfigurationError(f"--set {option!r}: there is no setting {name!r}; {hint}")
        if not equals:
            raise ConfigurationError(f"--set {option!r} has no value; it must look like queue_limit=8")
        settings[name] = _from_text(name, text, f"--set {name}")
    if engine_options := _engine_options(engines):
        settings["engines"] = _merged(settings.get("engines", {}), engine_options)
    return settings


def _engine_options(options: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read ``ENGINE.OPTION=VALUE`` arguments; values are JSON if they parse as JSON, and text otherwise."""
    engines: dict[str, dict[str, Any]] = {}
    for option in options:
        name, equals, text = option.partition("=")
        engine, dot, setting = name.partition(".")
        if not (equals and dot and engine and setting):
            raise ConfigurationError(
                f"--engine {option!r} must look like whisper.model=/models/ct2 or kokoro.enabled=false"
            )
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        engines.setdefault(engine, {})[setting] = value
    return engines
