"""Engines that run on this machine: synthesizers, recognizers and translators behind three protocols.

An engine is a plain object that works on text and samples, without HTTP, formats or keys. The table of engines
(:func:`catalogue`, :func:`create`) and the model store (:class:`ModelStore`) are here too. Inference libraries are
imported on first use. The embedded service offers the engines over the API; nothing else uses them, but for
:func:`align`, which times the words of a known text in this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._door import set_module_to_room as _name_after
from speechlab.engines._check import EngineCheck, add_model, check, list_addable_models
from speechlab.engines._chunks import chunk_text as chunk_text
from speechlab.engines._devices import describe_gpus, list_gpus
from speechlab.engines._networks import DNSMOS_RATE, SPEAKER_RATE, compute_dnsmos, embed_speaker
from speechlab.engines._protocols import (
    EngineVoice,
    Recognition,
    RecognitionOptions,
    RecognitionSegment,
    Recognizer,
    Synthesizer,
    TranslationDelta,
    TranslationJob,
    Translator,
    call_at_checkpoints,
    checkpoint,
    list_some_codes,
)
from speechlab.engines._registry import (
    NAMING_OPTIONS,
    EngineEntry,
    EngineStatus,
    catalogue,
    create,
    status,
)
from speechlab.engines._speech.phonemes import Reader, ReadHere
from speechlab.engines._weights.formats import WHISPER_SIZES
from speechlab.engines._weights.progress import send_progress_to
from speechlab.engines._weights.specs import MODEL_SPECS, ModelFile, ModelSpec, Part
from speechlab.engines._weights.store import ModelStore

if TYPE_CHECKING:
    from speechlab.engines._align import align

__all__ = [
    "EngineEntry",
    "EngineVoice",
    "ReadHere",
    "RecognitionOptions",
    "Recognizer",
    "Synthesizer",
    "Translator",
    "align",
    "catalogue",
    "check",
    "checkpoint",
    "create",
    "status",
]

_name_after(__name__, globals())


def __getattr__(name: str) -> Any:
    """Load ``align`` at its first use: it needs tables and sound, which each process that reads a text would load."""
    if name != "align":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from speechlab.engines._align import align

    globals()[name] = align
    _name_after(__name__, globals(), [name])
    return align
