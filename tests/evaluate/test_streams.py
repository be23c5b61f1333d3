"""Recognition while recordings are spoken: planted delays and changes come back in every number of the report."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import evaluate
from support.clock import SpeechClock

pytestmark = pytest.mark.slow

RATE, COUNT = 8_000, 24
TEXTS = [f"this is sentence number {n} of many" for n in range(COUNT)]


def clip(n):
    """A second of sound, with a tenth of a second of silence on both sides."""
    return sl.AudioClip(np.repeat(np.float32([0, 0.01 * (n + 1), 0]), [800, 8_000, 800]), RATE)


def said(sound):
    return TEXTS[round(sound.peak * 100) - 1]


class Live:
    """Says half of the sentence after 0.6 s, with a word that changes, and all of it ``delay_s`` after the end."""

    def __init__(self, clock, delay_s, wrong=()):
        self.clock, self.delay_s, self.wrong, self.calls = clock, delay_s, wrong, 0

    def __call__(self, clips, language=None):
        self.calls += 1
        for number, piece in enumerate(clips):
            if number == 5:
                self.clock.now += 0.02
                n = round(piece.peak * 100) - 1
                if n == 23 and "crash" in self.wrong:
                    raise ValueError("no such sound")
                yield "this is a", False
                yield "this is a sentence", False
        self.clock.now += self.delay_s + 0.001 * n
        yield TEXTS[n].replace("sentence", "sentences") if n in self.wrong else TEXTS[n], True


@pytest.fixture
def rows():
    return pd.DataFrame({"text": TEXTS, "language": "en", "audio": [clip(n) for n in range(COUNT)]})


@pytest.fixture
def clock():
    return SpeechClock()


def study(lab, rows, tmp_path, **how):
    return evaluate.recognition(lab, rows, stream=True, store=tmp_path / "store", progress=False, **how)


def test_streams_are_measured_against_whole_recordings(rows, clock, tmp_path):
    live = Live(clock, 0.2, wrong=range(8))
    with sl.system("a", transcribe=said, transcribe_stream=live, version="1", clock=clock) as lab:
        report = study(lab, rows, tmp_path)
        again = study(lab, rows, tmp_path)
    assert live.calls == COUNT
    found = report.summary.set_index("system").loc["streamed"]
    median = 0.1 + 0.2 + 0.001 * 11.5  # speech ends 0.1 s before the recording
    assert found["finalization_s"] == pytest.approx(median)
    assert (found["finalization_s_low"], found["finalization_s_high"]) == (
        pytest.approx(0.3),
        pytest.approx(0.323),
    )
    assert found["first_partial_s"] == pytest.approx(0.6 + 0.02 - 0.1)
    assert found["unstable_partial_word_ratio"] == pytest.approx(2 / 7)  # "a sentence", of seven words
    assert (found["unstable_partial_segment_ratio"], found["streams"]) == (1, COUNT)
    assert found["wer"] == pytest.approx(8 / (7 * COUNT))
    assert pd.isna(report.summary.set_index("system").loc["whole", "finalization_s"])
    assert report.answer == (
        "Streamed text is final 0.31 s after the end of speech in English, where 4.8% of words are wrong (whole: "
        "0.0%). The difference in errors is beyond chance on 24 recordings; final texts came after 0.30 to 0.32 s."
    )
    shown = next(view for view in report.views if view.title == "Streamed recognition").to_frame()
    assert shown["unstable words"].tolist() == ["28.6%"]
    assert len(report.speed) == COUNT
    assert again.answer == report.answer
    assert again.table["status"].unique().tolist() == ["cached"]
    verified = evaluate.verify(report.save(tmp_path / "report"))
    assert verified, verified
    with sl.system("a", transcribe=said, transcribe_stream=live, version="1", mode="replay") as lab:
        assert study(lab, rows, tmp_path).answer == report.answer
    assert live.calls == COUNT


def test_several_streams_are_ranked_and_a_slower_one_is_told(rows, clock, tmp_path):
    fast, slow = Live(clock, 0.2, wrong=range(8)), Live(clock, 0.5)
    with (
        sl.system("a", transcribe=said, transcribe_stream=fast, version="1", clock=clock) as a,
        sl.system("b", transcribe_stream=slow, version="1", clock=clock) as b,
        sl.system("c", transcribe_stream=Live(clock, 0.3), version="1", clock=clock) as c,
    ):
        report = study({"a": a, "b": b}, rows, tmp_path)
        alone = study(b, rows, tmp_path)
        earlier = study(c, rows, tmp_path)
        third = study({"a": a, "b": b}, rows.assign(old=TEXTS), tmp_path, hypotheses=["old"])
    assert report.systems == ["a, whole", "a, streamed", "b, streamed"]
    assert report.answer.startswith(
        "Take “b, streamed”. It makes significantly fewer errors than “a, streamed”"
    )
    assert report.answer.endswith(
        "Streamed text is final 0.61 s (b, streamed) and 0.31 s (a, streamed) after the end of speech."
    )
    assert "system" not in alone.table.columns
    assert alone.answer.startswith("Streamed text is final 0.61 s after the end of speech in English")
    changes = alone.compare(earlier)
    assert changes.slower
    assert "time from the end of speech to the final text" in set(changes.differences["measure"])
    assert third.systems == ["a, whole", "a, streamed", "b, streamed", "old"]
    assert (
        evaluate.Report.load(third.save(tmp_path / "third")).answer == third.answer
    )  # clips of several systems


def test_a_stream_that_fails_or_says_nothing_is_counted(rows, clock, tmp_path):
    silent = rows.assign(
        audio=[*rows["audio"][:-2], sl.AudioClip(np.zeros(800), RATE), rows["audio"].iloc[-1]]
    )

    def live(clips):
        clips = list(clips)
        n = round(max(piece.peak for piece in clips) * 100) - 1
        if n == COUNT - 1:
            raise ValueError("no such sound")
        if n >= 0:
            yield TEXTS[n], True

    with sl.system("a", transcribe_stream=live, version="1", clock=clock) as lab:
        report = study(lab, silent, tmp_path)
    assert report.failures()["error"].str.contains("no such sound").tolist() == [True]
    found = report.summary.iloc[0]
    assert (found["streams"], found["utterances_scored"]) == (COUNT - 1, COUNT - 1)
    assert report.speed["finalization_s"].notna().sum() == COUNT - 2
    assert found["unstable_partial_word_ratio"] == 0


def test_without_a_pace_and_in_japanese(clock, tmp_path):
    rows = pd.DataFrame({"text": ["三時に会議"], "language": "ja", "audio": [clip(1)]})

    def live(clips):
        yield "三十", False
        yield "三時に会議", True

    with sl.system("a", transcribe_stream=live, version="1", playback_rate=None) as lab:
        report = study(lab, rows, tmp_path)
    assert report.answer.startswith("Streamed text has no times in Japanese, where 0.0% of")
    assert report.summary["unstable_partial_word_ratio"].tolist() == [0.2]
    assert "first_partial_s" not in report.summary or report.summary["first_partial_s"].isna().all()


def test_languages_without_times_and_speakers(rows, clock, tmp_path):
    silence = sl.AudioClip(np.zeros(800), RATE)
    quiet = pd.DataFrame({"text": ["zwei"] * 2, "language": "de", "audio": [silence] * 2})
    spoken = pd.concat([rows, quiet], ignore_index=True)
    spoken["speaker"] = [f"s{n % 9}" for n in range(COUNT + 2)]
    english = Live(clock, 0.2)

    def live(clips, language):
        yield from [("drei", True)] if language == "de" else english(clips)

    with sl.system("a", transcribe_stream=live, version="1", clock=clock) as lab:
        report = study(lab, spoken, tmp_path)
        by_speaker = study(lab, spoken, tmp_path, voice="speaker")
    told = "Streamed text has no times in German, where 100.0% of words are wrong; it is final 0.31 s after"
    assert report.answer.replace(" de,", " German,").startswith(told)
    assert len(report.summary) == 2
    assert len(by_speaker.summary) == 11
    assert by_speaker.answer.count(" is final ") == 1
    assert evaluate.verify(report.save(tmp_path / "report"))


def test_settings_conditions_and_a_rest_that_cannot_stream(rows, clock, tmp_path):
    live = Live(clock, 0.2)
    rows = rows.iloc[:8]
    with (
        sl.system("a", transcribe=said, transcribe_stream=live, version="1", clock=clock) as a,
        sl.system("b", transcribe=said, version="1") as b,
    ):
        by_setting = evaluate.recognition(
            a, rows, settings={"once": {}, "live": {"stream": True}}, store=tmp_path, progress=False
        )
        noisy = evaluate.recognition(
            a, rows, stream=True, band_hz=[(100, 3_900)], store=tmp_path, progress=False
        )
        beside = study({"a": a, "b": b}, rows, tmp_path, speed=2)
    assert by_setting.answer.startswith("Streamed text is final 0.30 s after")
    assert noisy.summary["streams"].notna().sum() == 2
    assert beside.systems == ["a, whole", "a, streamed", "b, whole"]
    timed = beside.speed.groupby("system")["total_s"].count()
    assert timed.to_dict() == {"a, streamed": 0, "a, whole": 2, "b, whole": 2}
