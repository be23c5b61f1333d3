"""Encoding of samples as whole files."""

from __future__ import annotations

import struct
from io import BytesIO

from speechlab.audio._codec.stream import MP3_RATES_HZ, OPUS_RATES_HZ, stream_encoder, wav_header
from speechlab.audio._samples import Samples, channels_of, to_pcm16
from speechlab.contract import AudioFormat
from speechlab.errors import UnsupportedAudioError

_MAX_CHANNELS = {AudioFormat.MP3: 2, AudioFormat.OGG: 2, AudioFormat.FLAC: 8}


def encode_samples(samples: Samples, sample_rate: int, audio_format: AudioFormat) -> bytes:
    """Encode checked samples; see :func:`speechlab.audio.encode` for the formats."""
    channels = channels_of(samples)
    max_channels = _MAX_CHANNELS.get(audio_format, channels)
    if channels > max_channels:
        text = f"{audio_format.upper()} has at most {max_channels} channels, not {channels}; use wav, or to_mono()"
        raise UnsupportedAudioError(text)
    match audio_format:
        case AudioFormat.PCM:
            return to_pcm16(samples)
        case AudioFormat.WAV:
            data = to_pcm16(samples)
            return wav_header(sample_rate, channels, len(data)) + data
        case AudioFormat.FLAC:
            return _flac(samples, sample_rate, channels)
        case AudioFormat.OGG:
            return _ogg(samples, sample_rate, channels)
        case AudioFormat.MP3:
            return _mp3(samples, sample_rate)


def _ogg(samples: Samples, sample_rate: int, channels: int) -> bytes:
    # The streaming encoder writes the exact length into the last page, and is three times as fast as soundfile.
    # Without samples it writes no file, whereas soundfile writes a valid empty one.
    if sample_rate in OPUS_RATES_HZ and len(samples):
        with stream_encoder(AudioFormat.OGG, sample_rate, channels) as encoder:
            return encoder.write(samples) + encoder.close()
    return _with_soundfile(samples, sample_rate, "OGG", "VORBIS")


def small_opus(samples: Samples) -> bytes:
    """Encode speech at 24 kHz at the lowest rate that suffices to judge it: Opus in Ogg, 13 kbit/s a channel."""
    import av
    import numpy as np

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


def _mp3(samples: Samples, sample_rate: int) -> bytes:
    if sample_rate not in MP3_RATES_HZ:
        rates = ", ".join(str(rate) for rate in MP3_RATES_HZ)
        raise UnsupportedAudioError(f"MP3 does not exist at {sample_rate} Hz; resample to one of: {rates}")
    if len(samples) == 0:
        raise UnsupportedAudioError("there are no samples, and an MP3 file cannot be empty; use wav")
    return _with_soundfile(samples, sample_rate, "MP3", "MPEG_LAYER_III")


def _flac(samples: Samples, sample_rate: int, channels: int) -> bytes:
    if len(samples) == 0:
        return _empty_flac(sample_rate, channels)
    import numpy as np

    # As integers: libsndfile scales floats by 32767, which would change samples that came from 16 bits.
    integers = np.frombuffer(to_pcm16(samples), dtype="<i2").reshape(-1, channels)
    return _with_soundfile(integers, sample_rate, "FLAC", "PCM_16")


def _empty_flac(sample_rate: int, channels: int) -> bytes:
    """A FLAC file with only a STREAMINFO block, because libsndfile writes nothing before the first sample."""
    fields = sample_rate << 44 | (channels - 1) << 41 | 15 << 36
    block = struct.pack(">HH6xQ16x", 4096, 4096, fields)
    return b"fLaC" + struct.pack(">I", 0x8000_0000 | len(block)) + block


def _with_soundfile(samples: object, sample_rate: int, container: str, subtype: str) -> bytes:
    import soundfile

    buffer = BytesIO()
    try:
        soundfile.write(buffer, samples, sample_rate, format=container, subtype=subtype)
    except soundfile.LibsndfileError as error:
        text = f"{container} cannot be written at {sample_rate} Hz ({error.error_string}); resample first"
        raise UnsupportedAudioError(text) from error
    return buffer.getvalue()
