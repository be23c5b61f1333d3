"""Encoding of samples as whole files, block by block, so that little memory is needed beside the result."""

from __future__ import annotations

import math
import struct
from io import BytesIO
from typing import TYPE_CHECKING, Any

from speechlab._require import later
from speechlab.audio._codec.stream import MP3_RATES_HZ, OPUS_RATES_HZ, stream_encoder, wav_header
from speechlab.audio._samples import Samples, channels_of, to_pcm16
from speechlab.contract import AudioFormat
from speechlab.errors import UnsupportedAudioError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray
else:
    np = later("numpy")

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
            yield wav_header(sample_rate, channels, 2 * math.prod(shape))
            yield from map(to_pcm16, blocks)
        case AudioFormat.FLAC if not shape[0]:
            yield _empty_flac(sample_rate, channels)
        case AudioFormat.FLAC:
            # As integers: libsndfile scales floats by 32767, which would change samples that came from 16 bits.
            integers = (np.frombuffer(to_pcm16(block), "<i2").reshape(-1, channels) for block in blocks)
            yield _with_soundfile(integers, sample_rate, channels, ("FLAC", "PCM_16"))
        case AudioFormat.OGG if sample_rate in OPUS_RATES_HZ and shape[0]:
            # The streaming encoder writes the exact length into the last page, and is three times as fast as
            # soundfile. Without samples it writes no file, whereas soundfile writes a valid empty one.
            with stream_encoder(AudioFormat.OGG, sample_rate, channels) as encoder:
                yield from map(encoder.write, blocks)
                yield encoder.close()
        case AudioFormat.OGG:
            yield _with_soundfile(blocks, sample_rate, channels, ("OGG", "VORBIS"))
        case AudioFormat.MP3:
            _check_mp3(sample_rate, shape[0])
            yield _with_soundfile(blocks, sample_rate, channels, ("MP3", "MPEG_LAYER_III"))


def small_opus(samples: Samples) -> bytes:
    """Encode speech at 24 kHz at the lowest rate that suffices to judge it: Opus in Ogg, 13 kbit/s a channel."""
    import av

    channels = channels_of(samples)
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


def _check_mp3(sample_rate: int, frames: int) -> None:
    if sample_rate not in MP3_RATES_HZ:
        rates = ", ".join(str(rate) for rate in MP3_RATES_HZ)
        raise UnsupportedAudioError(f"MP3 does not exist at {sample_rate} Hz; resample to one of: {rates}")
    if frames == 0:
        raise UnsupportedAudioError("there are no samples, and an MP3 file cannot be empty; use wav")


def _empty_flac(sample_rate: int, channels: int) -> bytes:
    """A FLAC file with only a STREAMINFO block, because libsndfile writes nothing before the first sample."""
    fields = sample_rate << 44 | (channels - 1) << 41 | 15 << 36
    block = struct.pack(">HH6xQ16x", 4096, 4096, fields)
    return b"fLaC" + struct.pack(">I", 0x8000_0000 | len(block)) + block


def _with_soundfile(
    blocks: Iterable[NDArray[Any]], sample_rate: int, channels: int, kind: tuple[str, str]
) -> bytes:
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
