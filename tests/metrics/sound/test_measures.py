"""Measures of speech, on sounds whose measures are known and on recordings."""

import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError
from speechlab.metrics import dnsmos, loudness, measure_f0, speech_measures

RECORDINGS = sorted((Path(__file__).parents[3] / "datasets" / "zh-speech").glob("*.ogg"))[:6]
RATE = 16_000


def voice(seconds, pitch=120.0, rate=RATE, level=0.2, seed=0):
    """A sound like a voice: harmonics of a pitch, a syllable of another timbre every 0.2 s, and a fade at the end."""
    random = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    syllable = (t / 0.2).astype(int)
    sound = np.zeros_like(t)
    formant = random.uniform(300, 3_500, syllable.max() + 1)[syllable]
    for k in range(1, int(min(4_000, rate / 2) / pitch)):
        weights = 0.05 / k + np.exp(-(((pitch * k - formant) / 300) ** 2))
        sound += weights * np.sin(2 * np.pi * pitch * k * t + k)
    sound *= 0.55 - 0.45 * np.cos(2 * np.pi * t / 0.2)
    return (level * sound / np.abs(sound).max()).astype(np.float32)


def silence(seconds, rate=RATE):
    return np.zeros(round(seconds * rate), dtype=np.float32)


def sine(hertz, seconds, level=1.0):
    return (level * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def measured(*parts, **options):
    return speech_measures([AudioClip(np.concatenate(parts), RATE)], **options).iloc[0]


def test_silence_is_measured_in_seconds_and_shares():
    row = measured(silence(0.5), voice(1.0), silence(0.3), voice(1.0), silence(0.2))
    assert row["duration_s"] == 3.0
    assert row["leading_silence_s"] == pytest.approx(0.5, abs=0.02)
    assert row["trailing_silence_s"] == pytest.approx(0.2, abs=0.02)
    assert row["longest_pause_s"] == pytest.approx(0.3, abs=0.03)
    assert row["silence_ratio"] == pytest.approx(1 / 3, abs=0.03)
    assert row["speech_s"] == pytest.approx(2.3, abs=0.03)


def test_very_short_clips_have_measures_or_missing_values():
    for frames in [0, 1, 161, 6_399, 6_400]:
        row = measured(np.random.default_rng(1).normal(0, 0.1, frames).astype("f4"), language="de")
        assert row["duration_s"] == frames / RATE
        missing = row[["measure_error", "loudness_lufs", "rms_dbfs", "repeated_ending"]].isna().tolist()
        assert missing == [True, frames < 0.4 * RATE, frames == 0, False]
        if frames < 500:
            assert row[["f0_median_hz", "voiced_ratio"]].isna().all()
        assert not row["repeated_ending"]


def test_levels():
    row = measured(sine(440, 1, 0.5))
    assert row["peak_dbfs"] == pytest.approx(-6.02, abs=0.01)
    assert row["rms_dbfs"] == pytest.approx(-9.03, abs=0.01)
    assert row["clipping_ratio"] == 0
    clipped = measured(sine(100, 1, 3).clip(-1, 1))
    assert clipped["clipping_ratio"] == pytest.approx(1 - 2 / math.pi * math.asin(1 / 3), abs=0.01)
    spike = voice(1.0)
    spike[5_000] = 1.0
    assert measured(spike)["clipping_ratio"] == 0


def test_loudness_conforms_to_ebu_tech_3341():
    rate = 48_000
    for expected, *parts in [
        (-23, (-23, 20)),  # case 1
        (-33, (-33, 20)),  # case 2
        (-23, (-36, 10), (-23, 60), (-36, 10)),  # case 3
        (-23, (-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)),  # case 4
    ]:
        tone = np.concatenate(
            [
                10 ** (dbfs / 20) * np.sin(2 * np.pi * np.arange(seconds * rate) / 48)
                for dbfs, seconds in parts
            ]
        )
        clip = AudioClip(np.repeat(tone[:, None], 2, axis=1).astype(np.float32), rate)
        assert loudness(clip) == pytest.approx(expected, abs=0.1)


# Results of pyloudnorm 0.2.0 (Meter(rate, filter_class="DeMan")) for `noise` below.
PYLOUDNORM = {8_000: -23.83087109, 16_000: -23.30158379, 24_000: -23.12389320, 44_100: -22.95019569}


def noise(rate):
    sound = np.random.default_rng(5).normal(size=rate * 25) * 0.05
    sound[rate * 5 : rate * 8] *= 0.001
    return sound.astype(np.float32)


def test_loudness_agrees_with_pyloudnorm():
    for rate, expected in PYLOUDNORM.items():
        assert loudness(AudioClip(noise(rate), rate)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("pitch", [65, 110, 220, 333, 480])
def test_pitch_of_known_tones(pitch):
    tone = sum(
        np.sin(2 * np.pi * pitch * k * np.arange(2 * RATE) / RATE + k) / k
        for k in range(1, 16)
        if pitch * k < 8_000
    )
    for noisy in (0.0, 0.02):
        sound = 0.2 * tone + noisy * np.random.default_rng(1).normal(size=len(tone))
        found = measure_f0(sound.astype(np.float32), RATE)
        assert np.nanmedian(found) == pytest.approx(pitch, rel=0.005)
        assert np.isnan(found).mean() < 0.02


def test_pitch_follows_a_glide_and_noise_has_none():
    t = np.arange(3 * RATE) / RATE
    pitch = 100 * 2 ** (t / 3)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    glide = sum(np.sin(k * phase) / k for k in range(1, 10)).astype(np.float32) * np.float32(0.2)
    found = measure_f0(glide, RATE)
    middle = pitch[(np.arange(len(found)) * 0.01 * RATE + 200).astype(int)]
    assert np.nanmax(np.abs(found / middle - 1)) < 0.02
    hiss = np.random.default_rng(2).normal(size=2 * RATE).astype(np.float32) * np.float32(0.1)
    assert np.isnan(measure_f0(hiss, RATE)).mean() > 0.95
    row = measured(voice(1.5, pitch=150.0), silence(1))
    assert row["f0_median_hz"] == pytest.approx(150, rel=0.01)
    assert row["f0_sd_hz"] < 5
    assert row["voiced_ratio"] > 0.7


def test_rates_by_language():
    pytest.importorskip("pyopenjtalk")
    frame = pd.DataFrame(
        {
            "audio": [AudioClip(voice(2.0), RATE)] * 3,
            "text": ["Hello, big world!", "東京へ行く。", "สวัสดี"],
            "language": ["en", "ja", "th"],
        }
    )
    table = speech_measures(frame)
    assert table["characters"].tolist()[:2] == [13, 5]
    assert table["words"].isna().tolist() == [False, True, True]
    assert table["morae"].fillna(0).tolist() == [0, 7, 0]  # ト ー キョ ー エ イ ク
    english, japanese, _ = (row for _, row in table.iterrows())
    assert english["words_per_s"] == pytest.approx(3 / english["speech_s"])
    assert japanese["duration_per_character_s"] * 5 == japanese["speech_s"]
    assert japanese["morae_per_s"] == pytest.approx(7 / japanese["speech_s"])


def test_looped_and_cut_endings_are_detected():
    good = np.concatenate([voice(2.0, seed=1), silence(0.2)])
    looped = np.concatenate([voice(2.0, seed=1), voice(2.0, seed=1)[-9_600:], silence(0.2)])
    cut = voice(2.0, seed=1)[: round(1.1 * RATE)]
    clips = [AudioClip(sound, RATE) for sound in (good, looped, cut)]
    table = speech_measures(clips)
    assert table["repeated_ending"].tolist() == [False, True, False]
    assert table["truncated_ending"].tolist() == [False, False, True]
    assert speech_measures(clips[1:2], ["Bye bye!"])["repeated_ending"].tolist() == [False]
    assert not measured(sine(200, 3, 0.3), silence(0.1))["repeated_ending"]


@pytest.mark.slow
def test_only_changed_recordings_have_suspicious_endings():
    table = speech_measures(RECORDINGS)
    assert not table[["repeated_ending", "truncated_ending"]].any(axis=None)
    assert table["f0_median_hz"].between(70, 400).all()
    assert table["loudness_lufs"].between(-40, -5).all()
    loops, cuts = [], []
    for path in RECORDINGS:
        clip = AudioClip.from_file(path)
        end = round((clip.duration_s - 0.05) * clip.sample_rate)
        start = end - round(0.7 * clip.sample_rate)
        loops.append(AudioClip(np.concatenate([clip.samples[:end], clip.samples[start:]]), clip.sample_rate))
        loud = int(np.abs(clip.samples).argmax())
        cuts.append(AudioClip(clip.samples[: loud + 500], clip.sample_rate))
    assert speech_measures(loops)["repeated_ending"].sum() >= 5
    assert speech_measures(cuts)["truncated_ending"].sum() >= 5


def test_a_clip_that_is_too_long_has_a_high_duration_z():
    clips = [AudioClip(voice(1.0 + 0.02 * i), RATE) for i in range(9)] + [AudioClip(voice(4.0), RATE)]
    table = speech_measures(clips, ["ten words or so"] * 10, language="en")
    assert table["duration_z"].abs().tolist()[0] < 3.5
    assert table["duration_z"].tolist()[9] > 3.5
    assert speech_measures(clips[:5], ["a b"] * 5)["duration_z"].isna().all()


def test_unusual_clips_do_not_stop_the_others(tmp_path):
    (tmp_path / "bad.wav").write_bytes(b"RIFF not sound")
    said = voice(1)
    clips = {
        "empty": AudioClip(said[:0], RATE),
        "silent": AudioClip(silence(2), RATE),
        "short": AudioClip(voice(0.02), RATE),
        "constant": AudioClip(np.ones(RATE, np.float32), RATE),
        "stereo": AudioClip(np.stack([said, said], axis=1), RATE),
        "bytes": AudioClip(said, RATE).encode("wav"),
        "none": None,
        "bad": tmp_path / "bad.wav",
        "absent": "no/such/file.wav",
        "noise": b"no sound",
        "number": 5,
        "language": AudioClip(said, RATE),
    }
    frame = pd.DataFrame(
        {"audio": list(clips.values()), "text": "x", "duration_s": 99.0, "language": "de"}, index=list(clips)
    )
    frame.loc["language", "language"] = "jp"
    table = speech_measures(frame)
    wrong = table["measure_error"]
    assert wrong[wrong.notna()].index.tolist() == ["bad", "absent", "noise", "number", "language"]
    assert "no/such/file.wav" in wrong["absent"]
    assert "5 is not a clip" in wrong["number"]
    assert "'jp' is not a language" in wrong["language"]
    assert table.index[table["duration_s"].isna()].tolist() == ["none", "bad", "absent", "noise", "number"]
    assert table["duration_s"].iloc[:3].tolist() == pytest.approx([0.0, 2.0, 0.02])
    assert table["loudness_lufs"].iloc[:3].isna().all()
    assert table["f0_median_hz"].dtype == "Float64"
    assert len(speech_measures([])) == 0


@pytest.mark.slow
def test_noise_lowers_the_ratings_of_dnsmos():
    pytest.importorskip("onnxruntime")
    if find_spec("speechmos") is None:
        pytest.skip("speechmos is not installed (extra quality)")
    clip = AudioClip.from_file(RECORDINGS[0])
    clean = dnsmos(clip)
    # Results of speechmos 0.0.1.1 with librosa 0.11 for the same samples.
    assert clean == pytest.approx((3.5434, 4.1918, 3.3301, 3.7156), abs=0.02)
    random = np.random.default_rng(0).normal(size=clip.samples.shape) * 0.02
    noisy = AudioClip((clip.samples + random).astype(np.float32), clip.sample_rate)
    silent, short = AudioClip(silence(1), RATE), AudioClip(voice(0.01), RATE)
    table = speech_measures([clip, noisy, silent, short], with_dnsmos=True)
    assert table["dnsmos_overall"].tolist()[0] == clean.overall
    assert table["dnsmos_background"].tolist()[1] < clean.background - 0.5
    assert table["dnsmos_overall"].isna().tolist() == [False, False, True, False]
    with pytest.raises(InvalidRequestError, match="has no quality"):
        dnsmos(AudioClip(silence(0.1), RATE))


def test_measures_of_the_user_are_columns():
    def broken(samples, rate):
        raise RuntimeError("no weights")

    clips = [AudioClip(voice(0.5), RATE), AudioClip(np.stack([voice(1.0)] * 2, axis=1), RATE), "none.wav"]
    table = speech_measures(clips, measures={"frames": lambda samples, rate: len(samples) / rate})
    assert table["frames"].fillna(0).tolist() == [0.5, 1.0, 0]
    measures = {"broken": broken, "text": lambda *_: "x", "one": lambda *_: 1}
    table = speech_measures(clips[:1], measures=measures)
    assert table[["one", "measure_error"]].to_numpy().tolist() == [[1.0, "text gave 'x', not a number"]]
    with pytest.raises(InvalidRequestError, match="measures"):
        speech_measures(clips[:1], measures={"duration_s": broken})
