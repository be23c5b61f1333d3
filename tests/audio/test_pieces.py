"""Recordings in pieces, and their lengths: whole, cut short, of any format, from paths, bytes and clips."""

from __future__ import annotations

import numpy as np
import pytest

from speechlab.audio import AudioClip, cut_at_silences, measure_length_s
from speechlab.errors import AudioDecodeError

RATE = 48_000
FORMATS = ["wav", "flac", "ogg", "mp3"]


def sound(seconds=7.5, channels=2):
    """Noise, with silence in the last 0.4 s of each second."""
    frames = int(seconds * RATE)
    noise = np.random.default_rng(3).uniform(-0.3, 0.3, (frames, channels)).astype(np.float32)
    noise[np.arange(frames) % RATE > 0.6 * RATE] = 0
    return AudioClip(noise, RATE)


@pytest.mark.slow
def test_pieces_make_up_the_recording_and_are_cut_in_silences(tmp_path):
    for form in FORMATS:
        path = sound().save(tmp_path / f"a.{form}")
        pieces = list(cut_at_silences(path, 3.0))
        assert pieces == list(cut_at_silences(path.read_bytes(), 3.0))
        clips = [AudioClip.from_bytes(piece.flac) for piece in pieces]
        assert {(clip.sample_rate, clip.channels) for clip in clips} == {(16_000, 1)}
        assert max(clip.duration_s for clip in clips) <= 3.0
        starts = np.cumsum([0.0, *(clip.duration_s for clip in clips)])
        assert [piece.start_s for piece in pieces] == pytest.approx(starts[:-1].tolist())
        assert starts[-1] == pytest.approx(7.5, abs=0.001) == measure_length_s(path)
        assert all(0.6 <= piece.start_s % 1 <= 1 for piece in pieces[1:])
        whole = AudioClip.from_file(path).to_mono().resample(16_000).samples
        joined = np.concatenate([clip.samples for clip in clips])
        assert np.abs(joined - whole[: len(joined)]).max() < (0.01 if form == "mp3" else 1e-4)


def test_channels_in_opposite_phase_keep_their_sound(tmp_path):
    noise = sound(1.0, 1).samples
    path = AudioClip(np.stack([noise, -noise], axis=1), RATE).save(tmp_path / "a.wav")
    (piece,) = cut_at_silences(path, 3.0)
    whole = AudioClip(noise, RATE).resample(16_000).samples
    assert np.abs(AudioClip.from_bytes(piece.flac).samples - whole).max() < 1e-3


def test_a_clip_keeps_a_lower_rate_and_ends_where_it_ends():
    clip = AudioClip(np.full(8_000 * 6, 0.1, np.float32), 8_000)
    pieces = list(cut_at_silences(clip, 3.0))
    assert AudioClip.from_bytes(pieces[0].flac).sample_rate == 8_000
    assert sum(AudioClip.from_bytes(piece.flac).frames for piece in pieces) == clip.frames
    assert len(list(cut_at_silences(clip, 6.0))) == 1
    assert list(cut_at_silences(AudioClip(np.zeros(0, np.float32), 8_000), 3.0)) == []
    assert measure_length_s(clip) == 6.0


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("lost", [9, 20_000])
def test_a_file_that_is_cut_short_is_refused(form, lost, tmp_path):
    data = sound().encode(form)[:-lost]
    (tmp_path / "a").write_bytes(data)
    for source in (data, tmp_path / "a"):
        with pytest.raises(AudioDecodeError):
            list(cut_at_silences(source, 3.0))
        if form != "flac":  # whose header alone does not tell
            with pytest.raises(AudioDecodeError, match="cut short"):
                measure_length_s(source)


def test_a_piped_recording_has_its_true_length():
    data = bytearray(sound().encode("wav"))
    data[4:8] = data[40:44] = b"\xff" * 4
    assert measure_length_s(bytes(data)) == 7.5
    assert len(list(cut_at_silences(bytes(data), 10.0))) == 1


def test_what_is_no_recording(tmp_path):
    for content in (b"", b"no sound at all", None):
        path = tmp_path / "a.wav"
        if content is not None:
            path.write_bytes(content)
        for source in (path, str(path), tmp_path):
            for read in (measure_length_s, lambda given: list(cut_at_silences(given, 3.0))):
                with pytest.raises(AudioDecodeError, match=r"cannot be read|no file|folder"):
                    read(source)
