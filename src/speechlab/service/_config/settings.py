"""The settings of the service: their names, defaults and what they can be."""

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
_MIB = 1024 * 1024
_PYTHON_ONLY = frozenset({"extra_engines"})
SECRETS = frozenset({"api_keys", "operator_keys", "recogniser_api_key"})
"""Settings that are shown nowhere."""

ServiceName = Literal["tts", "asr", "translate"]


class ServiceConfig(BaseModel):
    """Settings of the service. Sizes are in bytes, durations in seconds.

    Attributes:
        host: Address to listen on; anything but loopback needs an API key of yours.
        port: TCP port; 0 takes any free one.
        api_keys: Keys that are let in, each of the form ``<prefix>:<body>``. Empty: one is made up at the start.
        operator_keys: Keys that may read metrics and the details of readiness, and open nothing else unless they are
            among ``api_keys`` too. A key that was made up at the start is one of them.
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
        preload: Load all models at the start, have voices and translators work once, and start a process that
            decodes and one that reads for each language of the voices; until then the service is not ready. They
            stay.
        unload_idle_s: A large model that nobody has used for so long is unloaded; 0 keeps all.
        max_connections: Maximum of connections at the same moment, from everywhere; 0 for what the limit of open
            files allows. The one that has been idle for longest makes room.
        address_connections: The same for one address; 0 for half of them.
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
        cors_origins: Values of ``Origin`` whose pages may call over HTTP; none by default.
        log_level: The least level that is logged.
        ws_connections: Maximum of realtime connections of a key at the same moment.
        ws_idle_s: A realtime connection whose session is not configured ends after so long without a message.
        ws_session_s: How long a realtime connection may last; what runs then is finished. 0 for no end.
        ws_ping_s: Time between pings, and for the answer to one.
        send_timeout_s: A stream ends when its reader takes nothing for so long.
        drain_s: How long a stopping service lets running requests finish.
        extra_engines: Engines given as objects, for tests and for code that embeds the service.

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
            said = first["msg"].removeprefix("Value error, ")
            raise ConfigurationError(f"the service's setting {name!r}: {said}") from None


def _listed(given: object, example: str) -> tuple[object, ...]:
    if not isinstance(given, (list, tuple, set, frozenset)):
        message = f'it is a list, even of one: ["{example}"]'
        raise ValueError(message)  # noqa: TRY004 - what was wrong with a setting is one kind of error
    return tuple(given)


def setting_names() -> list[str]:
    """Names of all settings that a file or the environment may hold."""
    return [name for name in ServiceConfig.model_fields if name not in _PYTHON_ONLY]
