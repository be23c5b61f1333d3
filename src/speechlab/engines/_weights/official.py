"""Where the pinned models come from: their repositories on the hub, preferred to the packages once fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.engines._weights.formats import (
    GGUF_FORMAT,
    KOKORO_REPOSITORY,
    WHISPER_FORMAT,
    WHISPER_SIZES,
    ModelFormat,
    build_kokoro_format,
)
from speechlab.engines._weights.hub import FetchedModel, fetch_model, find_fetched_model
from speechlab.engines._weights.names import HubName, parse_model_name
from speechlab.engines._weights.specs import GEMMA_270M, KOKORO, QWEN_CODER_1_5B, WHISPER_BASE, ModelSpec
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from speechlab.engines._weights.store import ModelStore

# Source of each pinned model, and its format there.
OFFICIAL_SOURCES: dict[str, tuple[HubName, ModelFormat]] = {
    WHISPER_BASE.name: (HubName(WHISPER_SIZES["base"]), WHISPER_FORMAT),
    KOKORO.name: (HubName(KOKORO_REPOSITORY), build_kokoro_format("int8")),
    GEMMA_270M.name: (HubName("ggml-org/gemma-3-270m-GGUF", "", "Q8_0"), GGUF_FORMAT),
    QWEN_CODER_1_5B.name: (HubName("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "", "Q4_K_M"), GGUF_FORMAT),
}
# Formats of the engines whose models users name.
_ENGINE_FORMATS = {"whisper": WHISPER_FORMAT, "llama": GGUF_FORMAT, "kokoro": build_kokoro_format("fp32")}


def find_official_source(spec: ModelSpec, store: ModelStore) -> HubName | None:
    """Return the source of a pinned model if it was fetched from there and is still here; asks no network."""
    if spec.name not in OFFICIAL_SOURCES:
        return None
    source, model_format = OFFICIAL_SOURCES[spec.name]
    return source if find_fetched_model(source, model_format, store) is not None else None


def fetch_official_model(name: str, store: ModelStore) -> FetchedModel:
    """Fetch a pinned model from its source, or its newest commit if it is here already."""
    return fetch_model(*OFFICIAL_SOURCES[name], store)


def fetch_named_model(name: str, engine: str | None, store: ModelStore) -> FetchedModel:
    """Fetch the model of the hub with a name for an engine; a usual size is for ``whisper``."""
    if engine is None and name.partition("@")[0] in WHISPER_SIZES:
        engine = "whisper"
    if engine not in _ENGINE_FORMATS:
        choices = f"--for {' or '.join(_ENGINE_FORMATS)}"
        if engine is not None:
            raise ConfigurationError(
                f"models of {engine!r} are not fetched ahead, only those of {choices}; connect() fetches them"
            )
        raise ConfigurationError(f"the model {name!r} needs the engine that will use it: {choices}")
    model_format = _ENGINE_FORMATS[engine]
    source = parse_model_name(name, model_format.usual)
    if not isinstance(source, HubName):
        raise ConfigurationError(
            f"{name!r} is a path on this machine, and needs no preparation; name it as the option 'model'"
        )
    return fetch_model(source, model_format, store)
