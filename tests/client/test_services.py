"""Every kind of service behaves the same: the contract's, one of OpenAI's API, functions, and an object."""

import _thread
import asyncio
import threading
import time

import pandas as pd
import pytest

import speechlab as sl
from speechlab import batch
from speechlab.errors import (
    APITimeoutError,
    BadRequestError,
    RateLimitError,
    ReplayMiss,
    ServerError,
    SpeechLabError,
)
from support.clock import ends_within, eventually

HOW = {"source_lang": "en", "target_lang": "ja"}
ERRORS = {400: BadRequestError, 429: RateLimitError, 500: ServerError, 503: ServerError}


class Kind:
    """One kind of service, and a script of what it does with each text: a status, "hang", or an answer."""

    def __init__(self, http, server):
        self.http, self.server = http, server
        self.asked, self.script, self.hanging = [], {}, threading.Event()

    def outcome(self, text):
        """What becomes of the next attempt at a text; the last entry of its script is repeated."""
        self.asked.append(text)
        steps = self.script.get(text, [])
        return (steps.pop(0) if len(steps) > 1 else steps[0]) if steps else text.upper()

    def end(self):
        self.hanging.set()


class Http(Kind):
    """Over HTTP, in the words of the contract, or of OpenAI's API."""

    def reply(self, request):
        if request.path.endswith("/voices"):
            return self.http.reply(body={"voices": []})
        if request.path.endswith("/chat/completions"):
            text, stream = request.json["messages"][-1]["content"], request.json.get("stream")
        else:
            text = request.body.partition(b'name="text"\r\n\r\n')[2].partition(b"\r\n")[0].decode()
            stream = b"true" in request.body
        made = self.outcome(text)
        if isinstance(made, int):
            return self.http.reply(made, {"error": "no"}, Retry_After="0.01")
        if made == "hang":
            return [60.0, self.http.CLOSE]
        if stream:
            parts = self.http.events(*map(self.http.delta, made))
            return self.http.chunked(parts, content_type="text/event-stream")
        return self.http.reply(body={"choices": [{"message": {"content": made}}]})

    def lab(self, at_once=8, **options):
        self.server.script(self.reply)
        return sl.Client(self.server.base_url, max_concurrency=at_once, **options)


class OpenAI(Http):
    def lab(self, **options):
        return super().lab(adapter=sl.client.OpenAIAdapter(translation="m"), **options)


class Functions(Kind):
    """A function in threads."""

    def translate(self, text, source_lang, target_lang):
        made = self.outcome(text)
        if isinstance(made, int):
            raise ERRORS[made]("no", status=made, retry_after_s=0.01)
        if made == "hang":
            self.hanging.wait(60)
        yield from made

    def lab(self, at_once=8, **options):
        return sl.system("mine", version="1", concurrency=at_once, **self.how, **options)

    @property
    def how(self):
        return {"translate": self.translate}


class AsyncFunctions(Functions):
    async def translate(self, text, source_lang, target_lang):
        made = self.outcome(text)
        if isinstance(made, int):
            raise ERRORS[made]("no", status=made, retry_after_s=0.01)
        if made == "hang":
            await asyncio.sleep(60)
        for piece in made:
            yield piece


class Performing(Functions):
    """An object that performs operations."""

    def perform(self, operation):
        return sl.client.Reply({"text": "".join(self.translate(operation.text, "", ""))})

    @property
    def how(self):
        return {"service": self}


def test_a_result_has_its_times_and_counts_and_a_refusal_none(kind):
    kind.script["b"] = [400]
    with kind.lab() as lab:
        result = translate(lab)
        assert (result.text, result.source_lang, result.target_lang) == ("A", "en", "ja")
        assert result.timing.attempts == 1
        assert 0 < result.timing.first_byte_s <= result.timing.latency_s
        with pytest.raises(BadRequestError) as caught:
            translate(lab, "b")
        assert (caught.value.status, caught.value.timing.attempts) == (400, 1)
        assert (lab.usage.calls, lab.usage.translated_chars) == (1, 1)
    assert kind.asked == ["a", "b"]


@pytest.fixture(params=[Http, OpenAI, Functions, AsyncFunctions, Performing], ids=lambda kind: kind.__name__)
def kind(request, http, server):
    made = request.param(http, server)
    yield made
    made.end()


def translate(lab, text="a", **options):
    return lab.translate(text, **HOW, **options)


