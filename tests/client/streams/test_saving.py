"""A stream that is saved to a file while it is used; streams of several files, or with sizes that are not true."""

import struct

import numpy as np
import pytest

from speechlab.audio import AudioClip, decode
from speechlab.errors import ConfigurationError, ContractError, InvalidRequestError, StreamTruncatedError
from support.pieces import answer_in_pieces


@pytest.fixture
def endless(wav):
    """The same sound with a header that leaves its lengths open, as streams have it."""
    return wav[:4] + b"\xff" * 4 + wav[8:40] + b"\xff" * 4 + wav[44:]


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_a_stream_is_saved_while_it_plays(server, lab, http, wav, endless, folder, clip, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    server.script(http.chunked(endless[:1000], 0.1, endless[1000:]))
    with lab.stream_speech("a", voice=http.VOICE_ID) as stream:
        assert stream.save_to("~/a.wav") is stream
        played = AudioClip.concatenate(stream.clips())
    assert files(folder) == ["a.wav"]
    assert (folder / "a.wav").read_bytes() == wav  # now the header knows its lengths
    assert AudioClip.from_file(folder / "a.wav") == played == clip


def test_saving_may_begin_late_or_at_the_end(server, lab, http, wav, folder):
    server.script(http.chunked(wav[:1000], wav[1000:]))
    stream = lab.stream_speech("a", voice=http.VOICE_ID)
    next(stream)
    with pytest.raises(FileNotFoundError) as caught:
        stream.save_to(folder / "gone" / "a.wav")
    assert caught.value.filename == str(folder / "gone" / "a.wav")
    stream.save_to(folder / "late.wav")
    with pytest.raises(ConfigurationError, match="being saved to a file already"):
        stream.save_to(folder / "twice.wav")
    list(stream)
    stream.save_to(folder / "end.wav")
    assert files(folder) == ["end.wav", "late.wav"]
    assert (folder / "late.wav").read_bytes() == (folder / "end.wav").read_bytes() == wav


def test_of_a_stream_that_is_not_whole_no_file_stays(server, lab, http, wav, folder):
    (folder / "a.wav").write_bytes(b"before")
    server.script([*http.chunked(wav[:1000], end=False), http.CLOSE])
    with pytest.raises(StreamTruncatedError):
        lab.stream_speech("a", voice=http.VOICE_ID).save_to(folder / "a.wav").collect()
    server.script(http.chunked(wav[:1000], 30.0))
    with lab.stream_speech("a", voice=http.VOICE_ID).save_to(folder / "a.wav") as stream:
        next(stream)
    with pytest.raises(ConfigurationError, match="this stream is closed"):
        stream.save_to(folder / "b.wav")
    assert files(folder) == ["a.wav"]
    assert (folder / "a.wav").read_bytes() == b"before"


def test_a_name_of_another_format_is_never_sent(server, lab, http, wav, folder):
    server.script(http.chunked(wav))
    said = r"the stream is wav, and a\.mp3 is named as mp3; ask for format='mp3'"
    with pytest.raises(InvalidRequestError, match=said):
        lab.stream_speech("a", voice=http.VOICE_ID).save_to(folder / "a.mp3").open()
    assert not server.requests
    with pytest.raises(FileNotFoundError):
        lab.stream_speech("a", voice=http.VOICE_ID).save_to(folder / "no" / "a.wav")
    assert files(folder) == []


def test_a_stream_of_another_media_type_is_whole(server, lab, http, clip, tmp_path):
    for form, kind in zip(
        ("pcm", "wav", "mp3", "pcm"), ("binary/octet-stream", "video/ogg", "", ""), strict=True
    ):
        data = clip.encode(form)
        pieces = [data[at : at + 5_000] for at in range(0, len(data), 5_000)]
        server.script(http.chunked(*pieces, content_type=kind))
        stream = lab.stream_speech("あ", voice=http.VOICE_ID, format=form).save_to(tmp_path / f"a.{form}")
        assert stream.collect().frames == clip.frames
        assert (tmp_path / f"a.{form}").read_bytes() == data


def test_a_stream_that_is_an_error_text_is_no_sound(server, lab, http):
    for kind in ("application/json", "application/octet-stream", ""):
        server.script(http.chunked(b'{"error": "no quotas"}', content_type=kind))
        with pytest.raises(ContractError, match="no quota"):
            lab.stream_speech("あ", voice=http.VOICE_ID, format="pcm").collect()


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
