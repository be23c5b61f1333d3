"""Settings of the service: names, defaults and allowed values, and where they come from.

They are read from a file, the environment and arguments; later ones win.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from speechlab._arguments import propose_name
from speechlab._platform import is_loopback
from speechlab.contract import LIMITS
from speechlab.errors import ConfigurationError
from speechlab.service._addresses import (
    check_backend_url,
    is_sent_unencrypted,
    normalize_host,
    normalize_origin,
)
from speechlab.service._keys import KEY_PREFIX, has_key_form
from speechlab.service._providers import ServedEngine

ENVIRONMENT_PREFIX = "SPEECHLAB_SERVICE_"
# Begins the path of a socket in ``host``.
UNIX = "unix:"
# Maximum size of a body with a text; a legal one can need 60,000 bytes.
TEXT_BODY_BYTES = 256 * 1024
_MIB = 1024 * 1024
# Settings whose values are never shown.
SECRET_SETTINGS = frozenset({"api_keys", "operator_keys", "recognizer_api_key"})

ServiceName = Literal["tts", "asr", "translate"]


class ServiceConfig(BaseModel):
    """Settings of the service. Sizes are in bytes, durations in seconds.

    Example:
        >>> ServiceConfig(port=0, tts_text_limit=100).tts_text_limit
        100

    Attributes:
        host: Address to listen on; ``unix:/run/speech.sock`` is a socket. Any but loopback needs a key of yours.
        port: Port to listen on; 0 takes a free one.
        api_keys: Accepted keys: a prefix, a colon and 8 to 256 characters; without any, one is made up.
        operator_keys: Keys for ``/metrics`` and the details of ``/readyz``, and for nothing else unless among
            ``api_keys``; without any, the made-up key.
        allowed_hosts: Names accepted in ``Host``, against pages that point their own name at your machine; by
            default loopback names, and any on other addresses.
        data_dir: Folder for keys and usage; with ``speechlab serve`` by default the user's data folder.
        users_dir: Folder of lock files; the service stops once no living process holds one.
        idle_exit_s: Seconds without such a process before it stops.
        engines: Options by engine: ``{"whisper": {"model": "large-v3-turbo"}}``; ``enabled`` false switches one off.
        recognizer: Default recognizer; empty for none. The only one whose ``model`` is named comes first.
        recognizer_url: Another deployment that recognizes.
        recognizer_allow_insecure: Whether its key is sent over plain HTTP to another machine.
        recognizer_api_key: Its key, only as a variable or in a file.
        recognizer_timeout_s: Its time for a recording.
        translator: Default translator; as ``recognizer``.
        tts_text_limit: Maximum number of characters of a text to speak.
        single_rate_override: Whether ``sample_rate`` is accepted on a voice with that one rate.
        asr_body_bytes: Maximum size of a body with a recording; other bodies have 256 KiB.
        held_bytes: Budget for bodies, decoded recordings and replies.
        audio_seconds: Maximum length of a recording (8 channels); it may decode to 224 kB for each second of it.
        tts_concurrency: Long texts of one key that an engine speaks at once, and as many short ones (200 characters).
        queue_limit: Requests that one engine takes; more get 429.
        key_requests_per_minute: Operations that a key may begin in any sixty seconds; 0 for no limit.
        key_concurrent: Operations that a key may have running; 0 for no limit.
        service_requests_per_minute: The same for all keys together: ``{"tts": 60, "asr": 10, "translate": 10}``.
        service_concurrent: The same for all keys together.
        preload: Whether all models and processes are loaded at the start, and kept.
        unload_idle_s: Idle time after which large models and processes are unloaded; 0 keeps them.
        max_connections: Connections in all; by default by the limit of open files, at most 4,096. A new one
            replaces the longest idle one, or gets 503.
        address_connections: Connections from one address; by default half of that.
        header_timeout_s: Time for the head of a request; then 408. Over 64 KiB or 200 headers is 431.
        body_timeout_s: A body must come at 4 KiB/s in any such period; else 408.
        decode_workers: Processes that decode recordings.
        decode_wall_s: Time for decoding one recording; then 413.
        decode_memory_bytes: Memory for decoding one recording; then 413.
        read_workers: Processes that read texts in each language; 0 reads in the service.
        read_wall_s: Time for reading one piece of a text; then 500.
        read_memory_bytes: Memory for reading one piece of a text; then 500.
        vendor: First part of the name ``<vendor>/tts`` under which realtime speech is accounted.
        ws_origins: Origins (``https://page.example.org``) whose pages may open WebSockets; programs send none.
        cors_origins: Origins whose pages may call over HTTP; ``*`` for all.
        log_level: Least important level that is logged.
        ws_connections: Realtime connections of a key.
        ws_idle_s: Time for configuring a realtime connection.
        ws_session_s: Maximum age of a realtime connection; a text in progress is finished; 0 for no limit.
        ws_ping_s: Time between pings, and for the answer to one.
        send_timeout_s: A client must read 1 KiB/s in any such period; else its reply or connection ends.
        drain_s: Time that a stopping service lets requests finish.
        extra_engines: Engines given as objects, for programs that embed the service.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True
    )

    host: str = "127.0.0.1"
    port: int = Field(default=8100, ge=0, le=65_535)
    api_keys: tuple[str, ...] = Field(default=(), repr=False)
    operator_keys: tuple[str, ...] = Field(default=(), repr=False)
    allowed_hosts: tuple[str, ...] = ()
    data_dir: Path | None = None
    users_dir: Path | None = None
    idle_exit_s: float = Field(default=10.0, gt=0)
    engines: dict[str, dict[str, Any]] = Field(default_factory=dict)
    recognizer: str = "whisper"
    recognizer_url: str = ""
    recognizer_allow_insecure: bool = False
    recognizer_api_key: str = Field(default="", repr=False)
    recognizer_timeout_s: float = Field(default=600.0, gt=0)
    translator: str = "gemma"
    tts_text_limit: int = Field(default=LIMITS.tts_text_chars, ge=1)
    single_rate_override: bool = False
    asr_body_bytes: int = Field(default=64 * _MIB, ge=1024)
    held_bytes: int = Field(default=1024 * _MIB, ge=_MIB)
    audio_seconds: float = Field(default=1_800.0, gt=0)
    tts_concurrency: int = Field(default=4, ge=1)
    queue_limit: int = Field(default=64, ge=1)
    key_requests_per_minute: int = Field(
        default_factory=lambda settings: 0 if is_loopback(settings["host"]) else 600, ge=0, le=1_000_000
    )
    key_concurrent: int = Field(
        default_factory=lambda settings: 0 if is_loopback(settings["host"]) else 32, ge=0
    )
    service_requests_per_minute: dict[ServiceName, Annotated[int, Field(ge=0, le=1_000_000)]] = Field(
        default_factory=dict
    )
    service_concurrent: dict[ServiceName, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    preload: bool = False
    unload_idle_s: float = Field(default=900.0, ge=0)
    max_connections: int = Field(default=0, ge=0)
    address_connections: int = Field(default=0, ge=0)
    header_timeout_s: float = Field(default=20.0, gt=0)
    body_timeout_s: float = Field(default=20.0, gt=0)
    decode_workers: int = Field(default=1, ge=1, le=16)
    decode_wall_s: float = Field(default=60.0, gt=0)
    decode_memory_bytes: int = Field(default=2048 * _MIB, ge=256 * _MIB)
    read_workers: int = Field(default=1, ge=0, le=16)
    read_wall_s: float = Field(default=10.0, gt=0)
    read_memory_bytes: int = Field(default=1024 * _MIB, ge=64 * _MIB)
    vendor: str = Field(default="speechlab", pattern=r"^[a-z0-9][a-z0-9._-]*$")
    ws_origins: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    ws_connections: int = Field(default=32, ge=1)
    ws_idle_s: float = Field(default=60.0, gt=0)
    ws_session_s: float = Field(default=86_400.0, ge=0)
    ws_ping_s: float = Field(default=20.0, gt=0)
    send_timeout_s: float = Field(default=60.0, gt=0)
    drain_s: float = Field(default=10.0, ge=0)
    extra_engines: tuple[InstanceOf[ServedEngine], ...] = Field(default=(), repr=False)

    @field_validator("api_keys", "operator_keys")
    @classmethod
    def _check_api_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(has_key_form, keys)):
            message = (
                f"an API key must be a prefix of letters and digits such as {KEY_PREFIX!r}, a colon and 8 to 256 "
                f"letters, digits or ._~+/=- (for example the output of: speechlab serve --make-key)"
            )
            raise ValueError(message)
        return keys

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _normalize_hosts(cls, hosts: object) -> tuple[str, ...]:
        return tuple(normalize_host(host) for host in _require_list(hosts, "speech.example.org"))

    @field_validator("ws_origins", "cors_origins", mode="before")
    @classmethod
    def _normalize_origins(cls, origins: object, info: ValidationInfo) -> tuple[str, ...]:
        any_page = info.field_name == "cors_origins"
        listed = _require_list(origins, "https://page.example.org")
        return tuple(normalize_origin(origin, any_page=any_page) for origin in listed)

    @field_validator("recognizer_url")
    @classmethod
    def _check_recognizer_url(cls, url: str) -> str:
        if url:
            check_backend_url(url)
        return url

    @field_validator("recognizer_api_key")
    @classmethod
    def _check_recognizer_key(cls, key: str, info: ValidationInfo) -> str:
        url = info.data.get("recognizer_url", "")
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            message = "it contains characters that no key contains"
            raise ValueError(message)
        if key and is_sent_unencrypted(url) and not info.data.get("recognizer_allow_insecure"):
            message = (
                f"it would travel unencrypted to {url}; use https://, or set recognizer_allow_insecure on a network "
                f"you trust"
            )
            raise ValueError(message)
        return key

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Check settings.

        Raises:
            ConfigurationError: The value of a setting is not allowed; the message names the setting.
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            name = ".".join(str(step) for step in first["loc"])
            reason = first["msg"].removeprefix("Value error, ")
            raise ConfigurationError(f"the service's setting {name!r}: {reason}") from None


