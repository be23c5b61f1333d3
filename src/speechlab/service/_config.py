"""Settings of the service, from a file, the environment and arguments; later ones win."""

from __future__ import annotations

import json
import os
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from speechlab.contract import LIMITS
from speechlab.errors import ConfigurationError
from speechlab.service._addresses import check_backend_url, sends_in_the_clear
from speechlab.service._keys import check_key
from speechlab.service._providers import ServedEngine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ENVIRONMENT_PREFIX = "SPEECHLAB_SERVICE_"
_MIB = 1024 * 1024
_PYTHON_ONLY = frozenset({"extra_engines"})
SECRETS = frozenset({"api_keys", "recogniser_api_key"})
"""Settings that are shown nowhere."""

_LISTS = frozenset({"api_keys", "allowed_hosts", "ws_origins"})
_OBJECTS = frozenset({"engines", "service_requests_per_minute", "service_concurrent"})

ServiceName = Literal["tts", "asr", "translate"]


class ServiceConfig(BaseModel):
    """Settings of the service. Sizes are in bytes, durations in seconds.

    Attributes:
        host: Address to listen on; anything but loopback needs an API key of yours.
        port: TCP port; 0 takes any free one.
        api_keys: Keys that are let in, each of the form ``sl:<body>``. Empty: one is made up at the start.
        allowed_hosts: Names accepted in the ``Host`` header. Empty: the loopback names when listening on loopback,
            any name elsewhere.
        data_dir: Folder for what the service keeps, which is keys and usage; None keeps nothing.
        users_dir: Folder of lock files, one held by each process that uses this service; see ``idle_exit_s``.
        idle_exit_s: With ``users_dir``: seconds without any living user after which the service stops.
        engines: Options by engine name, such as ``{"whisper": {"model": "/models/ct2"}}``;
            ``{"enabled": False}`` switches one off.
        recogniser: Name of the engine that recognises; empty for none.
        recogniser_url: Base URL of another deployment whose recogniser is used instead of an engine; empty for none.
        recogniser_allow_insecure: Whether its key may travel over plain HTTP to another machine.
        recogniser_api_key: Key for that deployment; empty sends none.
        recogniser_timeout_s: How long it may take for one recording.
        recogniser_concurrency: How many recordings are there at the same moment; the others wait here.
        translator: Name of the engine that translates by default; empty for none.
        tts_text_limit: Maximum of code points of a text to speak.
        single_rate_override: Accept ``sample_rate`` on a voice with one rate, if it is that rate.
        tts_body_bytes: Maximum size of the body of ``POST /tts``.
        asr_body_bytes: The same for a recognition request, base64 included.
        form_body_bytes: The same for the form of a translation request.
        audio_seconds: Maximum length of a recording.
        audio_decoded_bytes: Maximum size of a recording once decoded, as 32-bit floats.
        audio_channels: Maximum of channels of a recording.
        heavy_slots: How many of the heavy engines (large models) may compute at the same moment.
        tts_concurrency: How many texts one voice engine speaks in turns; the others wait. One whose reader is slow
            does not count meanwhile.
        queue_limit: Maximum of requests that one engine takes, those that wait included; more are answered 429.
        key_requests_per_minute: How many operations (speech, recognition, translation) a key may begin within any
            sixty seconds; 0 for no limit, as in the three that follow.
        key_concurrent: How many operations of a key may run at the same moment.
        service_requests_per_minute: The same for all keys together, by service: ``{"tts": 60, "asr": 20}``.
        service_concurrent: The same for the operations of a service that run at the same moment.
        unload_idle_s: A large model that nobody has used for so long is unloaded; 0 keeps all.
        header_timeout_s: How long the head of a request may take.
        header_bytes: How long it may be.
        body_timeout_s: How long a body may pause, and how long its first 80 KiB may take; the rest has to come
            at 4 KiB/s or more.
        decode_workers: How many processes decode recordings.
        decode_wall_s: How long the decoding of one recording may take.
        decode_cpu_s: How much processor time it may take.
        decode_memory_bytes: How much memory it may take, beside the decoders themselves.
        read_workers: How many processes a language has that read texts for the voices; 0 reads in the service itself.
        read_wall_s: How long the reading of one piece of a text may take, and how much processor time.
        read_memory_bytes: How much memory it may take, beside the dictionaries.
        vendor: First part of the name ``<vendor>/tts`` under which realtime speech is accounted.
        ws_origins: Values of ``Origin`` from which pages may open WebSockets; none by default.
        ws_connections: Maximum of realtime connections of a key at the same moment.
        ws_idle_s: A realtime connection whose session is not configured ends after so long without a message.
        ws_session_s: How long a realtime connection may last; what runs then is finished. 0 for no end.
        ws_ping_s: Time between pings, and for the answer to one.
        send_timeout_s: A stream ends when its reader takes nothing for so long.
        drain_s: How long a stopping service lets running requests finish.
        extra_engines: Engines given as objects, for tests and for code that embeds the service.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True
    )

    host: str = "127.0.0.1"
    port: int = Field(default=8100, ge=0, le=65_535)
    api_keys: tuple[str, ...] = Field(default=(), repr=False)
    allowed_hosts: tuple[str, ...] = ()
    data_dir: Path | None = None
    users_dir: Path | None = None
    idle_exit_s: float = Field(default=10.0, gt=0)
    engines: dict[str, dict[str, Any]] = Field(default_factory=dict)
    recogniser: str = "whisper"
    recogniser_url: str = ""
    recogniser_allow_insecure: bool = False
    recogniser_api_key: str = Field(default="", repr=False)
    recogniser_timeout_s: float = Field(default=600.0, gt=0)
    recogniser_concurrency: int = Field(default=8, ge=1)
    translator: str = "gemma"
    tts_text_limit: int = Field(default=LIMITS.tts_text_chars, ge=1)
    single_rate_override: bool = False
    tts_body_bytes: int = Field(default=256 * 1024, ge=1024)
    asr_body_bytes: int = Field(default=64 * _MIB, ge=1024)
    form_body_bytes: int = Field(default=256 * 1024, ge=1024)
    audio_seconds: float = Field(default=1_800.0, gt=0)
    audio_decoded_bytes: int = Field(default=384 * _MIB, ge=1024)
    audio_channels: int = Field(default=8, ge=1, le=64)
    heavy_slots: int = Field(default=1, ge=1)
    tts_concurrency: int = Field(default=4, ge=1)
    queue_limit: int = Field(default=64, ge=1)
    key_requests_per_minute: int = Field(default=0, ge=0, le=1_000_000)
    key_concurrent: int = Field(default=0, ge=0)
    service_requests_per_minute: dict[ServiceName, Annotated[int, Field(ge=0, le=1_000_000)]] = Field(
        default_factory=dict
    )
    service_concurrent: dict[ServiceName, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    unload_idle_s: float = Field(default=900.0, ge=0)
    header_timeout_s: float = Field(default=20.0, gt=0)
    header_bytes: int = Field(default=64 * 1024, ge=4096)
    body_timeout_s: float = Field(default=20.0, gt=0)
    decode_workers: int = Field(default=1, ge=1, le=16)
    decode_wall_s: float = Field(default=60.0, gt=0)
    decode_cpu_s: float = Field(default=60.0, gt=0)
    decode_memory_bytes: int = Field(default=2048 * _MIB, ge=256 * _MIB)
    read_workers: int = Field(default=1, ge=0, le=16)
    read_wall_s: float = Field(default=10.0, gt=0)
    read_memory_bytes: int = Field(default=1024 * _MIB, ge=64 * _MIB)
    vendor: str = Field(default="speechlab", pattern=r"^[a-z0-9][a-z0-9._-]*$")
    ws_origins: tuple[str, ...] = ()
    ws_connections: int = Field(default=32, ge=1)
    ws_idle_s: float = Field(default=60.0, gt=0)
    ws_session_s: float = Field(default=86_400.0, ge=0)
    ws_ping_s: float = Field(default=20.0, gt=0)
    send_timeout_s: float = Field(default=60.0, gt=0)
    drain_s: float = Field(default=10.0, ge=0)
    extra_engines: tuple[InstanceOf[ServedEngine], ...] = Field(default=(), repr=False)

    @field_validator("api_keys")
    @classmethod
    def _keys_are_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for key in keys:
            check_key(key)
        return keys

    @field_validator("recogniser_url")
    @classmethod
    def _url_is_a_url(cls, url: str) -> str:
        if url:
            check_backend_url(url)
        return url

    @field_validator("recogniser_api_key")
    @classmethod
    def _key_stays_secret(cls, key: str, info: ValidationInfo) -> str:
        url = info.data.get("recogniser_url", "")
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            message = "it has characters that no key has"
            raise ValueError(message)
        if key and sends_in_the_clear(url) and not info.data.get("recogniser_allow_insecure"):
            message = (
                f"it would travel in the clear to {url}; use https://, or set recogniser_allow_insecure on a network "
                f"you trust"
            )
            raise ValueError(message)
        return key

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Check settings.

        Raises:
            ConfigurationError: A setting has a value that it cannot have; the text names it.
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            raise ConfigurationError(f"the service's setting {name!r}: {first['msg']}") from None


def load_config(
    path: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[ServiceConfig, list[str]]:
    """Put the settings together: the file, then ``SPEECHLAB_SERVICE_*``, then the arguments given.

    Args:
        path: A TOML file (or JSON, by its suffix), or None.
        overrides: Arguments; None values count as not given.
        environment: Variables; those of the process by default.

    Returns:
        The settings, and a warning for each one that is unknown.

    Raises:
        ConfigurationError: The file cannot be read, or a setting has a value that it cannot have.
    """
    warnings: list[str] = []
    settings: dict[str, Any] = {}
    if path is not None:
        settings.update(_known(_read_file(path), str(path), warnings))
    settings.update(_from_environment(os.environ if environment is None else environment, warnings))
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    if isinstance(given.get("engines"), dict) and isinstance(settings.get("engines"), dict):
        given["engines"] = _merged(settings["engines"], given["engines"])
    settings.update(given)
    return ServiceConfig.of(settings), warnings


def setting_names() -> list[str]:
    """Names of all settings that a file or the environment may hold."""
    return [name for name in ServiceConfig.model_fields if name not in _PYTHON_ONLY]


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
        raise ConfigurationError(f"the configuration file {path} must hold settings by name")
    return read


def _from_environment(environment: Mapping[str, str], warnings: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    single_keys: list[str] = []
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or not text:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name == "api_key":
            single_keys.append(text)
        elif name in setting_names():
            found[name] = _from_text(name, text, variable)
        else:
            names = ", ".join(setting.upper() for setting in setting_names())
            warnings.append(
                f"unknown environment variable {variable} is ignored; after the prefix come {names}"
            )
    if single_keys:
        found["api_keys"] = (*found.get("api_keys", ()), *single_keys)
    return found


def _from_text(name: str, text: str, source: str) -> Any:
    """Read the text of an environment variable or an argument: lists have commas, and objects are JSON."""
    if name in _LISTS:
        return tuple(part.strip() for part in text.split(",") if part.strip())
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
    both = dict(first)
    for name, options in second.items():
        both[name] = {**both.get(name, {}), **options}
    return both


def given_settings(options: Iterable[str], engines: Iterable[str] = ()) -> dict[str, Any]:
    """Read settings from the command line, as arguments for :func:`load_config`.

    Args:
        options: ``NAME=VALUE``; the value is written as in an environment variable.
        engines: ``ENGINE.OPTION=VALUE``.

    Raises:
        ConfigurationError: One of them has another form, or names no setting.
    """
    found: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals or name not in setting_names():
            near = get_close_matches(name, setting_names(), 1)
            hint = f"; did you mean {near[0]}?" if near else "; docs/service.md lists the settings"
            raise ConfigurationError(f"--set {option!r} must look like queue_limit=8{hint}")
        found[name] = _from_text(name, text, f"--set {name}")
    if made := _engine_options(engines):
        found["engines"] = _merged(found.get("engines", {}), made)
    return found


def _engine_options(options: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read ``ENGINE.OPTION=VALUE`` arguments; values are JSON where they can be, and text otherwise."""
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
