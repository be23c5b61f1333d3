"""The settings of the service: names, defaults and allowed values."""

from __future__ import annotations

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

from speechlab._platform import is_loopback
from speechlab.contract import LIMITS
from speechlab.errors import ConfigurationError
from speechlab.service._addresses import (
    check_backend_url,
    checked_host,
    checked_origin,
    sends_in_the_clear,
)
from speechlab.service._keys import check_key
from speechlab.service._providers import ServedEngine

if TYPE_CHECKING:
    from collections.abc import Mapping

ENVIRONMENT_PREFIX = "SPEECHLAB_SERVICE_"
UNIX = "unix:"
"""Begins the path of a socket in ``host``."""
_KEY_LIMITS_ELSEWHERE = (600, 32)
_MIB = 1024 * 1024
_PYTHON_ONLY = frozenset({"extra_engines"})
SECRETS = frozenset({"api_keys", "operator_keys", "recogniser_api_key"})
"""Settings whose values are never shown."""

ServiceName = Literal["tts", "asr", "translate"]


class ServiceConfig(BaseModel):
    """Settings of the service. Sizes are in bytes, durations in seconds.

    Attributes:
        host: Address to listen on, or ``unix:`` and the path of a socket for a proxy; all but loopback addresses need
            an explicit API key.
        port: TCP port; 0 takes any free one.
        api_keys: Accepted keys, each of the form ``<prefix>:<body>``. Empty: a new key is made at the start.
        operator_keys: Keys that may read metrics and the details of readiness, and nothing else unless they are among
            ``api_keys`` too. A key made at the start is one of them.
        allowed_hosts: Names accepted in the ``Host`` header. Empty: the loopback names when listening on loopback,
            any name elsewhere.
        data_dir: Folder for keys and usage; None keeps nothing.
        users_dir: Folder of lock files, one held by each process that uses this service; see ``idle_exit_s``.
        idle_exit_s: With ``users_dir``: seconds without a living user after which the service stops.
        engines: Options by engine name, such as ``{"whisper": {"model": "/models/ct2"}}``;
            ``{"enabled": False}`` switches an engine off.
        recogniser: Name of the engine for recognition; empty for none.
        recogniser_url: Base URL of another deployment for recognition, in place of an engine; empty for none.
        recogniser_allow_insecure: Whether its key may travel over plain HTTP to another machine.
        recogniser_api_key: Key for that deployment; empty sends none.
        recogniser_timeout_s: Timeout of one recording there.
        recogniser_concurrency: Maximum of recordings there at the same time; the others wait here.
        translator: Name of the default engine for translation; empty for none.
        tts_text_limit: Maximum of code points of a text to speak.
        single_rate_override: Accept ``sample_rate`` on a voice with one rate, if it is that rate.
        tts_body_bytes: Maximum size of the body of ``POST /tts``.
        asr_body_bytes: Maximum size of the body of a recognition request, base64 included.
        form_body_bytes: Maximum size of the form of a translation request.
        held_bytes: Maximum of bytes held for clients: bodies under way, decoded recordings, and whole replies that
            wait for their readers. Those above a mebibyte are in files of ``data_dir``, or of the system's folder of
            temporary files. Further ones are answered 429, except from keys with less than their share.
        audio_seconds: Maximum length of a recording.
        audio_decoded_bytes: Maximum size of a decoded recording, as 32-bit floats.
        audio_channels: Maximum of channels of a recording.
        heavy_slots: Maximum of heavy engines (large models) that compute at the same time.
        tts_concurrency: Maximum of texts that one voice engine speaks in turns; the others wait. A text whose reader
            is slow does not count meanwhile.
        queue_limit: Maximum of requests of one engine, waiting ones included; further ones are answered 429.
        key_requests_per_minute: Maximum of operations (speech, recognition, translation) that a key may start within
            any sixty seconds; 0 for no limit, as in the next three. None: no limit on loopback addresses, else 600.
        key_concurrent: Maximum of concurrent operations of a key. None: no limit on loopback addresses, else 32.
        service_requests_per_minute: Maximum of operations of all keys within sixty seconds, by service:
            ``{"tts": 60, "asr": 20}``.
        service_concurrent: Maximum of concurrent operations of all keys, by service.
        preload: Load all models at the start, run voices and translators once, and start one process that decodes and
            one that reads for each language of the voices. The service is not ready before. Models and processes
            stay loaded.
        unload_idle_s: Seconds without use after which a large model is unloaded; 0 keeps all.
        max_connections: Maximum of concurrent connections; 0 follows the limit of open files. A new connection
            replaces the one that has been idle for longest.
        address_connections: Maximum of concurrent connections of one address; 0 for half of ``max_connections``.
        header_timeout_s: Timeout for the head of a request.
        header_bytes: Maximum size of the head of a request.
        body_timeout_s: Seconds over which the pace of a body is measured: in any of them it must come at 4 KiB/s.
        decode_workers: Number of processes that decode recordings.
        decode_wall_s: Timeout for the decoding of one recording.
        decode_cpu_s: Maximum processor time for it.
        decode_memory_bytes: Maximum memory for it, besides the decoders themselves.
        read_workers: Number of processes for each language that read texts for the voices; 0 reads in the service.
        read_wall_s: Timeout, and maximum processor time, for the reading of one piece of a text.
        read_memory_bytes: Maximum memory for it, besides the dictionaries.
        vendor: First part of the name ``<vendor>/tts`` of realtime speech in usage records.
        ws_origins: Values of ``Origin`` whose pages may open WebSockets; none by default.
        cors_origins: Values of ``Origin`` whose pages may send HTTP requests; none by default.
        log_level: Lowest level that is logged.
        ws_connections: Maximum of concurrent realtime connections of a key.
        ws_idle_s: Seconds without a message after which an unconfigured realtime connection ends.
        ws_session_s: Maximum duration of a realtime connection; a text under way is finished. 0 for no limit.
        ws_ping_s: Interval of pings, and timeout of their pongs.
        send_timeout_s: Seconds over which the pace of a reader is measured: in any of them it must read 1 KiB/s.
        drain_s: Seconds that a stopping service allows for requests under way.
        extra_engines: Engines given as objects, for tests and for programs that embed the service.

    Example:
        >>> ServiceConfig(port=0, tts_text_limit=100).tts_text_limit
        100
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
    held_bytes: int = Field(default=1024 * _MIB, ge=_MIB)
    audio_seconds: float = Field(default=1_800.0, gt=0)
    audio_decoded_bytes: int = Field(default=384 * _MIB, ge=1024)
    audio_channels: int = Field(default=8, ge=1, le=64)
    heavy_slots: int = Field(default=1, ge=1)
    tts_concurrency: int = Field(default=4, ge=1)
    queue_limit: int = Field(default=64, ge=1)
    key_requests_per_minute: int | None = Field(default=None, ge=0, le=1_000_000)
    key_concurrent: int | None = Field(default=None, ge=0)
    service_requests_per_minute: dict[ServiceName, Annotated[int, Field(ge=0, le=1_000_000)]] = Field(
        default_factory=dict
    )
    service_concurrent: dict[ServiceName, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    preload: bool = False
    unload_idle_s: float = Field(default=900.0, ge=0)
    max_connections: int = Field(default=0, ge=0)
    address_connections: int = Field(default=0, ge=0)
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
    cors_origins: tuple[str, ...] = ()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    ws_connections: int = Field(default=32, ge=1)
    ws_idle_s: float = Field(default=60.0, gt=0)
    ws_session_s: float = Field(default=86_400.0, ge=0)
    ws_ping_s: float = Field(default=20.0, gt=0)
    send_timeout_s: float = Field(default=60.0, gt=0)
    drain_s: float = Field(default=10.0, ge=0)
    extra_engines: tuple[InstanceOf[ServedEngine], ...] = Field(default=(), repr=False)

    def key_limits(self) -> tuple[int, int]:
        """Limits of a key without its own: operations within sixty seconds, and concurrent ones; 0 for none."""
        usual = (0, 0) if is_loopback(self.host) else _KEY_LIMITS_ELSEWHERE
        given = (self.key_requests_per_minute, self.key_concurrent)
        rate, running = (limit if own is None else own for own, limit in zip(given, usual, strict=True))
        return rate, running

    @field_validator("api_keys", "operator_keys")
    @classmethod
    def _keys_are_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for key in keys:
            check_key(key)
        return keys

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _hosts_are_hosts(cls, hosts: object) -> tuple[str, ...]:
        return tuple(checked_host(host) for host in _listed(hosts, "speech.example.org"))

    @field_validator("ws_origins", "cors_origins", mode="before")
    @classmethod
    def _origins_are_origins(cls, origins: object, info: ValidationInfo) -> tuple[str, ...]:
        any_page = info.field_name == "cors_origins"
        listed = _listed(origins, "https://page.example.org")
        return tuple(checked_origin(origin, any_page=any_page) for origin in listed)

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
            message = "it contains characters that no key contains"
            raise ValueError(message)
        if key and sends_in_the_clear(url) and not info.data.get("recogniser_allow_insecure"):
            message = (
                f"it would travel unencrypted to {url}; use https://, or set recogniser_allow_insecure on a network "
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
            name = ".".join(str(part) for part in first["loc"])
            said = first["msg"].removeprefix("Value error, ")
            raise ConfigurationError(f"the service's setting {name!r}: {said}") from None


def _listed(given: object, example: str) -> tuple[object, ...]:
    if not isinstance(given, (list, tuple, set, frozenset)):
        message = f'it must be a list, even with one item: ["{example}"]'
        raise ValueError(message)  # noqa: TRY004 - all faults of settings have the same type
    return tuple(given)


def setting_names() -> list[str]:
    """Names of all settings for a file or the environment."""
    return [name for name in ServiceConfig.model_fields if name not in _PYTHON_ONLY]
