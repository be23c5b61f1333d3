"""Streams of speech with several WAV files in them, or with sizes that are not true."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from speechlab.audio import AudioClip, decode
from speechlab.errors import ContractError
from support.pieces import answer_in_pieces

W = AudioClip(0.4 * np.sin(np.arange(24_000) / 9), 24_000).encode("wav")
LIST = b"LIST" + struct.pack("<I", 5) + b"abcde\0"


def sized(data, riff):
    """The WAV with these sizes."""
    return W[:4] + struct.pack("<I", riff) + W[8:40] + struct.pack("<I", data) + W[44:]


OPEN = sized(0xFFFF_FFFF, 0xFFFF_FFFF)


@pytest.fixture
def play(http):
    """A function that plays a stream which comes in these pieces."""
    with answer_in_pieces() as (lab, answer):

        def collect(pieces):
            answer(pieces)
            return list(lab.stream_speech("a", voice=http.VOICE_ID, format="wav").clips())

        yield collect


def test_streams_of_several_files_sound_as_they_come(play):
    for data, seconds in (
        (OPEN + W, 2.0),
        (W + W, 2.0),
        (W + LIST + OPEN, 2.0),
        (sized(2_000_000_000, 2_000_000_036), 1.0),
        (sized(0, 0) + OPEN, 2.0),
    ):
        for width in (1, 7, 1_000, 100_000):
            end = len(data) if width > 7 else 300
            pieces = [data[at : at + width] for at in range(0, end, width)]
            joined = AudioClip.concatenate(play([*pieces, data[len(pieces) * width :]]))
            assert joined.duration_s == seconds
            assert joined == decode(data)


def test_a_stream_shorter_than_its_sizes_is_a_contract_error(play):
    with pytest.raises(ContractError, match="ends at byte 24,044"):
        play([sized(24_000, 24_036)])


def test_a_saved_stream_is_one_file_with_its_sizes(server, lab, http, tmp_path):
    for data in (OPEN + W, OPEN, W + W):
        server.script(http.chunked(*filter(None, (data[:50_000], data[50_000:]))))
        whole = lab.stream_speech("a", voice=http.VOICE_ID).save_to(tmp_path / "a.wav").collect()
        saved = (tmp_path / "a.wav").read_bytes()
        assert decode(saved) == whole == decode(data)
        assert saved.count(b"RIFF") == 1
        assert int.from_bytes(saved[4:8], "little") == len(saved) - 8
        assert int.from_bytes(saved[40:44], "little") == len(saved) - 44
