"""Where a model is: a folder or file here, or a repository of the hub, fetched when it is first needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from speechlab.engines._weights.hub import FetchedModel, find_or_fetch_model, format_model_id
from speechlab.engines._weights.names import parse_model_name
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from speechlab.engines._weights.formats import ModelFormat


class ModelSource:
    """The place of a model that the user named."""

    def __init__(
        self,
        engine: str,
        model: str | Path,
        model_format: ModelFormat,
        store: ModelStore | None,
        *,
        allow_download: bool,
    ) -> None:
        if not str(model):
            raise ConfigurationError(
                f"the engine {engine!r} needs the option 'model': the folder of a model for sherpa-onnx, or a "
                "repository, of the form owner/name[@revision]"
            )
        self._source = parse_model_name(model, {})
        self._format = model_format
        self._store = store or ModelStore()
        self._allow_download = allow_download
        self._found: FetchedModel | None = None

    @property
    def is_here(self) -> bool:
        """Whether the model is a folder or file, of which all can be known at once."""
        return isinstance(self._source, Path)

    @property
    def id(self) -> str:
        """Name of the folder or file, or repository and commit."""
        return format_model_id(self._source, self._found)

    @property
    def name(self) -> str:
        """Name of the folder, or of the repository without its owner."""
        if not isinstance(self._source, Path):
            return self._source.repository.partition("/")[2]
        return (self._source if self._source.is_dir() else self._source.parent).name

    def find(self) -> Path:
        """Return the folder or file; a model of the hub is fetched first, if it is not here.

        Raises:
            ModelError: It has not the right files, is not there, may not be read, or does not fit.
        """
        if isinstance(self._source, Path):
            return self._source
        if self._found is None:
            self._found = find_or_fetch_model(
                self._source, self._format, self._store, allow_download=self._allow_download
            )
        return self._found.main if self._source.file else self._found.main.parent
