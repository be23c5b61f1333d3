"""speechlab: notebooks and data science for people who work with speech services.

The first lines::

    import speechlab as sl

    lab = sl.connect()  # the configured service, or the embedded one
    clip = lab.synthesize("Hello.", voice=lab.voices()[0])
    lab.transcribe(clip).text

Names load on first use, so that importing speechlab costs next to nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from speechlab import (
        audio,
        batch,
        client,
        conform,
        contract,
        datasets,
        display,
        engines,
        errors,
        evaluate,
        metrics,
        notebook,
        plots,
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
        system,
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
    "client",
    "conform",
    "connect",
    "contract",
    "datasets",
    "display",
    "engines",
    "errors",
    "evaluate",
    "metrics",
    "notebook",
    "plots",
    "segments",
    "service",
    "show",
    "store",
    "system",
    "text",
    "widgets",
]

_ROOMS = frozenset(name for name in __all__ if name.islower()) - {"connect", "show", "system"}
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
    "system": "client",
}


class _BesidePandas:
    """Module finder that registers ``DataFrame.speech`` right after pandas, without loading pandas, which is slow."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002 - the import system's signature
        if name != "pandas" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_both(module: ModuleType) -> None:
                load(module)
                import_module("speechlab._accessor")

            spec.loader.exec_module = load_both  # type: ignore[method-assign]  # the loader of this one import
        return spec


if "pandas" in sys.modules:
    import_module("speechlab._accessor")
else:
    sys.meta_path.insert(0, _BesidePandas())


def __getattr__(name: str) -> Any:
    if name not in __all__:
        message = f"module 'speechlab' has no attribute {name!r}"
        raise AttributeError(message)
    if name in _ROOMS:
        value: Any = import_module(f"speechlab.{name}")
    else:
        value = getattr(import_module(f"speechlab.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
