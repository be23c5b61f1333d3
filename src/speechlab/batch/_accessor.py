"""``DataFrame.speech``: the same batches, from the table's side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import pandas as pd

from speechlab.batch._operations import synthesize, transcribe, translate
from speechlab.batch._options import (
    Keeping,
    Options,
    SynthesisOptions,
    TranscriptionOptions,
    TranslationOptions,
    explicit,
)
from speechlab.batch._plan.operations import SynthesisStep, TranscriptionStep, TranslationStep

if TYPE_CHECKING:
    from speechlab.client import Client


@pd.api.extensions.register_dataframe_accessor("speech")
class SpeechAccessor:
    """Batches over this table; holds nothing but the table, for pandas makes a new one at each access."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @explicit(SynthesisStep, Keeping, Options)
    def synthesize(self, lab: Client, **options: Unpack[SynthesisOptions]) -> pd.DataFrame:
        """As :func:`speechlab.batch.synthesize`."""
        return synthesize(self._frame, lab, **options)

    @explicit(TranscriptionStep, Keeping, Options)
    def transcribe(self, lab: Client, **options: Unpack[TranscriptionOptions]) -> pd.DataFrame:
        """As :func:`speechlab.batch.transcribe`."""
        return transcribe(self._frame, lab, **options)

    @explicit(TranslationStep, Keeping, Options)
    def translate(self, lab: Client, **options: Unpack[TranslationOptions]) -> pd.DataFrame:
        """As :func:`speechlab.batch.translate`."""
        return translate(self._frame, lab, **options)
