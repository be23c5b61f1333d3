"""Recognition while recordings are spoken: planted delays and changes come back in every number of the report."""

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
        study(lab, rows, tmp_path)
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
    verified = evaluate.verify(report.save(tmp_path / "page.html"))
    assert verified, verified


def test_several_streams_are_ranked_and_a_slower_one_is_told(rows, tmp_path):
    """Each has a clock of its own, as they stream at the same time."""
    lives = [Live(SpeechClock(), 0.2, wrong=range(8)), Live(SpeechClock(), 0.5), Live(SpeechClock(), 0.3)]
    hows = [{"transcribe_stream": live, "version": "1", "clock": live.clock} for live in lives]
    with (
        sl.system("a", transcribe=said, **hows[0]) as a,
        sl.system("b", **hows[1]) as b,
        sl.system("c", **hows[2]) as c,
    ):
        report = study({"a": a, "b": b}, rows, tmp_path)
        rows = rows.head(8)
        alone = study(b, rows, tmp_path)
        earlier = study(c, rows, tmp_path)
    assert report.systems == ["a, whole", "a, streamed", "b, streamed"]
    assert report.answer.startswith(
        "Take “b, streamed”. It makes significantly fewer errors than “a, streamed”"
    )
    assert report.answer.endswith(
        "Streamed text is final 0.61 s (b, streamed) and 0.31 s (a, streamed) after the end of speech."
    )
    assert alone.answer.startswith("Streamed text is final 0.60 s after the end of speech in English")
    changes = alone.compare(earlier)
    assert changes.slower
    assert "time from the end of speech to the final text" in set(changes.differences["measure"])


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


def test_languages_without_times(rows, clock, tmp_path):
    silence = sl.AudioClip(np.zeros(800), RATE)
    quiet = pd.DataFrame({"text": ["zwei"] * 2, "language": "de", "audio": [silence] * 2})
    spoken = pd.concat([rows, quiet], ignore_index=True)
    spoken["speaker"] = [f"s{n % 9}" for n in range(COUNT + 2)]
    english = Live(clock, 0.2)

    def live(clips, language):
        yield from [("drei", True)] if language == "de" else english(clips)

    with sl.system("a", transcribe_stream=live, version="1", clock=clock) as lab:
        report = study(lab, spoken, tmp_path)
    told = "Streamed text has no times in German, where 100.0% of words are wrong; it is final 0.31 s after"
    assert report.answer.replace(" de,", " German,").startswith(told)
    assert len(report.summary) == 2


def test_settings_conditions_and_a_system_that_cannot_stream(rows, clock, tmp_path):
    live = Live(clock, 0.2)
    rows = rows.iloc[:8]
    with (
        sl.system("a", transcribe=said, transcribe_stream=live, version="1", clock=clock) as a,
        sl.system("b", transcribe=said, version="1") as b,
    ):
        settings = {"once": {}, "live": {"stream": True}}
        how = {"band_hz": [(100, 3_900)], "store": tmp_path, "progress": False}
        by_setting = evaluate.recognition(a, rows, settings=settings, **how)
        beside = study({"a": a, "b": b}, rows, tmp_path, speed=2)
    assert by_setting.answer.startswith("Streamed text is final 0.30 s after")
    assert by_setting.summary["streams"].notna().sum() == 2
    assert beside.systems == ["a, whole", "a, streamed", "b, whole"]
    timed = beside.speed.groupby("system")["total_s"].count()
    assert timed.to_dict() == {"a, streamed": 0, "a, whole": 2, "b, whole": 2}
