"""Engines that take no time: tones for speech, loudness for recognition, an echo for translation."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from speechlab.conform import ProbeOptions
from speechlab.contract import AudioFormat
from speechlab.engines import EngineVoice, Recognition, RecognitionSegment
from speechlab.service import KeyStore, Provider, ServedEngine, voice_uuid
from support.staged import StagedTranslator


class Tones:
    """A voice that says a tone for each of the first four words, after a pause if it is given one."""

    model = "tones-1"
    sample_rate = 24_000
    voices = (EngineVoice("tone", ("en",), "Neutral", "a tone for each word"),)

    def __init__(self, pause_s=0.0):
        self.pause_s = pause_s

    def synthesize(self, text, voice, *, temperature=None):
        for _ in text.split()[:4]:
            time.sleep(self.pause_s)
            yield np.full(2_400, 0.1, dtype=np.float32)


class Loudness:
    """A recognizer that hears a word wherever it is loud."""

    model = "loudness-1"
    languages = ("ja", "en", "zh")

    def recognize(self, samples, options):
        loud = np.flatnonzero(np.abs(samples) > 0.01) / 16_000
        language = options.language or "en"
        if not loud.size:
            return Recognition("", language, 0.0)
        if options.vad != "segments":
            return Recognition("heard", language, 0.5)
        parts = np.split(loud, np.flatnonzero(np.diff(loud) > options.min_silence_gap / 1000) + 1)
        early = [options.initial_segment_padding_ms / 1000] + [0.0] * (len(parts) - 1)
        segments = [
            RecognitionSegment(max(0.0, float(part[0]) - pad), float(part[-1]), "heard")
            for part, pad in zip(parts, early, strict=True)
        ]
        return Recognition("heard", language, 0.5, tuple(segments))


QUICK_ENGINES = (
    ServedEngine("q", "synthesizer", Tones, heavy=False),
    ServedEngine("quick", "synthesizer", lambda: Tones(0.002), Provider("quick", heavy=False)),
    ServedEngine("ears", "recognizer", Loudness, heavy=False),
    ServedEngine("echo", "translator", StagedTranslator, heavy=False),
)
"""One of each kind; the service needs ``recognizer="ears"`` and ``translator="echo"`` to use them."""

MUTE = ServedEngine(
    "mute",
    "synthesizer",
    Tones,
    Provider("mute", formats=(AudioFormat.WAV, AudioFormat.PCM), streamable=frozenset(), heavy=False),
)
"""A voice that does not stream and lacks formats, which no voice of ours does."""


ONE_RATE = ServedEngine(
    "one-rate", "synthesizer", Tones, Provider("one-rate", sample_rates=(24_000,), heavy=False)
)


@dataclass
class KeyedService:
    """A service with quick engines, the keys that a check may need, and a voice to speak with."""

    base_url: str
    access: KeyStore
    voice: str

    def key(self, **limits: Any) -> str:
        return self.access.create_key("for a check", **limits)[1]

    def options(self, **more: Any) -> ProbeOptions:
        """Every key that can be had, in the form that people have them."""
        _, expired = KeyStore(self.access._database, clock=lambda: 0.0).create_key("old", expires_in_s=1)
        keys = {
            "api_key": self.key(),
            "restricted_key": self.key(providers=["q", "openjtalk"]),
            "no_asr_key": self.key(recognition=False),
            "expired_key": expired,
            "legacy_key": "sl-0123456789abcdef",
        }
        voices = {"voice": self.voice, "q_voice": voice_uuid("q", "tone")}
        return ProbeOptions(self.base_url, **keys | voices | more)
