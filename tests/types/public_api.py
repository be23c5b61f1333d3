"""What a type checker sees of the public API. It is checked by mypy and by pyright, and never run."""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import speechlab as sl


def client(base_url: str, key: str) -> None:
    lab = sl.connect()
    assert_type(lab, sl.Client)
    with sl.Client(base_url=base_url, api_key=key) as own:
        assert_type(own, sl.Client)

    voices = lab.voices()
    voice = voices.find(language="ja")[0]
    assert_type(voice, sl.Voice)

    clip = lab.synthesize("今日は。", voice=voice)
    assert_type(clip, sl.client.SpeechClip)
    assert_type(clip.duration_s, float)
    as_audio: sl.AudioClip = clip
    as_audio.save("clip.wav")

    heard = lab.transcribe(clip, language="ja")
    assert_type(heard, sl.Transcript)
    assert_type(heard.text, str)
    assert_type(lab.translate("今日は。", source_lang="ja", target_lang="en"), sl.Translation)


async def async_client() -> None:
    async with sl.AsyncClient() as lab:
        assert_type(lab, sl.AsyncClient)
        assert_type((await lab.voices()).find(language="ja")[0], sl.Voice)
        assert_type((await lab.translate("One.", source_lang="en", target_lang="ja")).text, str)


def realtime(lab: sl.Client, voice: sl.Voice) -> None:
    with lab.realtime(voice=voice, format="wav") as session:
        assert_type(session.say("One."), sl.client.SpeechClip)


def batches(lab: sl.Client, table: pd.DataFrame) -> None:
    assert_type(sl.batch.synthesize(table, lab), pd.DataFrame)
    assert_type(sl.batch.transcribe(table, lab), pd.DataFrame)
    assert_type(sl.batch.translate(table, lab, source_lang="ja", target_lang="en"), pd.DataFrame)
    assert_type(sl.batch.failures(table), pd.DataFrame)


def metrics(table: pd.DataFrame) -> None:
    score = sl.metrics.error_rate(["a b"], ["a c"])
    assert_type(score.rate, float)
    assert_type(sl.metrics.score(["a b"], ["a c"], language="en"), pd.DataFrame)


def segments(clip: sl.AudioClip, table: pd.DataFrame) -> None:
    assert_type(sl.segments.merge(table, gap=0.2), pd.DataFrame)
    assert_type(sl.segments.read("talk.srt"), pd.DataFrame)


def studies(lab: sl.Client) -> None:
    prompts = sl.datasets.prompts("en", quick=True)
    assert_type(prompts, pd.DataFrame)
    report = sl.evaluate.round_trip(lab, prompts)
    as_report: sl.evaluate.Report = report
    assert_type(as_report.summary, pd.DataFrame)
    assert_type(report.plot(), Figure)
    assert_type(report.save("report.html"), Path)


def sound(samples: np.ndarray) -> None:
    clip = sl.AudioClip(samples, 16_000)
    assert_type(clip.resample(8_000), sl.AudioClip)


def refused(lab: sl.Client) -> Iterator[str]:
    try:
        lab.synthesize("One.", voice="nobody")
    except sl.RateLimitError as error:
        assert_type(error.retry_after_s, float | None)
    except sl.APIError as error:
        yield str(error)


def wrong(lab: sl.Client) -> None:
    lab.synthesize(1, voice="nobody")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    lab.translate("One.")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
