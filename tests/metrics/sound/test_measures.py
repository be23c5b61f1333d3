"""Measures of speech, on sounds whose measures are known and on recordings."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab.audio import AudioClip
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.metrics import dnsmos, loudness, speech_measures
from speechlab.metrics._sound import signal
from speechlab.metrics._sound.signal import measure_f0

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


def measured(*parts, **options):
    table = speech_measures([AudioClip(np.concatenate(parts), RATE)], **options)
    return table.iloc[0]


def test_silence_is_measured_in_seconds_and_shares():
    row = measured(silence(0.5), voice(1.0), silence(0.3), voice(1.0), silence(0.2))
    assert row["duration_s"] == 3.0
    assert row["leading_silence_s"] == pytest.approx(0.5, abs=0.02)
    assert row["trailing_silence_s"] == pytest.approx(0.2, abs=0.02)
    assert row["longest_pause_s"] == pytest.approx(0.3, abs=0.03)
    assert row["silence_ratio"] == pytest.approx(1 / 3, abs=0.03)
    assert row["speech_s"] == pytest.approx(2.3, abs=0.03)


def test_very_short_clips_have_measures_or_missing_values():
    for frames in [0, 1, 15, 160, 161, 400, 6_399, 6_400]:
        clip = AudioClip(np.random.default_rng(1).normal(0, 0.1, frames).astype("f4"), RATE)
        row = speech_measures([clip], ["a"], language="de").iloc[0]
        assert row["duration_s"] == frames / RATE
        assert pd.isna(row["measure_error"])
        assert pd.isna(row["loudness_lufs"]) == (frames < 0.4 * RATE)
        if frames < 500:
            assert pd.isna(row["f0_median_hz"])
            assert pd.isna(row["voiced_ratio"])
        assert not row["repeated_ending"]
        assert pd.isna(row["rms_dbfs"]) == (frames == 0)


@pytest.mark.slow
def test_silent_and_empty_clips_have_no_quality():
    pytest.importorskip("speechmos")
    for frames in (0, 1_600):
        with pytest.raises(InvalidRequestError, match="has no quality"):
            dnsmos(AudioClip(silence(frames / RATE), RATE))
    table = speech_measures([AudioClip(silence(1), RATE), AudioClip(voice(0.01), RATE)], with_dnsmos=True)
    assert table["dnsmos_overall"].isna().tolist() == [True, False]


def test_speech_measures_say_why_a_clip_has_none():
    frame = pd.DataFrame(
        {
            "audio": [
                AudioClip(voice(0.5), RATE),
                "no/such/file.wav",
                b"no sound",
                5,
                None,
                AudioClip(voice(0.5), RATE),
            ],
            "text": ["a"] * 6,
            "language": ["de", "de", "de", "de", "de", "jp"],
        }
    )
    table = speech_measures(frame)
    wrong = table["measure_error"]
    assert wrong.isna().tolist() == [True, False, False, False, True, False]
    assert "no/such/file.wav" in wrong[1]
    assert "'jp' is not a language" in wrong[5]
    assert table["duration_s"].notna().tolist() == [True, False, False, False, False, True]
    with pytest.raises(InvalidRequestError, match="'jp'"):
        speech_measures([AudioClip(voice(0.5), RATE)], language="jp")


def test_invalid_samples_are_refused():
    for samples in [np.full(800, np.nan), np.full(800, np.inf), np.zeros((2, 2, 2)), np.float32(1)]:
        with pytest.raises(AudioError):
            speech_measures([AudioClip(samples, RATE)])


def test_levels():
    t = np.arange(RATE) / RATE
    row = measured((0.5 * np.sin(2 * np.pi * 440 * t)).astype(np.float32))
    assert row["peak_dbfs"] == pytest.approx(-6.02, abs=0.01)
    assert row["rms_dbfs"] == pytest.approx(-9.03, abs=0.01)
    assert row["clipping_ratio"] == 0
    clipped = measured(np.clip(3 * np.sin(2 * np.pi * 100 * t), -1, 1).astype(np.float32))
    assert clipped["clipping_ratio"] == pytest.approx(1 - 2 / math.pi * math.asin(1 / 3), abs=0.01)
    spike = voice(1.0)
    spike[5_000] = 1.0
    assert measured(spike)["clipping_ratio"] == 0


@pytest.mark.slow
def test_loudness_conforms_to_ebu_tech_3341():
    rate = 48_000

    def tone(*parts):
        pieces = []
        for dbfs, seconds in parts:
            t = np.arange(round(seconds * rate)) / rate
            pieces.append(10 ** (dbfs / 20) * np.sin(2 * np.pi * 1_000 * t))
        return np.repeat(np.concatenate(pieces)[:, None], 2, axis=1).astype(np.float32)

    assert loudness(AudioClip(tone((-23, 20)), rate)) == pytest.approx(-23, abs=0.1)  # case 1
    assert loudness(AudioClip(tone((-33, 20)), rate)) == pytest.approx(-33, abs=0.1)  # case 2
    assert loudness(AudioClip(tone((-36, 10), (-23, 60), (-36, 10)), rate)) == pytest.approx(
        -23, abs=0.1
    )  # case 3
    gated = tone((-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10))
    assert loudness(AudioClip(gated, rate)) == pytest.approx(-23, abs=0.1)  # case 4


# Results of pyloudnorm 0.2.0 (Meter(rate, filter_class="DeMan")) for `noise` below.
PYLOUDNORM = {8_000: -23.83087109, 16_000: -23.30158379, 24_000: -23.12389320, 44_100: -22.95019569}


def noise(rate):
    sound = np.random.default_rng(5).normal(size=rate * 25) * 0.05
    sound[rate * 5 : rate * 8] *= 0.001
    return sound.astype(np.float32)


def test_loudness_agrees_with_pyloudnorm():
    for rate, expected in PYLOUDNORM.items():
        assert loudness(AudioClip(noise(rate), rate)) == pytest.approx(expected, abs=1e-6)


def test_loudness_of_a_short_or_silent_clip_is_nan():
    assert math.isnan(loudness(AudioClip(voice(0.39), RATE)))
    assert math.isnan(loudness(AudioClip(silence(2), RATE)))


@pytest.mark.parametrize("pitch", [65, 110, 220, 333, 480])
@pytest.mark.parametrize("noisy", [0.0, 0.02])
def test_pitch_of_known_tones(pitch, noisy):
    t = np.arange(2 * RATE) / RATE
    tone = sum(np.sin(2 * np.pi * pitch * k * t + k) / k for k in range(1, 16) if pitch * k < 8_000)
    tone = 0.2 * tone + noisy * np.random.default_rng(1).normal(size=len(t))
    found = measure_f0(tone.astype(np.float32), RATE)
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
    with pytest.raises(InvalidRequestError, match="8000"):
        speech_measures([AudioClip(voice(1), RATE)], f0_range_hz=(60, 8_000))


def test_rates_by_language():
    sound = [AudioClip(voice(2.0), RATE)] * 3
    frame = pd.DataFrame(
        {
            "audio": sound,
            "text": ["Hello, big world!", "東京へ行く。", "สวัสดี"],
            "language": ["en", "ja", "th"],
        }
    )
    table = speech_measures(frame)
    assert table["characters"].tolist()[:2] == [13, 5]
    assert table["words"].isna().tolist() == [False, True, True]
    assert table["words_per_s"].tolist()[0] == pytest.approx(3 / table["speech_s"].tolist()[0])
    assert table["duration_per_character_s"].tolist()[1] * 5 == table["speech_s"].tolist()[1]


def test_morae():
    pytest.importorskip("pyopenjtalk")
    table = speech_measures([AudioClip(voice(2.0), RATE)], ["東京へ行く。"], language="ja")
    assert table["morae"].tolist() == [7]  # ト ー キョ ー エ イ ク
    assert table["morae_per_s"].tolist()[0] == pytest.approx(7 / table["speech_s"].tolist()[0])


def test_looped_and_cut_endings_are_detected():
    good = np.concatenate([voice(2.0, seed=1), silence(0.2)])
    looped = np.concatenate([voice(2.0, seed=1), voice(2.0, seed=1)[-9_600:], silence(0.2)])
    cut = voice(2.0, seed=1)[: round(1.1 * RATE)]
    clips = [AudioClip(sound, RATE) for sound in (good, looped, cut)]
    table = speech_measures(clips)
    assert table["repeated_ending"].tolist() == [False, True, False]
    assert table["truncated_ending"].tolist() == [False, False, True]
    assert speech_measures(clips[1:2], ["Bye bye!"])["repeated_ending"].tolist() == [False]
    steady = np.sin(2 * np.pi * 200 * np.arange(3 * RATE) / RATE).astype(np.float32) * np.float32(0.3)
    assert not measured(steady, silence(0.1))["repeated_ending"]


def test_ends_are_compared_by_correlation():
    chance, found = np.random.default_rng(0), set()
    for noise in np.linspace(0.4, 0.8, 12):
        features = chance.normal(size=(120, 24))
        features[-33:] = features[-73:-40] + noise * chance.normal(size=(33, 24))
        lags = np.arange(15, 61)
        alike = []
        for lag in lags:
            correlations = []
            for length in (lag, max(round(0.75 * lag), 15)):
                end, before = features[-length:], features[-lag - length : len(features) - lag]
                shapes = (end - end.mean(axis=0), before - before.mean(axis=0))
                correlations.append(np.corrcoef(*(shape.ravel() for shape in shapes))[0, 1])
            alike.append(max(correlations) > 0.85)
        assert signal._are_ends_alike(features, lags, 15).tolist() == alike
        found.update(alike)
    assert found == {True, False}


@pytest.mark.slow
def test_only_changed_recordings_have_suspicious_endings():
    table = speech_measures(RECORDINGS)
    assert not table[["repeated_ending", "truncated_ending"]].any(axis=None)
    assert table["f0_median_hz"].between(70, 400).all()
    assert table["loudness_lufs"].between(-40, -5).all()
    assert (table["speech_s"] <= table["duration_s"]).all()
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
    stereo = np.stack([voice(1), voice(1)], axis=1)
    clips = [
        AudioClip(np.zeros(0, np.float32), RATE),
        AudioClip(np.zeros(1, np.float32), RATE),
        AudioClip(silence(2), RATE),
        AudioClip(voice(0.02), RATE),
        AudioClip(stereo, RATE),
        AudioClip(np.ones(RATE, np.float32), RATE),
        None,
        tmp_path / "bad.wav",
        tmp_path / "none.wav",
        AudioClip(voice(1), RATE).encode("wav"),
    ]
    frame = pd.DataFrame({"audio": clips, "text": "x", "duration_s": 99.0}, index=list("abcdefghhh"))
    table = speech_measures(frame)
    assert table.index.tolist() == list("abcdefghhh")
    assert table["duration_s"].tolist()[:2] == [0.0, 1 / RATE]
    assert table["measure_error"].isna().tolist() == [True] * 7 + [False, False, True]
    assert table["duration_s"].isna().tolist() == [False] * 6 + [True, True, True, False]
    assert table["loudness_lufs"].isna().tolist()[:4] == [True] * 4
    assert table["f0_median_hz"].dtype == "Float64"
    assert len(speech_measures([])) == 0
    assert list(speech_measures([]).columns) == list(table.columns[2:]) or "duration_s" in table.columns


def test_speech_measures_refuse_what_does_not_fit():
    for given, hint in (
        ((pd.DataFrame({"a": []}),), "no column 'audio'"),
        (([None], ["a", "b"]), "1 clips and 2 texts"),
    ):
        with pytest.raises(InvalidRequestError, match=hint):
            speech_measures(*given)
    assert "3 is not a clip" in speech_measures([3])["measure_error"].tolist()[0]


@pytest.mark.slow
def test_noise_lowers_the_ratings_of_dnsmos():
    for package in ("speechmos", "onnxruntime"):
        pytest.importorskip(package) if package == "onnxruntime" else _need_speechmos()
    clip = AudioClip.from_file(RECORDINGS[0])
    clean = dnsmos(clip)
    # Results of speechmos 0.0.1.1 with librosa 0.11 for the same samples.
    assert clean == pytest.approx((3.5434, 4.1918, 3.3301, 3.7156), abs=0.02)
    random = np.random.default_rng(0).normal(size=clip.samples.shape) * 0.02
    noisy = AudioClip((clip.samples + random).astype(np.float32), clip.sample_rate)
    table = speech_measures([clip, noisy], with_dnsmos=True)
    assert table["dnsmos_overall"].tolist()[0] == clean.overall
    assert table["dnsmos_background"].tolist()[1] < clean.background - 0.5
    with pytest.raises(InvalidRequestError, match="empty"):
        dnsmos(AudioClip(np.zeros(0, np.float32), RATE))


def _need_speechmos():
    from importlib.util import find_spec

    if find_spec("speechmos") is None:
        pytest.skip("speechmos is not installed (extra quality)")


def test_measures_of_the_user_are_columns():
    def broken(samples, rate):
        raise RuntimeError("no weights")

    clips = [AudioClip(voice(0.5), RATE), AudioClip(np.stack([voice(1.0)] * 2, axis=1), RATE), "none.wav"]
    table = speech_measures(clips, measures={"frames": lambda samples, rate: len(samples) / rate})
    assert table["frames"].tolist()[:2] == [0.5, 1.0]
    assert table["frames"].isna()[2]
    table = speech_measures(
        clips[:1], measures={"broken": broken, "text": lambda *_: "x", "one": lambda *_: 1}
    )
    assert table["one"].tolist() == [1.0]
    assert table["measure_error"].tolist() == ["text gave 'x', not a number"]
    for measures in ({"duration_s": broken}, {"x": 1}, [broken]):
        with pytest.raises(InvalidRequestError, match="measures"):
            speech_measures(clips[:1], measures=measures)