@pytest.mark.parametrize("status", [429, 503])
def test_later_is_asked_again(kind, status):
    kind.script["a"] = [status, status, "A"]
    with kind.lab() as lab:
        result = translate(lab)
        assert (result.text, result.timing.attempts) == ("A", 3)
        assert (lab.usage.calls, lab.usage.possibly_metered) == (1, 0)
    assert kind.asked == ["a"] * 3


def test_a_hang_ends_in_time_and_the_next_call_goes_on(kind):
    kind.script |= {"a": ["hang"], "c": [500]}
    with kind.lab(max_retries=1) as lab, ends_within(20):
        with pytest.raises(APITimeoutError, match=r"the call's time of 0.3 s was up") as caught:
            translate(lab, timeout=0.3)
        assert caught.value.timing.attempts == 1
        assert "timeout=" in str(caught.value)
        assert translate(lab, "b").text == "B"
        with pytest.raises(ServerError) as failed:
            translate(lab, "c")
    assert failed.value.timing.attempts == 2  # the retries that are allowed
    assert kind.asked == ["a", "b", "c", "c"]


def test_a_canceled_call_gives_its_place_back(kind):
    kind.script["a"] = ["hang"]

    async def work():
        settings = kind.lab(at_once=1)._async._settings
        async with sl.AsyncClient.from_settings(settings) as lab:
            task = asyncio.create_task(lab.translate("a", **HOW))
            await asyncio.to_thread(eventually, lambda: kind.asked)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await lab.translate("b", **HOW)).text

    with ends_within(20):
        assert asyncio.run(work()) == "B"


def test_an_interrupt_ends_the_call(kind):
    kind.script["a"] = ["hang"]

    def interrupt():
        eventually(lambda: kind.asked)
        time.sleep(0.05)
        _thread.interrupt_main()

    with kind.lab() as lab, ends_within(20):
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            translate(lab)
        assert translate(lab, "b").text == "B"


def test_results_are_kept_and_replayed_and_failures_are_not(kind, tmp_path):
    kind.script["b"] = [400]
    with kind.lab(store=tmp_path) as lab:
        first = translate(lab)
        assert translate(lab) == first
        for _ in range(2):
            with pytest.raises(BadRequestError):
                translate(lab, "b")
        with lab.stream_translation("c", **HOW) as stream:
            chunks = list(stream)
    assert kind.asked == ["a", "b", "b", "c"]
    with kind.lab(store=tmp_path, mode="replay") as lab:
        again = translate(lab)
        assert (again, again.timing) == (first, first.timing)
        with lab.stream_translation("c", **HOW) as stream:
            assert list(stream) == chunks
        with pytest.raises(ReplayMiss, match="'b' here"):
            translate(lab, "b")
    assert len(kind.asked) == 4


def test_a_stream_has_its_pieces_and_may_be_left(kind):
    with kind.lab(at_once=1) as lab, ends_within(20):
        with lab.stream_translation("abc", **HOW) as stream:
            assert stream.collect().text == "ABC"
            assert stream.timing.first_byte_s > 0
        with lab.stream_translation("abc", **HOW) as stream:
            next(stream)
        assert translate(lab, "d").text == "D"


def test_a_failing_row_stops_no_batch_of_any_kind(kind, tmp_path):
    table = pd.DataFrame({"text": ["a", "b", "a", "c"]})
    kind.script |= {"b": [400], "c": [429, "C"]}
    how = {**HOW, "store": tmp_path, "progress": False, "concurrency": 2}
    with kind.lab() as lab:
        rows = batch.translate(table, lab, **how)
        assert rows["status"].tolist() == ["ok", "error", "ok", "ok"]
        assert rows["error_type"].iloc[1] == "BadRequestError"
        assert sorted(kind.asked) == ["a", "b", "c", "c"]
        kind.script["b"] = ["B"]
        again = batch.translate(table, lab, **how)
    assert again["translation"].tolist() == ["A", "B", "A", "C"]
    assert sorted(kind.asked) == ["a", "b", "b", "c", "c"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_that_is_closed_ends_the_calls_under_way(kind, streamed):
    kind.script["a"] = ["hang"]
    ended, lab = [], kind.lab()

    def call():
        with pytest.raises(SpeechLabError) as caught:
            lab.stream_translation("a", **HOW).collect() if streamed else translate(lab)
        ended.append(caught.value)

    caller = threading.Thread(target=call, daemon=True)
    with ends_within(20):
        caller.start()
        assert eventually(lambda: kind.asked)
        lab.close()
        caller.join(10)
    assert len(ended) == 1
    with pytest.raises(SpeechLabError, match="this client is closed"):
        translate(lab, "b")
    assert kind.asked == ["a"]
