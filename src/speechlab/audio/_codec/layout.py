"""Where the sound of a file is, and who reads it: the one place where all readers of this package ask.

A file is one stream or several behind each other, between tags. libsndfile reads WAV, FLAC and OGG; NumPy reads WAV
with 16-bit PCM, in a fifth of the time. PyAV reads MP3, because libsndfile's MP3 decoder writes messages to stderr
even for valid files, and whatever libsndfile rejects. Decoders are lenient: they read the first of several streams,
and half a file as half a recording, without an error. In a study that is a wrong number, so each container is checked
here first. The checks use the bytes only, allocate no memory by the values in a header, and take time limited by the
length of the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from speechlab._formats import AudioFormat
from speechlab.audio._codec.containers import SoundPart, detect_format, skip_tags
from speechlab.audio._codec.flac import find_flac_streams
from speechlab.audio._codec.mpeg import find_mp3_streams
from speechlab.audio._codec.ogg import find_ogg_streams
from speechlab.audio._codec.riff import find_wav_streams

if TYPE_CHECKING:
    from speechlab.audio._codec.containers import Bytes

_FINDERS = {
    AudioFormat.WAV: find_wav_streams,
    AudioFormat.OGG: find_ogg_streams,
    AudioFormat.FLAC: find_flac_streams,
    AudioFormat.MP3: find_mp3_streams,
}


class SoundLayout(NamedTuple):
    """The format of a file, and its streams of sound."""

    format: AudioFormat
    parts: list[SoundPart]


def detect_sound_layout(data: Bytes) -> SoundLayout:
    """Find the sound of a file.

    Raises:
        UnsupportedAudioError: The file has another format.
        AudioDecodeError: It is cut short or damaged.
    """
    with memoryview(data) as view:
        source_format = detect_format(view)
    return SoundLayout(source_format, _FINDERS[source_format](data, skip_tags(data, 0)))
