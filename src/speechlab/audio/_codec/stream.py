"""Streaming encoders: bytes from samples that are still being made.

The joined output of an encoder is a complete file. MP3 and OGG/Opus use PyAV, because a file that libsndfile writes
append-only is too short when read back (MP3) or comes a second late (Opus). OGG at rates without Opus is Vorbis by
libsndfile, in pages of about a second of speech.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, cast

from speechlab._require import later
from speechlab.audio._samples import as_format, as_rate, as_samples, channels_of, to_pcm16
from speechlab.contract import DEFAULT_SAMPLE_RATE, AudioFormat
from speechlab.errors import AudioError, UnsupportedAudioError

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np
    from numpy.typing import ArrayLike

    from speechlab.audio._samples import Samples
else:
    np = later("numpy")

STREAMABLE_FORMATS: frozenset[AudioFormat] = frozenset(
    {AudioFormat.PCM, AudioFormat.WAV, AudioFormat.MP3, AudioFormat.OGG}
)
"""Formats that can be written before their end is known. For FLAC, the header has to be rewritten at the end."""

OPUS_RATES_HZ = frozenset({8_000, 12_000, 16_000, 24_000, 48_000})
MP3_RATES_HZ = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
_VORBIS_RATES_HZ = range(8_000, 192_001)

# soundfile, the standard library, ffmpeg and browsers read a WAV with this size to the end of the data.
_UNKNOWN_SIZE = 0xFFFF_FFFF
_PAGE_MICROSECONDS = 100_000


def streams(format: AudioFormat | str, sample_rate: int = DEFAULT_SAMPLE_RATE) -> bool:  # noqa: A002 - the contract's name
    """Whether :func:`stream_encoder` supports a format at a sample rate."""
    chosen = as_format(format)
    match chosen:
        case AudioFormat.MP3:
            return sample_rate in MP3_RATES_HZ
        case AudioFormat.OGG:
            return sample_rate in _VORBIS_RATES_HZ
        case _:
            return chosen in STREAMABLE_FORMATS


def stream_encoder(
    format: AudioFormat | str,  # noqa: A002 - the contract's name
    sample_rate: int = DEFAULT_SAMPLE_RATE,
    channels: int = 1,
) -> StreamEncoder:
    """Make an encoder that returns bytes while samples arrive.

    ======  ======================================================  ================================================
    format  bytes                                                   limitation
    ======  ======================================================  ================================================
    pcm     signed 16-bit little-endian, at once                    the data does not contain the rate
    wav     header with both sizes 0xFFFFFFFF, then as pcm          the length is unknown until the end
    mp3     frames without Xing and ID3 headers, after about 0.1 s  1,105 samples of delay are not marked as such
    ogg     Opus in pages of 0.1 s, exact length                    at rates without Opus: Vorbis, about 1 s
    ======  ======================================================  ================================================
    """
    chosen, rate = as_format(format), as_rate(sample_rate)
    if isinstance(channels, bool) or channels not in {1, 2}:
        raise AudioError(f"channels is {channels!r}; it has to be 1 or 2 for a stream")
    if chosen not in STREAMABLE_FORMATS:
        names = ", ".join(sorted(STREAMABLE_FORMATS))
        raise UnsupportedAudioError(
            f"{chosen} cannot be streamed, only written as a whole; choose one of: {names}"
        )
    if not streams(chosen, rate):
        rates = "8000 to 192000" if chosen is AudioFormat.OGG else ", ".join(map(str, MP3_RATES_HZ))
        raise UnsupportedAudioError(f"{chosen} does not exist at {rate} Hz; it takes {rates}")
    if chosen is AudioFormat.PCM or chosen is AudioFormat.WAV:
        return _RawEncoder(chosen, rate, channels)
    if chosen is AudioFormat.OGG and rate not in OPUS_RATES_HZ:
        return _VorbisEncoder(chosen, rate, channels)
    return _AvEncoder(chosen, rate, channels)


def wav_header(sample_rate: int, channels: int, data_size: int | None = None) -> bytes:
    """The 44-byte header of a WAV with 16-bit samples; without a size, that of a stream."""
    is_sized = data_size is not None and data_size <= _UNKNOWN_SIZE - 36
    size = data_size if is_sized and data_size is not None else _UNKNOWN_SIZE
    riff = struct.pack("<4sI4s", b"RIFF", size + 36 if is_sized else _UNKNOWN_SIZE, b"WAVE")
    frame = 2 * channels
    layout = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, sample_rate, sample_rate * frame, frame, 16)
    return riff + layout + struct.pack("<4sI", b"data", size)


class StreamEncoder(ABC):
    """An encoder for samples in pieces, made by :func:`stream_encoder`.

    As a context manager it releases the codec at the end, whether or not :meth:`close` was called. Use an encoder in
    one thread at a time.
    """

    def __init__(self, format: AudioFormat, sample_rate: int, channels: int) -> None:  # noqa: A002 - the contract's name
        self.format = format
        self.sample_rate = sample_rate
        self.channels = channels
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<StreamEncoder {self.format}, {self.sample_rate} Hz, {self.channels} ch, {state}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether the end of the file was written."""
        return self._closed

    def write(self, samples: ArrayLike) -> bytes:
        """Encode samples, and return the bytes that are ready.

        Args:
            samples: Shape (frames,) or (frames, channels), floats in [-1, 1] (overshoot is clipped) or int16; any
                number of frames, including none.
        """
        if self._closed:
            raise AudioError("the encoder is closed; make a new one for more samples")
        checked = as_samples(samples)
        if channels_of(checked) != self.channels:
            raise AudioError(f"samples have {channels_of(checked)} channels; this stream has {self.channels}")
        return self._write(checked)

    def close(self) -> bytes:
        """Write the end of the file."""
        if self._closed:
            return b""
        self._closed = True
        return self._close()

    @abstractmethod
    def _write(self, samples: Samples) -> bytes: ...

    @abstractmethod
    def _close(self) -> bytes: ...


