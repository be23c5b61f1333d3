"""Decoding of untrusted bytes to samples, within limits.

NumPy reads WAV with 16-bit PCM. soundfile reads other WAV, OGG and FLAC. PyAV reads what soundfile rejects, such as
FLAC of unknown length, and all MP3, because libsndfile's MP3 decoder writes messages to stderr even for valid files.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from speechlab._require import import_lazily
from speechlab.audio._codec.containers import (
    check_ogg,
    count_flac_frames,
    detect_format,
    list_wav_chunks,
    repair_wav,
    trim_mp3,
)
from speechlab.audio._samples import MAX_CHANNELS, MAX_RATE_HZ, MIN_RATE_HZ, Samples, to_samples
from speechlab.contract import AudioFormat
from speechlab.errors import AudioDecodeError, AudioError, AudioLimitError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = import_lazily("numpy")

_PLANAR_SCALES = {"u8": 2.0**7, "s16": 2.0**15, "s32": 2.0**31, "flt": 1.0, "dbl": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeLimits:
    """Limits of decoded audio. A small file can decode to much audio: ten minutes of silence are 28 KiB of FLAC.

    A limit of seconds alone is not enough, because with a forged sample rate any number of frames is short.

    Attributes:
        max_seconds: Maximum duration in seconds.
        max_decoded_bytes: Maximum size as float32 in bytes: frames x channels x 4.
        max_channels: Maximum number of channels.
        min_sample_rate: Minimum sample rate in Hz.
        max_sample_rate: Maximum sample rate in Hz.

    Example:
        >>> wav = AudioClip(np.zeros(16_000), 8_000).encode("wav")
        >>> try:
        ...     decode(wav, DecodeLimits(max_seconds=1))
        ... except sl.AudioLimitError as error:
        ...     print(error)
        the recording is too long; the limit is 1 s (DecodeLimits.max_seconds)
    """

    max_seconds: float = 4 * 3600.0
    max_decoded_bytes: int = 2**31
    max_channels: int = 32
    min_sample_rate: int = MIN_RATE_HZ
    max_sample_rate: int = MAX_RATE_HZ

    def __post_init__(self) -> None:
        if not (self.max_seconds > 0 and self.max_decoded_bytes > 0):
            raise AudioError(f"{self!r}: the limits of seconds and bytes have to be above 0")
        if not 1 <= self.max_channels <= MAX_CHANNELS:
            raise AudioError(f"max_channels is {self.max_channels!r}; it has to be 1 to {MAX_CHANNELS}")
        if not MIN_RATE_HZ <= self.min_sample_rate <= self.max_sample_rate <= MAX_RATE_HZ:
            raise AudioError(f"{self!r}: sample rates have to lie within {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz")


class _Blocks:
    """Collects blocks of samples, and raises as soon as they exceed the limits."""

    def __init__(self, limits: DecodeLimits, sample_rate: int, channels: int, *, full_scale: int = 1) -> None:
        if not limits.min_sample_rate <= sample_rate <= limits.max_sample_rate:
            allowed = f"{limits.min_sample_rate} to {limits.max_sample_rate} Hz are allowed"
            raise AudioLimitError(f"the sample rate is {sample_rate} Hz; {allowed}")
        if not 1 <= channels <= limits.max_channels:
            raise AudioLimitError(f"there are {channels} channels; 1 to {limits.max_channels} are allowed")
        self._limits = limits
        self.sample_rate = sample_rate
        self.channels = channels
        self.frames = 0
        self._full_scale = full_scale
        self._blocks: list[NDArray[Any]] = []

    def add(self, block: NDArray[Any]) -> None:
        self.frames += len(block)
        if self.frames > self._limits.max_seconds * self.sample_rate:
            allowed = f"the limit is {self._limits.max_seconds:g} s (DecodeLimits.max_seconds)"
            raise AudioLimitError(f"the recording is too long; {allowed}")
        if self.frames * self.channels * 4 > self._limits.max_decoded_bytes:
            allowed = f"{self._limits.max_decoded_bytes} bytes of float32 (DecodeLimits.max_decoded_bytes)"
            raise AudioLimitError(f"the recording is too large; the limit is {allowed}")
        self._blocks.append(block)

    def join(self) -> Samples:
        """Return all blocks as one new array, which has no other owner, so that a clip need not copy it."""
        blocks = [block[:, 0] for block in self._blocks] if self.channels == 1 else self._blocks
        empty = np.zeros((0,) if self.channels == 1 else (0, self.channels), dtype=np.float32)
        samples = np.concatenate([empty, *blocks])
        if self._full_scale != 1:
            samples /= np.float32(self._full_scale)
        self._blocks.clear()
        samples.flags.writeable = False
        return samples


def decode_samples(data: bytes, limits: DecodeLimits) -> tuple[Samples, int, AudioFormat]:
    """Samples, their rate in Hz, and the detected format of the file; see :func:`speechlab.audio.decode`."""
    source_format = detect_format(data)
    if source_format is AudioFormat.MP3:
        blocks = _read_with_av(trim_mp3(data), source_format, limits)
    else:
        if source_format is AudioFormat.WAV:
            data = repair_wav(data)
        elif source_format is AudioFormat.OGG:
            check_ogg(data)
        plain = _read_plain_wav(data, limits) if source_format is AudioFormat.WAV else None
        blocks = plain or _read_with_soundfile(data, limits) or _read_with_av(data, source_format, limits)
    if source_format is AudioFormat.FLAC and blocks.frames < (promised := count_flac_frames(data)):
        raise AudioDecodeError(f"the FLAC file is cut short: it has {blocks.frames} of {promised} frames")
    try:
        samples = to_samples(blocks.join())
    except AudioError as error:
        raise AudioDecodeError(f"the {source_format.upper()} file has no usable audio: {error}") from error
    return samples, blocks.sample_rate, source_format


def _read_plain_wav(data: bytes, limits: DecodeLimits) -> _Blocks | None:
    """Read a WAV with 16-bit PCM, as services send it, in a fifth of soundfile's time; None for all other files."""
    layout: tuple[int, ...] = ()
    for name, start, size in list_wav_chunks(data):
        if name == b"fmt ":
            layout = struct.unpack_from("<HHIIHH", data, start) if size == 16 else ()
        elif name == b"data":
            break
    else:
        return None
    if not layout or size % 2:
        return None
    kind, channels, rate, per_second, per_frame, bits = layout
    layout_of_pcm = (1, 16, 2 * channels, 2 * channels * rate)
    if (kind, bits, per_frame, per_second) != layout_of_pcm or not channels or size % per_frame:
        return None
    blocks = _Blocks(limits, rate, channels, full_scale=32_768)
    blocks.add(np.frombuffer(data, "<i2", size // 2, start).reshape(-1, channels))
    return blocks


def _read_with_soundfile(data: bytes, limits: DecodeLimits) -> _Blocks | None:
    """Read a file with libsndfile; None if it rejects the file."""
    import soundfile

    try:
        with soundfile.SoundFile(BytesIO(data)) as file:
            blocks = _Blocks(limits, file.samplerate, file.channels)
            count = max(65_536 // file.channels, 1)
            # Never without a count: a forged total would request any amount of memory.
            while len(block := file.read(count, dtype="float32", always_2d=True)):
                blocks.add(block)
            return blocks
    except soundfile.LibsndfileError:
        return None


def _read_with_av(data: bytes, source_format: AudioFormat, limits: DecodeLimits) -> _Blocks:
    import av

    blocks: _Blocks | None = None
    try:
        # The format is given, so that only the demuxer of the detected format reads untrusted bytes.
        with av.open(BytesIO(data), mode="r", format=source_format.value) as container:
            if not container.streams.audio:
                raise AudioDecodeError(f"the {source_format.upper()} file has no audio")
            stream = container.streams.audio[0]
            context = stream.codec_context
            if context is None:
                raise AudioDecodeError(f"the {source_format.upper()} file is damaged: its codec is not known")
            blocks = _Blocks(limits, context.sample_rate, context.channels)
            for frame in container.decode(stream):
                if (frame.sample_rate, frame.layout.nb_channels) != (blocks.sample_rate, blocks.channels):
                    raise AudioDecodeError("the sample rate or the channels change within the file")
                blocks.add(_interleave_frame(frame))
    except (av.error.FFmpegError, ValueError, EOFError) as error:
        if isinstance(error, AudioError):
            raise
        text = f"the {source_format.upper()} file is damaged: {getattr(error, 'strerror', None) or error}"
        raise AudioDecodeError(text) from error
    return blocks


def _interleave_frame(frame: Any) -> Samples:
    """Return one decoded frame as float32, shape (frames, channels)."""
    kind = str(frame.format.name)
    planes = frame.to_ndarray()
    values = planes.T if kind.endswith("p") else planes.reshape(-1, frame.layout.nb_channels)
    name = kind.removesuffix("p")
    if name not in _PLANAR_SCALES:
        raise AudioDecodeError(f"samples of the type {kind!r} are not supported")
    offset = 128.0 if name == "u8" else 0.0
    scaled: NDArray[np.float64] = (values.astype(np.float64) - offset) / _PLANAR_SCALES[name]
    return scaled.astype(np.float32)
