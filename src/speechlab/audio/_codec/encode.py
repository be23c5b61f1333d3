"""Encoding of samples: as whole files, block by block, and as streams of samples that are still being made.

The joined output of a streaming encoder is a complete file. Its MP3 and OGG/Opus use PyAV, because a file that
libsndfile writes append-only is too short when read back (MP3) or comes a second late (Opus). OGG at rates without
Opus is Vorbis by libsndfile, in pages of about a second of speech.
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from fractions import Fraction
from io import BytesIO
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from speechlab._formats import DEFAULT_SAMPLE_RATE, AudioFormat
from speechlab._require import import_lazily, require
from speechlab.audio._samples import Samples, check_rate, count_channels, parse_format, to_pcm16, to_samples
from speechlab.errors import AudioError, UnsupportedAudioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
else:
    np = import_lazily("numpy")

# Formats that can be written before their end is known. For FLAC, the header has to be rewritten at the end.
STREAMABLE_FORMATS: frozenset[AudioFormat] = frozenset(
    {AudioFormat.PCM, AudioFormat.WAV, AudioFormat.MP3, AudioFormat.OGG}
)

OPUS_RATES_HZ = frozenset({8_000, 12_000, 16_000, 24_000, 48_000})
MP3_RATES_HZ = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
_VORBIS_RATES_HZ = range(8_000, 192_001)

# soundfile, the standard library, ffmpeg and browsers read a WAV with this size to the end of the data.
_UNKNOWN_SIZE = 0xFFFF_FFFF
_PAGE_MICROSECONDS = 100_000


def can_stream(format: AudioFormat | str, sample_rate: int = DEFAULT_SAMPLE_RATE) -> bool:  # noqa: A002 - the contract's name
    """Return whether :func:`build_stream_encoder` supports a format at a sample rate."""
    chosen = parse_format(format)
    match chosen:
        case AudioFormat.MP3:
            return sample_rate in MP3_RATES_HZ
        case AudioFormat.OGG:
            return sample_rate in _VORBIS_RATES_HZ
        case _:
            return chosen in STREAMABLE_FORMATS


def build_stream_encoder(
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
    chosen, rate = parse_format(format), check_rate(sample_rate)
    if isinstance(channels, bool) or channels not in {1, 2}:
        raise AudioError(f"channels is {channels!r}; it has to be 1 or 2 for a stream")
    if chosen not in STREAMABLE_FORMATS:
        names = ", ".join(sorted(STREAMABLE_FORMATS))
        raise UnsupportedAudioError(
            f"{chosen} cannot be streamed, only written as a whole; choose one of: {names}"
        )
    if not can_stream(chosen, rate):
        rates = "8000 to 192000" if chosen is AudioFormat.OGG else ", ".join(map(str, MP3_RATES_HZ))
        raise UnsupportedAudioError(f"{chosen} does not exist at {rate} Hz; it takes {rates}")
    if chosen is AudioFormat.PCM or chosen is AudioFormat.WAV:
        return _RawEncoder(chosen, rate, channels)
    if chosen is AudioFormat.OGG and rate not in OPUS_RATES_HZ:
        return _VorbisEncoder(chosen, rate, channels)
    return _AvEncoder(chosen, rate, channels)


def build_wav_header(sample_rate: int, channels: int, data_size: int | None = None) -> bytes:
    """Return the 44-byte header of a WAV with 16-bit samples; without a size, that of a stream."""
    is_sized = data_size is not None and data_size <= _UNKNOWN_SIZE - 36
    size = data_size if is_sized and data_size is not None else _UNKNOWN_SIZE
    riff = struct.pack("<4sI4s", b"RIFF", size + 36 if is_sized else _UNKNOWN_SIZE, b"WAVE")
    frame = 2 * channels
    layout = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, sample_rate, sample_rate * frame, frame, 16)
    return riff + layout + struct.pack("<4sI", b"data", size)


class StreamEncoder(ABC):
    """An encoder for samples in pieces, made by :func:`build_stream_encoder`.

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
        checked = to_samples(samples)
        if count_channels(checked) != self.channels:
            raise AudioError(
                f"samples have {count_channels(checked)} channels; this stream has {self.channels}"
            )
        return self._write(checked)

    def close(self) -> bytes:
        """Write the end of the file."""
        if self._closed:
            return b""
        self._closed = True
        return self._write_end()

    @abstractmethod
    def _write(self, samples: Samples) -> bytes: ...

    @abstractmethod
    def _write_end(self) -> bytes: ...


class _RawEncoder(StreamEncoder):
    """PCM, and WAV, which is PCM after a header. The header is written with the first samples, or at the end."""

    def __init__(self, format: AudioFormat, sample_rate: int, channels: int) -> None:  # noqa: A002 - the contract's name
        super().__init__(format, sample_rate, channels)
        self._header = build_wav_header(sample_rate, channels) if format is AudioFormat.WAV else b""

    def _write(self, samples: Samples) -> bytes:
        return self._take_header() + to_pcm16(samples)

    def _write_end(self) -> bytes:
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
        require("av")
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

    def _write_end(self) -> bytes:
        if self._frames:
            for packet in self._stream.encode(None):
                self._container.mux(packet)
        self._container.close()
        return self._sink.take()


class _VorbisEncoder(StreamEncoder):
    """OGG/Vorbis by libsndfile, for rates that Opus does not have."""

    def __init__(self, format: AudioFormat, sample_rate: int, channels: int) -> None:  # noqa: A002 - the contract's name
        super().__init__(format, sample_rate, channels)
        require("soundfile")
        import soundfile

        self._sink = _SeekableSink()
        self._file = soundfile.SoundFile(
            self._sink, "w", samplerate=sample_rate, channels=channels, format="OGG", subtype="VORBIS"
        )

    def _write(self, samples: Samples) -> bytes:
        self._file.write(samples)
        return self._sink.take()

    def _write_end(self) -> bytes:
        self._file.close()
        return self._sink.take()


