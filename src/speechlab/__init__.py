"""speechlab: notebooks and data science for people who work with speech services.

    import speechlab as sl

    lab = sl.connect()                        # the configured service, or the embedded one
    clip = lab.synthesize("Hello.", voice=lab.voices()[0])
    lab.transcribe(clip).text

Names load on first use, so that importing speechlab costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speechlab import (
        audio,
        batch,
        contract,
        datasets,
        display,
        engines,
        errors,
        evaluate,
        metrics,
        notebook,
        segments,
        service,
        store,
        text,
        widgets,
    )
    from speechlab.audio import AudioClip
    from speechlab.client import (
        AsyncClient,
        Client,
        Transcript,
        Translation,
        VoiceCatalogue,
        connect,
    )
    from speechlab.contract import Voice
    from speechlab.errors import (
        APIConnectionError,
        APIError,
        APITimeoutError,
        AudioDecodeError,
        AudioError,
        AudioLimitError,
        AuthenticationError,
        BadRequestError,
        ConfigurationError,
        ContractError,
        EngineError,
        InvalidRequestError,
        MissingDependencyError,
        ModelError,
        NotFoundError,
        PermissionDeniedError,
        RateLimitError,
        RealtimeError,
        ReplayMiss,
        SegmentError,
        SegmentFileError,
        ServerError,
        ServiceStartError,
        SpeechLabError,
        StoreError,
        StreamTruncatedError,
        UnsupportedAudioError,
    )
    from speechlab.store import Store
    from speechlab.widgets import show

__version__ = "0.1.0"

__all__ = [
    "APIConnectionError",
    "APIError",
    "APITimeoutError",
    "AsyncClient",
    "AudioClip",
    "AudioDecodeError",
    "AudioError",
    "AudioLimitError",
    "AuthenticationError",
    "BadRequestError",
    "Client",
    "ConfigurationError",
    "ContractError",
    "EngineError",
    "InvalidRequestError",
    "MissingDependencyError",
    "ModelError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "RealtimeError",
    "ReplayMiss",
    "SegmentError",
    "SegmentFileError",
    "ServerError",
    "ServiceStartError",
    "SpeechLabError",
    "Store",
    "StoreError",
    "StreamTruncatedError",
    "Transcript",
    "Translation",
    "UnsupportedAudioError",
    "Voice",
    "VoiceCatalogue",
    "audio",
    "batch",
    "connect",
    "contract",
    "datasets",
    "display",
    "engines",
    "errors",
    "evaluate",
    "metrics",
    "notebook",
    "segments",
    "service",
    "show",
    "store",
    "text",
    "widgets",
]

_ROOMS = frozenset(name for name in __all__ if name.islower()) - {"connect", "show"}
_HOMES = {
    "AudioClip": "audio",
    "AsyncClient": "client",
    "Client": "client",
    "Store": "store",
    "Transcript": "client",
    "Translation": "client",
    "Voice": "contract",
    "VoiceCatalogue": "client",
    "connect": "client",
    "show": "widgets",
}
_NEAR_TABLES = frozenset({"AsyncClient", "Client", "connect", "datasets", "evaluate", "show"})
"""Names whose users will expect ``DataFrame.speech``, which the batch room registers."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        message = f"module 'speechlab' has no attribute {name!r}"
        raise AttributeError(message)
    if name in _NEAR_TABLES:
        import_module("speechlab.batch")
    if name in _ROOMS:
        value: Any = import_module(f"speechlab.{name}")
    else:
        value = getattr(import_module(f"speechlab.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
