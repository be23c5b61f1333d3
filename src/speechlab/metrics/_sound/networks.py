"""Measures by small networks: the noise of a recording, and the likeness of two speakers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab.audio import RECORDINGS_ALLOWED, AudioClip, to_clip, unify_recording
from speechlab.errors import AudioError, InvalidRequestError, SpeechLabError
from speechlab.metrics._sound.signal import WINDOW_S, find_silence

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUIETEST = 10 ** (-30 / 20)
_PAUSE_DB, _PAUSE_S = 35.0, 0.15


class Dnsmos(NamedTuple):
    """DNSMOS estimates of human ratings of noise and quality, from 1 (bad) to 5 (excellent).

    DNSMOS was made to compare noise suppressors. It rates hiss, hum, reverberation and broken sound. It does not rate
    the naturalness of a voice, and does not check the words or the speaker.

    Attributes:
        signal: Quality of the speech (P.835 SIG).
        background: Absence of noise (P.835 BAK).
        overall: Speech and background together (P.835 OVRL).
        p808: Overall quality, by another network (P.808).
    """

    signal: float
    background: float
    overall: float
    p808: float


def dnsmos(clip: AudioClip | str | os.PathLike[str] | bytes) -> Dnsmos:
    """Estimate the noise and quality of a recording of speech, but not its naturalness.

    Args:
        clip: A clip, the path of a file, or its bytes. The clip is resampled to 16 kHz and mixed to mono. A clip
            shorter than 9.01 s is repeated, as by the authors of DNSMOS.

    Returns:
        Four ratings from 1 to 5. The networks were made for recordings of about 9 s; ratings of a clip of less than a
        second say little.

    Raises:
        MissingDependencyError: The extra ``quality`` is not installed.
        ModelError: The weights are missing or not the pinned ones.
        AudioError: The clip cannot be read.
        InvalidRequestError: The clip is empty or silent (nothing above -70 dBFS).
    """
    from speechlab.engines import DNSMOS_RATE, compute_dnsmos

    return Dnsmos(*compute_dnsmos(_load_audible_mono(clip, DNSMOS_RATE, "quality")))


def speaker_embedding(clip: AudioClip | str | os.PathLike[str] | bytes) -> NDArray[np.float32]:
    """Map a recording of one speaker to a direction, which is alike for recordings of one speaker.

    The network is Resemblyzer's, after L. Wan et al., Generalized end-to-end loss for speaker verification (ICASSP
    2018). As by its authors, a recording below -30 dBFS is amplified first, and long pauses are left out: here those
    of more than 0.15 s in which all windows of 10 ms are 35 dB below the loudest.

    Args:
        clip: A clip, the path of a file, or its bytes. It is resampled to 16 kHz and mixed to mono. Give 2 s of
            speech or more; windows of 1.6 s are averaged.

    Returns:
        A vector of length 1, shape (256,), float32, each value from 0 to 1.

    Raises:
        ModelError: The weights are not installed, or not the pinned ones. The message has the command: their package
            asks for torch, so no extra of speechlab installs it.
        AudioError: The clip cannot be read.
        InvalidRequestError: The clip is empty or silent (nothing above -70 dBFS).
    """
    from speechlab.engines import SPEAKER_RATE, embed_speaker

    sound = _load_audible_mono(clip, SPEAKER_RATE, "speaker")
    level = float(np.sqrt(np.mean(np.square(sound, dtype=np.float64))))
    loud = find_silence(sound, SPEAKER_RATE, _PAUSE_DB).loud
    after = np.flatnonzero(loud)
    pauses = np.diff(after) - 1
    for start, length in zip(after[:-1][pauses > 0], pauses[pauses > 0], strict=True):
        if length <= round(_PAUSE_S / WINDOW_S):
            loud[start : start + length + 1] = True
    speech = sound[np.repeat(loud, round(SPEAKER_RATE * WINDOW_S))[: len(sound)]]
    return embed_speaker(speech * np.float32(max(1.0, _QUIETEST / level)))


def speaker_similarity(
    one: AudioClip | str | os.PathLike[str] | bytes | NDArray[np.float32],
    other: AudioClip | str | os.PathLike[str] | bytes | NDArray[np.float32],
) -> float:
    """Similarity of the speakers of two recordings: the cosine of their embeddings.

    It orders recordings of one language, band and channel, such as synthesized voices by their closeness to a
    reference. It is no proof that two recordings are of one person. Figures of different channels, languages or
    lengths do not compare. Compare it with the similarity of two recordings of one speaker, and of two speakers, made
    in the same way.

    Args:
        one: A recording, or its :func:`speaker_embedding`.
        other: Another recording, or its embedding.

    Returns:
        From 0 to 1.

    Raises:
        ModelError: The weights are not installed, or not the pinned ones.
        AudioError: A clip cannot be read.
        InvalidRequestError: A clip is empty or silent, or an array is not an embedding.
    """
    vectors = []
    for name, side in (("one", one), ("other", other)):
        vector = side if isinstance(side, np.ndarray) else speaker_embedding(side)
        if vector.shape != (256,) or not 0.99 < float(np.linalg.norm(vector)) < 1.01:
            message = (
                f"{name} is an array of shape {vector.shape}, not an embedding; give a clip, or "
                "speaker_embedding(clip)"
            )
            raise InvalidRequestError(message, parameter=name)
        vectors.append(vector.astype(np.float64))
    return float(np.clip(vectors[0] @ vectors[1], 0.0, 1.0))


def read_clip(value: Any) -> AudioClip:
    """Return a clip from a recording of any form."""
    try:
        if unify_recording(value) is None:
            message = f"{value!r:.80} is not a clip; give {RECORDINGS_ALLOWED}"
            raise InvalidRequestError(message, parameter="clips")
        return to_clip(value)
    except (OSError, ValueError) as error:
        if isinstance(error, SpeechLabError):
            raise
        raise AudioError(f"the file {value!r:.200} cannot be read: {error}") from error


def _load_audible_mono(
    clip: AudioClip | str | os.PathLike[str] | bytes, rate: int, has: str
) -> NDArray[np.float32]:
    """Return the mono samples of a clip that has sound."""
    sound = read_clip(clip).to_mono().resample(rate).samples
    if not len(sound):
        message = f"an empty clip has no {has}; leave it out"
        raise InvalidRequestError(message, parameter="clip")
    if not find_silence(sound, rate, 200.0).loud.any():
        message = f"a silent clip (nothing above -70 dBFS) has no {has}; leave it out"
        raise InvalidRequestError(message, parameter="clip")
    return sound
