"""The real service for tests of the rules of segments: its recogniser decodes each sound once, whatever the rules."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest

from speechlab.engines import RecognitionOptions
from support.clients import KEY
from support.staged import NO_ENGINES

RULES = (
    "min_silence_gap",
    "segment_padding",
    "initial_segment_padding_ms",
    "speech_pad_ms",
    "min_segment_duration",
)


@contextmanager
def decoding_once():
    """Decode the same sound with the same options of the decoder once; all that comes before and after is done anew.

    The rules decide which sound is decoded, and which words belong to which segment. A sound is decoded without them.
    """
    from speechlab.engines._recognition.whisper import WhisperEngine

    decode, known, usual = WhisperEngine._decode, {}, RecognitionOptions()
    without_rules = {name: getattr(usual, name) for name in RULES}

    def decoded(engine, sound, options):
        asked = sound.tobytes(), replace(options, **without_rules)
        if asked not in known:
            known[asked] = decode(engine, sound, options)
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhisperEngine, "_decode", decoded)
        yield


@contextmanager
def service_of_segments():
    """Run a service with a voice that speaks English and with the recogniser, in this process."""
    from speechlab.service import ServiceConfig, running

    off = {name: how for name, how in NO_ENGINES.items() if name not in {"hibari", "whisper"}}
    with (
        decoding_once(),
        running(ServiceConfig(port=0, api_keys=(KEY,), engines=off, translator="")) as service,
    ):
        yield service
