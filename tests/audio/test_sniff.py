"""Which format some bytes are: the four of section 2.3 of the contract, and everything that looks like them."""

from __future__ import annotations

import pytest

from speechlab.audio import decode, detect_format
from speechlab.errors import UnsupportedAudioError

KNOWN = [
    (b"RIFF\x24\0\0\0WAVEfmt ", "wav"),
    (b"RIFF\xff\xff\xff\xffWAVE", "wav"),
    (b"OggS\0\x02", "ogg"),
    (b"fLaC\0\0\0\x22", "flac"),
    (b"ID3\x04\0\0\0\0\0\0", "mp3"),
    (b"\xff\xfb\x90\x64", "mp3"),  # MPEG-1 layer III
    (b"\xff\xfa\x90\x64", "mp3"),  # ... with a checksum
    (b"\xff\xf3\x44\xc4", "mp3"),  # MPEG-2
    (b"\xff\xe3\x44\xc4", "mp3"),  # MPEG-2.5
]

STRANGERS = [
    (b"", "no bytes"),
    (b"RIFF\x24\0\0\0AVI LIST", "RIFF, but not WAVE"),
    (b"RIFF\x24\0\0\0WEBP", "RIFF, but not WAVE"),
    (b"RIFF", "RIFF, but not WAVE"),
    (b"RIFX\0\0\0\x24WAVE", "RIFX"),
    (b"RF64\xff\xff\xff\xffWAVE", "RF64"),
    (b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb", "W64"),
    (b"FORM\0\0\0\0AIFF", "AIFF"),
    (b".snd\0\0\0\x18", "Sun AU"),
    (b"caff\0\x01", "Core Audio"),
    (b"\0\0\0\x20ftypM4A ", "M4A"),
    (b"\x1a\x45\xdf\xa3", "WebM"),
    (b"#!AMR\n", "AMR"),
    (b"\xff\xf1\x50\x80", "ADTS"),
    (b"\xff\xf9\x50\x80", "ADTS"),
    (b"\xff\xfb\xf0\x64", "it starts with"),  # a bitrate that does not exist
    (b"\xff\xfb\x9c\x64", "it starts with"),  # a sample rate that does not exist
    (b"\xff\xeb\x90\x64", "it starts with"),  # a version that does not exist
    (b"\xff\xfd\x90\x64", "it starts with"),  # layer II
    (b"\xff\xfe\x41\x00", "it starts with"),  # text in UTF-16
    (b"\xff\xfb", "it starts with"),
    (b"\xff\xd8\xff\xe0", "it starts with"),
    (b"data:audio/wav;base64,UklG", "data URL"),
    (b"UklGRiQAAABXQVZF", "it starts with"),
    ("こんにちは".encode(), "it starts with"),
]


def test_the_four_formats_are_known_by_their_header():
    for data, expected in KNOWN:
        assert detect_format(data) == detect_format(memoryview(bytearray(data))) == expected


def test_look_alikes_are_refused_and_named():
    for data, named in STRANGERS:
        for function in (detect_format, decode):
            with pytest.raises(UnsupportedAudioError) as caught:
                function(data)
            assert named in str(caught.value)
            assert "WAV, OGG, MP3 and FLAC" in str(caught.value)