def _require_list(given: object, example: str) -> tuple[object, ...]:
    if not isinstance(given, (list, tuple, set, frozenset)):
        message = f'it must be a list, even with one item: ["{example}"]'
        raise ValueError(message)  # noqa: TRY004 - all faults of settings have the same type
    return tuple(given)


def list_setting_names() -> list[str]:
    """Names of all settings for a file or the environment."""
    return [name for name in ServiceConfig.model_fields if name != "extra_engines"]


_LIST_SETTINGS = frozenset({"api_keys", "operator_keys", "allowed_hosts", "ws_origins", "cors_origins"})
# A list in JSON, with its quotes or after a shell has removed them; ``[::1]`` is a host.
_BRACKETED_LIST = re.compile(r"\s*\[(?![0-9a-f.]*:[0-9a-f:.]*\])", re.IGNORECASE)
_OBJECT_SETTINGS = frozenset({"engines", "service_requests_per_minute", "service_concurrent"})
# Variables for a single key, in addition to those for several.
_SINGLE_KEY_SETTINGS = {"api_key": "api_keys", "operator_key": "operator_keys"}


def load_config(
    path: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[ServiceConfig, list[str]]:
    """Load the settings: the file, then ``SPEECHLAB_SERVICE_*``, then the arguments."""
    warnings: list[str] = []
    settings: dict[str, Any] = {}
    if path is not None:
        settings.update(_read_settings_file(path, warnings))
    settings.update(_read_environment_settings(os.environ if environment is None else environment, warnings))
    arguments = {name: value for name, value in (overrides or {}).items() if value is not None}
    if isinstance(arguments.get("engines"), dict) and isinstance(settings.get("engines"), dict):
        arguments["engines"] = _merge_engine_options(settings["engines"], arguments["engines"])
    settings.update(arguments)
    return ServiceConfig.of(settings), warnings


def _read_settings_file(path: Path, warnings: list[str]) -> dict[str, Any]:
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
    names = list_setting_names()
    for name in [name for name in read if name not in names]:
        warnings.append(f"{path}: unknown setting {name!r} is ignored; there are {', '.join(names)}")
        del read[name]
    return read


def _read_environment_settings(environment: Mapping[str, str], warnings: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    single_keys: dict[str, list[str]] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or not text:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name in _SINGLE_KEY_SETTINGS:
            single_keys.setdefault(_SINGLE_KEY_SETTINGS[name], []).append(text)
        elif name in list_setting_names():
            settings[name] = _parse_setting(name, text, variable)
        else:
            names = [setting.upper() for setting in list_setting_names()]
            meant = propose_name(names, name.upper()) or f"; after the prefix come {', '.join(names)}"
            warnings.append(f"unknown environment variable {variable} is ignored{meant}")
    for name, keys in single_keys.items():
        settings[name] = (*settings.get(name, ()), *keys)
    return settings


def _parse_setting(name: str, text: str, source: str) -> Any:
    """Read the text of an environment variable or an argument: lists are separated by commas, objects are JSON."""
    if name in _LIST_SETTINGS:
        if _BRACKETED_LIST.match(text):
            raise ConfigurationError(
                f"{source} must be a list separated by commas, without brackets or quotes: a,b"
            )
        return tuple(item.strip() for item in text.split(",") if item.strip())
    if name not in _OBJECT_SETTINGS:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        example = '{"whisper": {"model": "/models/ct2"}}' if name == "engines" else '{"tts": 60}'
        raise ConfigurationError(f"{source} must be a JSON object, such as {example}")
    return value


def _merge_engine_options(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for name, options in second.items():
        merged[name] = {**merged.get(name, {}), **options}
    return merged


def parse_settings(options: Iterable[str], engines: Iterable[str] = ()) -> dict[str, Any]:
    """Read settings from the command line, as arguments for :func:`load_config`."""
    settings: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if name not in list_setting_names():
            meant = propose_name(list_setting_names(), name)
            hint = meant or "; help(speechlab.service.ServiceConfig) lists the settings"
            raise ConfigurationError(f"--set {option!r}: there is no setting {name!r}{hint}")
        if not equals:
            raise ConfigurationError(f"--set {option!r} has no value; it must look like queue_limit=8")
        settings[name] = _parse_setting(name, text, f"--set {name}")
    if engine_options := _parse_engine_options(engines):
        settings["engines"] = _merge_engine_options(settings.get("engines", {}), engine_options)
    return settings


def _parse_engine_options(options: Iterable[str]) -> dict[str, dict[str, Any]]:
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
