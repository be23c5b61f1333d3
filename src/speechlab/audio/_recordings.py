"""What counts as a recording, and recordings by functions: decoded, encoded, joined."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_number
from speechlab._require import import_lazily
from speechlab.audio._clip import AudioClip
from speechlab.audio._codec.encode import encode_samples
from speechlab.audio._samples import check_rate, parse_format, to_samples
from speechlab.errors import AudioError, InvalidRequestError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from speechlab._formats import AudioFormat
    from speechlab.audio._codec.decode import DecodeLimits
else:
    np = import_lazily("numpy")

# The forms of a recording, for messages.
RECORDINGS_ALLOWED = (
    "a path, bytes, a file opened in binary mode, an AudioClip, (samples, rate), or, of a data set of Hugging "
    "Face, {'array': …, 'sampling_rate': …} or {'bytes': …, 'path': …}"
)


def unify_recording(value: object) -> AudioClip | bytes | str | os.PathLike[str] | None:
    """Return a recording of any form as a clip, bytes or a path; None for what is no recording.

    A tensor has its channels first, as torchaudio gives it. An open file is read from its position, which it keeps.
    """
    if isinstance(value, AudioClip | bytes | str | os.PathLike):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, tuple):
        if len(value) != 2:
            return None
        samples, rate = (
            reversed(value) if np.ndim(value[0]) == 0 else value
        )  # as scipy.io.wavfile.read has them
        return _build_clip(samples, rate)
    if isinstance(value, Mapping):
        return _unify_mapping(value)
    decoded: Any = value
    if callable(getattr(decoded, "get_all_samples", None)):  # a decoder of torchcodec, as data sets have it
        decoded = decoded.get_all_samples()
    if is_number(getattr(decoded, "sample_rate", None)) and getattr(decoded, "data", None) is not None:
        return _build_clip(decoded.data, decoded.sample_rate)
    return read_open_file(decoded) if callable(getattr(decoded, "read", None)) else None


def _unify_mapping(value: Mapping[Any, Any]) -> AudioClip | bytes | str | None:
    samples, data, path = (value.get(name) for name in ("array", "bytes", "path"))
    if samples is not None and value.get("sampling_rate") is not None:
        title = PurePath(path).name if isinstance(path, str) else None
        return _build_clip(samples, value["sampling_rate"], title, channels_first=True)
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    return os.fspath(path) if isinstance(path, str | os.PathLike) else None


def _build_clip(
    samples: Any, rate: Any, title: str | None = None, *, channels_first: bool = False
) -> AudioClip:
    if callable(getattr(samples, "detach", None)):  # a tensor, which may be on a GPU and have a gradient
        samples, channels_first = samples.detach().cpu(), True
        samples = samples.float() if samples.is_floating_point() else samples  # NumPy has no bfloat16
    array = np.asarray(samples)
    if array.ndim == 2 and array.shape[0] < array.shape[1] and (channels_first or array.shape[0] == 1):
        array = array.T  # of one channel, models make that
    return AudioClip(array, rate.item() if hasattr(rate, "item") else rate, title)


def read_open_file(file: Any) -> bytes:
    """Return the bytes of an open file, from its position or, at its end, from its start; the position stays."""
    try:
        start = file.tell()
        data = file.read()
        if start and not data:  # something was just written to it
            file.seek(0)
            data = file.read()
        file.seek(start)
    except (OSError, AttributeError):  # a pipe
        data = file.read()
    return require_bytes(data)


def require_bytes(data: object) -> bytes:
    """Refuse what a file in text mode has given."""
    if isinstance(data, bytes):
        return data
    message = "the audio file is open in text mode; open it in binary mode: open(path, 'rb')"
    raise InvalidRequestError(message, parameter="audio", rule="2.3")


def require_recording(value: object) -> AudioClip | bytes | str | os.PathLike[str]:
    """Return a recording as :func:`unify_recording` does; AudioError for what is none."""
    if (found := unify_recording(value)) is None:
        raise AudioError(f"a {type(value).__name__} is no recording; give {RECORDINGS_ALLOWED}")
    return found


def to_clip(recording: object) -> AudioClip:
    """Return a recording of any form as a clip."""
    found = require_recording(recording)
    if isinstance(found, AudioClip):
        return found
    return AudioClip.from_bytes(found) if isinstance(found, bytes) else AudioClip.from_file(found)


def decode(
    data: bytes | bytearray | memoryview, limits: DecodeLimits | None = None, *, title: str | None = None
) -> AudioClip:
    """Decode the bytes of a WAV, OGG, MP3 or FLAC file.

    The header decides the format. The length in the header is checked, never trusted: WAV and FLAC of unknown length
    are read to their end, and one shorter than its header says is an error. Streams behind each other (chained OGG;
    joined WAV, MP3 or FLAC) are all read; where their rate changes or something unknown follows, the error names the
    byte. A file without sound gives a clip without frames. Overshoot of lossy formats is clipped to ±1.

    Args:
        data: The whole file.
        limits: Limits of the decoded audio, checked before memory is allocated; by default four hours and 2 GiB of
            samples.
        title: Title of the clip for display.

    Raises:
        UnsupportedAudioError: The bytes have another format.
        AudioDecodeError: The bytes are damaged or truncated.
        AudioLimitError: The audio exceeds the limits.

    Example:
        >>> clip = decode(AudioClip([0.0, 0.5], 8_000).encode("flac"))
        >>> str(clip.source_format), clip.frames
        ('flac', 2)
    """
    return AudioClip.from_bytes(data, limits).with_title(title)


def encode(
    audio: AudioClip | ArrayLike,
    format: AudioFormat | str,  # noqa: A002 - the contract's name
    sample_rate: int | None = None,
) -> bytes:
    """Encode audio as a complete file.

    ======  ==========================================================================
    format  bytes
    ======  ==========================================================================
    pcm     signed 16-bit little-endian, channels interleaved, no header
    wav     the same after a 44-byte header
    flac    16 bits, lossless; up to 8 channels
    mp3     variable bitrate with exact length; 8 to 48 kHz, mono or stereo
    ogg     Opus at 8, 12, 16, 24 and 48 kHz, Vorbis at any other rate; mono or stereo
    ======  ==========================================================================

    PCM, WAV and FLAC of samples that came from 16 bits are exact.

    Args:
        audio: A clip, or samples: shape (frames,) or (frames, channels), floats in [-1, 1] or int16.
        format: One of the five formats.
        sample_rate: For a clip, the sample rate of the file in Hz; the clip is resampled if its rate differs (None:
            the clip's own rate). For samples, their rate, which is required.

    Raises:
        UnsupportedAudioError: The format is unknown, does not support the rate or the number of channels, or cannot
            be empty.
        AudioError: The samples or the rate are not usable.

    Example:
        >>> len(encode([0.0, 0.5], "pcm", sample_rate=8_000))
        4
        >>> encode([0.0, 0.5], "wav", sample_rate=8_000)[:4]
        b'RIFF'
    """
    chosen = parse_format(format)
    if isinstance(audio, AudioClip):
        return audio.encode(chosen, sample_rate)
    if sample_rate is None:
        raise AudioError("samples have no sample rate; give sample_rate= in Hz, or an AudioClip")
    return encode_samples(to_samples(audio), check_rate(sample_rate), chosen)


def concatenate(clips: Iterable[AudioClip], gap_s: float = 0.0) -> AudioClip:
    """Join clips, one after the other.

    Args:
        clips: At least one; all of one rate and one number of channels.
        gap_s: Seconds of silence between two clips, 0 or more.

    Raises:
        AudioError: There are no clips, or they differ in rate or number of channels.

    Example:
        >>> one = AudioClip(np.zeros(800), 8_000)
        >>> concatenate([one, one], gap_s=0.5).duration_s
        0.7
    """
    return AudioClip.concatenate(clips, gap_s)
