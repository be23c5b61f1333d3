"""What studies of speed count, against a service whose times, silences and refusals are known."""

import asyncio
import threading
import time
from itertools import count
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from speechlab import Client, connect, evaluate
from speechlab.audio import AudioClip
from speechlab.evaluate import estimate_quantile
from speechlab.metrics import score
from support.http_server import FaultServer, chunked, reply
from support.samples import VOICE

RATE = 24_000
WAIT_S = 50.0
"""What the service asks for with a refusal; in these tests a sleep takes no time, but the clock counts it."""


def tone(seconds, level=0.1):
    return level * np.sin(np.arange(round(RATE * seconds)) * 0.2)


def sound(*parts):
    return AudioClip(np.concatenate(parts), RATE)


@pytest.fixture
def server():
    """A server that plays scripts on a real socket."""
    fault, loop = FaultServer(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = asyncio.run_coroutine_threadsafe(
        asyncio.start_server(fault.handle, "127.0.0.1", 0), loop
    ).result(10)
    fault.port = running.sockets[0].getsockname()[1]
    yield fault

    async def stop():
        running.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def no_waiting(monkeypatch):
    """Waits that take no time, on a clock that counts them."""
    slept = []
    clock = time.perf_counter
    own = SimpleNamespace(sleep=slept.append, perf_counter=lambda: clock() + sum(slept))
    monkeypatch.setattr("speechlab.batch._timing.time", own)  # not that of all threads
    return slept


NAMES = {str(UUID(int=number)): name for number, name in enumerate(("early", "late", "plain"), 1)}


def voices():
    facts = {**VOICE, "language": "English", "sample_rates": [RATE]}
    named = [{**facts, "id": voice, "description": f"A voice ({name})"} for voice, name in NAMES.items()]
    return reply(body={"voices": named})


def speaking(speaks):
    """A service whose voice says what a function of its id and the number of the streamed call plays."""
    numbers = count()

    def answer(request):
        if request.path.endswith("/voices"):
            return voices()
        if request.path.startswith("/asr"):
            return reply(body={"text": "one", "language": "en"})
        if request.json.get("stream"):
            return speaks(NAMES[request.json["voice_id"]], next(numbers))
        return reply(body=sound(tone(0.5)).encode("wav"), content_type="audio/wav")

    return answer


def test_a_voice_that_streams_silence_is_not_the_first_to_sound(server):
    clips = {"early": sound(np.zeros(RATE), tone(0.5)), "late": sound(tone(0.5))}

    def speaks(voice, _):
        data = clips[voice].encode("pcm")
        waits = [0.2] if voice == "late" else []
        steps = chunked(*waits, data[:4_000], data[4_000:], content_type=f"audio/pcm; rate={RATE}")
        return [*steps[:-3], b"".join(steps[-3:])]  # sent at once, that no busy machine lies between them

    server.script(speaking(speaks))
    with Client(server.base_url) as lab:
        early, late = (evaluate.latency(lab, "One.", voice, ways="stream") for voice in ("early", "late"))
    assert early["error"].isna().all(), early["error"]
    assert late["error"].isna().all(), late["error"]
    assert (early["first_audible_s"] - early["first_byte_s"]).tolist() == pytest.approx([1.0])
    assert late["first_audible_s"].tolist() == late["first_byte_s"].tolist()
    assert late["first_byte_s"].min() >= 0.2
    assert early["stalls"].tolist() == late["stalls"].tolist() == [0]


def test_a_player_that_waits_for_samples_is_counted(server):
    data = sound(tone(0.05), np.zeros(RATE // 20), tone(0.1)).encode("pcm")
    first = len(data) // 4
    pieces = (data[:first], 1.0, data[first : 3 * first], data[3 * first :])
    server.script(speaking(lambda *_: chunked(*pieces, content_type=f"audio/pcm; rate={RATE}")))
    with Client(server.base_url) as lab:
        (call,) = evaluate.latency(lab, "One.", "plain", ways="stream").to_dict("records")
        (whole,) = evaluate.latency(lab, "One.", "plain", ways="whole").to_dict("records")
    assert call["stalls"] >= 1
    assert call["stalled_s"] >= 0.2
    assert call["total_s"] >= call["first_byte_s"] + 0.25
    assert whole["first_byte_s"] == whole["first_audible_s"] == whole["total_s"]
    assert (whole["stalls"], whole["stalled_s"]) == (0, 0.0)


def test_silence_is_never_audible(server):
    data = sound(np.zeros(RATE // 10)).encode("pcm")
    server.script(speaking(lambda *_: chunked(data, content_type=f"audio/pcm; rate={RATE}")))
    with Client(server.base_url) as lab:
        (call,) = evaluate.latency(lab, "One.", "plain", ways="stream").to_dict("records")
    assert pd.isna(call["first_audible_s"])
    assert call["first_byte_s"] > 0


@pytest.mark.slow
def test_refused_calls_are_waited_out_and_failed_ones_a_note(server, tmp_path, no_waiting):
    """Of twelve timed calls two are refused at first, which makes none slower, one is refused for long, one fails."""
    clip = sound(tone(0.5)).encode("wav")
    refused = []

    def speaks(voice, number):
        if number in {4, 8}:  # after one call of each voice that does not count
            refused.append(voice)
            return reply(429, {"error": "later"}, Retry_After=f"{WAIT_S:g}")
        if number == 11:
            return reply(429, {"error": "tomorrow"}, Retry_After="3600")
        return reply(500, {"error": "broken"}) if number == 13 else chunked(clip)

    server.script(speaking(speaks))
    frame = pd.DataFrame({"text": ["One.", "Two.", "Three.", "Four."], "language": "en"})
    with Client(server.base_url) as lab:
        report = evaluate.round_trip(lab, frame, speed=4, store=tmp_path / "store", progress=False)
    calls = report.speed[report.speed["error"].isna()]
    assert (len(report.speed), len(calls)) == (12, 10)
    assert calls.loc[calls["refusals"] > 0, "voice_name"].tolist() == refused
    assert no_waiting == [WAIT_S] * 2
    assert calls["total_s"].max() < WAIT_S
    assert report.summary["timed_calls"].sum() == 10
    (note,) = report.notes
    assert note.startswith("2 of 12 timed calls failed; the first: ")
    assert "tomorrow" in note


@pytest.mark.slow
def test_a_study_compares_voices_at_the_same_load(server, tmp_path):
    """A service that is slower with each call under way; the summary has the calls made alone."""
    slower, clip = [1.0], sound(tone(0.1)).encode("wav")

    def speaks(voice, number):
        return chunked(0.03 * slower[0] * server.active**2, clip)

    server.script(speaking(speaks))
    frame = pd.DataFrame({"text": [f"Number {row}." for row in range(6)], "language": "en"})
    how = {"speed": 6, "speed_concurrency": (1, 2), "store": tmp_path / "store"}
    stages = []
    with Client(server.base_url) as lab:
        before = evaluate.round_trip(lab, frame, "plain", progress=lambda *step: stages.append(step), **how)
        slower[0] = 3.0
        now = evaluate.round_trip(lab, frame, "plain", progress=False, **how)
    estimate = "estimate: 6 texts to speak, 54 characters; up to 8 seconds of sound to recognize"
    assert stages[0] == (estimate, 0, 0)
    assert before.speed["error"].isna().all()
    assert before.speed["concurrency"].value_counts().to_dict() == {1: 6, 2: 12}
    assert before.summary["timed_calls"].tolist() == [6]
    alone = before.speed.query("concurrency == 1")["total_s"]
    assert before.summary["total_s"].tolist() == [alone.median()]
    assert server.most_active == 2
    assert before.speed.query("concurrency == 2")["total_s"].max() >= 0.03 * 2**2
    changes = now.compare(before).differences
    changes = changes[changes["unit"] == "ratio"]
    assert set(changes["group"].str.partition("en")[2]) == {"", ", 2 at once"}
    assert set(changes.loc[changes["measure"] == "time to the end", "n"]) == {6}


@pytest.mark.parametrize(("share", "least"), [(0.5, 6), (0.95, 72), (0.99, 368)])
def test_intervals_of_quantiles_cover_them(share, least):
    assert estimate_quantile(np.arange(least - 1.0), share) is None
    assert estimate_quantile(np.arange(float(least)), share) is not None
    rng, draws = np.random.default_rng(0), 1_000
    truth = -np.log(1 - share)
    ends = [estimate_quantile(rng.exponential(size=least + 20), share) for _ in range(draws)]
    assert sum(low <= truth <= high for _, low, high in ends) >= 0.94 * draws


def test_the_summary_has_quantiles_only_of_enough_calls():
    calls = {"voice": ["a"] * 80 + ["b"] * 5, "total_s": range(1, 86), "error": None, "language": "en"}
    rows = pd.DataFrame({"voice": ["a", "b"], "text": "one", "hypothesis": "one", "language": "en"})
    rows = score(rows).assign(gender="", audio=None, duration_s=1.0, status="ok", error=None, loop=False)
    calls = pd.DataFrame(calls).assign(concurrency=1, voice_name=calls["voice"])
    report = evaluate.Report.of_scores("Calls", rows.assign(voice_name=rows["voice"]), speed=calls)
    found = report.summary.set_index("voice")
    assert found["timed_calls"].tolist() == [80, 5]
    assert found["total_s"].tolist() == [40.5, 83]
    assert found[["total_s_low", "total_s_high"]].to_numpy().tolist() == [[1, 80], [81, 85]]
    assert found.loc["a", "total_s_p50"] == found.loc["a", "total_s"]
    for percent in (50, 95):
        low, value, high = (found.loc["a", f"total_s_p{percent}{end}"] for end in ("_low", "", "_high"))
        assert low <= value <= high
    assert "total_s_p99" not in found.columns
    assert found.loc["b"].filter(regex=r"_p\d").isna().all()


TEXTS = ["The weather is fine today.", "See you tomorrow."]
WAYS = ["whole", "stream", "realtime"]


@pytest.mark.engines
def test_each_way_is_timed_and_replayed(lab, tmp_path):
    kept = lab.with_options(store=tmp_path / "store")
    found = evaluate.latency(kept, TEXTS, "heart")
    assert found["way"].tolist() == [*WAYS, *WAYS[1:], WAYS[0]]
    assert found["text"].tolist() == [TEXTS[0]] * 3 + [TEXTS[1]] * 3
    assert (found["first_byte_s"] < found["total_s"]).tolist() == (found["way"] != "whole").tolist()
    assert (found["first_byte_s"] > 0).all()
    assert (found["first_byte_s"] <= found["first_audible_s"]).all()
    assert found.groupby("text")["duration_s"].nunique().tolist() == [1, 1]
    assert found["error"].isna().all()
    pd.testing.assert_series_equal(found["rtf"], found["total_s"] / found["duration_s"], check_names=False)
    replaying = connect(store=tmp_path / "store", mode="replay")
    again = evaluate.latency(replaying, TEXTS, "heart")
    same = ["way", "text", "turn", "duration_s"]
    pd.testing.assert_frame_equal(found[same], again[same])
    whole = found["way"] == "whole"
    assert found.loc[whole, "total_s"].tolist() == again.loc[whole, "total_s"].tolist()
