"""The accessors ``DataFrame.speech`` and ``Series.speech``, which run batches over their table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from speechlab.batch._arguments import (
    SynthesisOptions,
    TranscriptionOptions,
    TranslationOptions,
    face_of,
)
from speechlab.batch._long import PIECE_S, transcribe_long
from speechlab.batch._operations import synthesize, transcribe, translate

if TYPE_CHECKING:
    from speechlab.client import Client


@pd.api.extensions.register_series_accessor("speech")
@pd.api.extensions.register_dataframe_accessor("speech")
class SpeechAccessor:
    """Batches over a DataFrame, or over a Series of texts or recordings as a table of one column.

    The accessor has no state but the table, because pandas makes a new accessor at each access.
    """

    def __init__(self, frame: pd.DataFrame | pd.Series[Any]) -> None:
        self._frame = frame

    @face_of(synthesize)
    def synthesize(self, lab: Client, **options: Unpack[SynthesisOptions]) -> pd.DataFrame:
        return synthesize(self._frame, lab, **options)

    @face_of(transcribe)
    def transcribe(self, lab: Client, **options: Unpack[TranscriptionOptions]) -> pd.DataFrame:
        return transcribe(self._frame, lab, **options)

    @face_of(transcribe_long)
    def transcribe_long(
        self, lab: Client, *, piece_s: float = PIECE_S, **options: Unpack[TranscriptionOptions]
    ) -> pd.DataFrame:
        return transcribe_long(self._frame, lab, piece_s=piece_s, **options)

    @face_of(translate)
    def translate(self, lab: Client, **options: Unpack[TranslationOptions]) -> pd.DataFrame:
        return translate(self._frame, lab, **options)

    def show(self, **options: Any) -> Any:
        """Show and play the table: calls ``speechlab.show`` with the same options."""
        # Imported by name: the widgets are a room above this one, and load only when a table is shown.
        frame = self._frame.to_frame() if isinstance(self._frame, pd.Series) else self._frame
        return import_module("speechlab.widgets").show(frame, **options)