_BLOCK_FRAMES = 65_536
_MAX_CHANNELS = {AudioFormat.MP3: 2, AudioFormat.OGG: 2, AudioFormat.FLAC: 8}


def encode_samples(samples: Samples, sample_rate: int, audio_format: AudioFormat) -> bytes:
    """Encode checked samples; see :func:`speechlab.audio.encode` for the formats."""
    blocks = (samples[start : start + _BLOCK_FRAMES] for start in range(0, len(samples), _BLOCK_FRAMES))
    return b"".join(encode_blocks(blocks, samples.shape, sample_rate, audio_format))


def encode_blocks(
    blocks: Iterable[Samples], shape: tuple[int, ...], sample_rate: int, audio_format: AudioFormat
) -> Iterator[bytes]:
    """Encode checked samples that come in blocks, as the pieces of one file; ``shape`` is that of all samples."""
    channels = 1 if len(shape) == 1 else shape[1]
    max_channels = _MAX_CHANNELS.get(audio_format, channels)
    if channels > max_channels:
        text = f"{audio_format.upper()} has at most {max_channels} channels, not {channels}; use wav, or to_mono()"
        raise UnsupportedAudioError(text)
    match audio_format:
        case AudioFormat.PCM:
            yield from map(to_pcm16, blocks)
        case AudioFormat.WAV:
            yield build_wav_header(sample_rate, channels, 2 * math.prod(shape))
            yield from map(to_pcm16, blocks)
        case AudioFormat.FLAC if not shape[0]:
            yield _build_empty_flac(sample_rate, channels)
        case AudioFormat.FLAC:
            # As integers: libsndfile scales floats by 32767, which would change samples that came from 16 bits.
            integers = (np.frombuffer(to_pcm16(block), "<i2").reshape(-1, channels) for block in blocks)
            yield _encode_with_soundfile(integers, sample_rate, channels, ("FLAC", "PCM_16"))
        case AudioFormat.OGG if sample_rate in OPUS_RATES_HZ and shape[0]:
            # The streaming encoder writes the exact length into the last page, and is three times as fast as
            # soundfile. Without samples it writes no file, whereas soundfile writes a valid empty one.
            with build_stream_encoder(AudioFormat.OGG, sample_rate, channels) as encoder:
                yield from map(encoder.write, blocks)
                yield encoder.close()
        case AudioFormat.OGG:
            yield _encode_with_soundfile(blocks, sample_rate, channels, ("OGG", "VORBIS"))
        case AudioFormat.MP3:
            _check_mp3_limits(sample_rate, shape[0])
            yield _encode_with_soundfile(blocks, sample_rate, channels, ("MP3", "MPEG_LAYER_III"))


def encode_small_opus(samples: Samples) -> bytes:
    """Encode speech at 24 kHz at the lowest rate that suffices to judge it: Opus in Ogg, 13 kbit/s a channel."""
    require("av")
    import av

    channels = count_channels(samples)
    layout = "mono" if channels == 1 else "stereo"
    buffer = BytesIO()
    # Without a random serial number, so that the same audio gives the same bytes when a notebook is executed again.
    with av.open(buffer, "w", format="ogg", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libopus", rate=24_000, layout=layout)
        # Complexity 0 takes a third of the time of complexity 5, and keeps speech up to 8 kHz from 12.5 kbit/s on.
        # From 13.5 kbit/s on, it spends bits above 8 kHz at the cost of those below. "lowdelay" takes 0.4 of the
        # time, but its DNSMOS (overall) of seven recordings is 2.6, against 2.8 with "voip" and 3.0 before encoding.
        stream.bit_rate = 12_800 * channels
        # A frame of 60 ms has one header instead of three, which saves a tenth of the bytes at this rate.
        stream.options = {"application": "voip", "frame_duration": "60", "compression_level": "0"}
        packed = np.frombuffer(to_pcm16(samples), dtype="<i2").reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(packed, format="s16", layout=layout)
        frame.sample_rate = 24_000
        for part in (frame, None):
            container.mux(stream.encode(part))
    return buffer.getvalue()


def _check_mp3_limits(sample_rate: int, frames: int) -> None:
    if sample_rate not in MP3_RATES_HZ:
        rates = ", ".join(str(rate) for rate in MP3_RATES_HZ)
        raise UnsupportedAudioError(f"MP3 does not exist at {sample_rate} Hz; resample to one of: {rates}")
    if frames == 0:
        raise UnsupportedAudioError("there are no samples, and an MP3 file cannot be empty; use wav")


def _build_empty_flac(sample_rate: int, channels: int) -> bytes:
    """Return a FLAC file with only a STREAMINFO block, because libsndfile writes nothing before the first sample."""
    fields = sample_rate << 44 | (channels - 1) << 41 | 15 << 36
    block = struct.pack(">HH6xQ16x", 4096, 4096, fields)
    return b"fLaC" + struct.pack(">I", 0x8000_0000 | len(block)) + block


def _encode_with_soundfile(
    blocks: Iterable[NDArray[Any]], sample_rate: int, channels: int, kind: tuple[str, str]
) -> bytes:
    require("soundfile")
    import soundfile

    (container, subtype), buffer = kind, BytesIO()
    try:
        with soundfile.SoundFile(buffer, "w", sample_rate, channels, subtype, format=container) as file:
            for block in blocks:
                file.write(block)
    except soundfile.LibsndfileError as error:
        text = f"{container} cannot be written at {sample_rate} Hz ({error.error_string}); resample first"
        raise UnsupportedAudioError(text) from error
    return buffer.getvalue()
