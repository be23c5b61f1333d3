"""Samples that tests of several rooms send."""

import numpy as np

from speechlab.audio import AudioClip

KEY = "sl:canary-7f3a91c2e5d84b60"
VOICE = {
    "id": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "description": "Calm, Japanese",
    "language": "ja",
    "gender": "Female",
    "formats": ["wav", "mp3", "pcm", "ogg", "flac"],
    "sample_rates": [16000, 24000],
    "streaming": True,
}
VOICE_ID = VOICE["id"]
TRANSLATED = {"choices": [{"message": {"content": "Hello"}}]}
SAID = [
    "the quick brown fox jumps over the lazy dog",
    "she really wants to leave before the storm",
    "we met at the corner of the old market",
    "nobody knew what had happened to the letter",
    "take the second street on the left please",
    "the museum opens every day except on monday",
    "his brother plays the violin in an orchestra",
    "a small boat was waiting under the bridge",
    "they painted all of the windows bright green",
    "the train to the north was late again",
]
"""Ten English sentences, for voices whose faults a test makes."""


def tone(seconds=0.5, hz=300, rate=16_000):
    """A clip of a tone."""
    phases = 2 * np.pi * hz * np.arange(round(seconds * rate)) / rate
    return AudioClip((0.4 * np.sin(phases)).astype("f4"), rate)