class _RawEncoder(StreamEncoder):
    """PCM, and WAV, which is PCM after a header. The header is written with the first samples, or at the end."""

    def __init__(self, format: AudioFormat, sample_rate: int, channels: int) -> None:  # noqa: A002 - the contract's name
        super().__init__(format, sample_rate, channels)
        self._header = wav_header(sample_rate, channels) if format is AudioFormat.WAV else b""

    def _write(self, samples: Samples) -> bytes:
        return self._take_header() + to_pcm16(samples)

    def _close(self) -> bytes:
        return self._take_header()

    def _take_header(self) -> bytes:
        header, self._header = self._header, b""
        return header


class _Sink:
    """An append-only file whose new bytes are taken out with :meth:`take`."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._size = 0

    def write(self, data: Any) -> int:
        count = memoryview(data).nbytes
        self._pending += data
        self._size += count
        return count

    def take(self) -> bytes:
        content = bytes(self._pending)
        self._pending.clear()
        return content


class _SeekableSink(_Sink):
    """A sink for libsndfile, which asks for the position and the length, but never goes back in OGG."""

    def tell(self) -> int:
        return self._size

    def seek(self, _offset: int, _whence: int = 0) -> int:
        return self._size

    def read(self, _count: int = -1) -> bytes:
        return b""


class _AvEncoder(StreamEncoder):
    """MP3 and OGG/Opus by ffmpeg's libraries."""

    def __init__(self, format: AudioFormat, sample_rate: int, channels: int) -> None:  # noqa: A002 - the contract's name
        super().__init__(format, sample_rate, channels)
        import av

        self._sink = _Sink()
        if format is AudioFormat.MP3:
            codec, container = "libmp3lame", {"write_xing": "0", "id3v2_version": "0"}
            kbps = 48 if sample_rate < 16_000 else 64 if sample_rate <= 24_000 else 96
        else:
            # Without flush_packets, ffmpeg would hold back output in its buffer of 32 KiB.
            codec, container = "libopus", {"page_duration": str(_PAGE_MICROSECONDS), "flush_packets": "1"}
            kbps = 32 if sample_rate < 16_000 else 48
        self._container = av.open(self._sink, mode="w", format=format.value, options=container)
        self._stream = cast("av.AudioStream", self._container.add_stream(codec, rate=sample_rate))
        self._stream.layout = self._layout = "mono" if channels == 1 else "stereo"
        self._stream.bit_rate = kbps * 1000 * channels
        self._frames = 0

    def _write(self, samples: Samples) -> bytes:
        import av

        if len(samples):
            packed = np.ascontiguousarray(samples).reshape(1, -1)
            frame = av.AudioFrame.from_ndarray(packed, format="flt", layout=self._layout)
            frame.sample_rate = self.sample_rate
            frame.time_base = Fraction(1, self.sample_rate)
            frame.pts = self._frames
            self._frames += len(samples)
            for packet in self._stream.encode(frame):
                self._container.mux(packet)
        return self._sink.take()

    def _close(self) -> bytes:
        if self._frames:
            for packet in self._stream.encode(None):
                self._container.mux(packet)
        self._container.close()
        return self._sink.take()


class _VorbisEncoder(StreamEncoder):
    """OGG/Vorbis by libsndfile, for rates that Opus does not have."""

    def __init__(self, format: AudioFormat, sample_rate: int, channels: int) -> None:  # noqa: A002 - the contract's name
        super().__init__(format, sample_rate, channels)
        import soundfile

        self._sink = _SeekableSink()
        self._file = soundfile.SoundFile(
            self._sink, "w", samplerate=sample_rate, channels=channels, format="OGG", subtype="VORBIS"
        )

    def _write(self, samples: Samples) -> bytes:
        self._file.write(samples)
        return self._sink.take()

    def _close(self) -> bytes:
        self._file.close()
        return self._sink.take()
