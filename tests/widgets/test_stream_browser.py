"""Speech that is heard while it is made, in a real browser: its pieces are on the clock, one behind the other."""

import base64
import threading

import numpy as np
import pytest

from speechlab import datasets
from speechlab.audio import AudioClip
from speechlab.widgets import StreamPlayer
from support.browser import FAKE_MODEL, pictures

pytestmark = pytest.mark.browser

RATE = 16_000
HOSTILE = "<img src=x onerror='window.fired=1'> $5 and $6 \u202egnp"
WATCH = """
window.viewOf = (text) => new DataView(Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0)).buffer);
window.starts = [];
window.stops = 0;
window.jump_s = 0;
let jumped = 0;
const { get: now } = Object.getOwnPropertyDescriptor(BaseAudioContext.prototype, "currentTime");
const clock = { get() { return now.call(this) + (jumped += jump_s); } };
Object.defineProperty(BaseAudioContext.prototype, "currentTime", clock);
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (when) {
  const { duration: seconds } = this.buffer;
  starts.push({ when, now: this.context.currentTime, seconds, first: this.buffer.getChannelData(0)[0] });
  return start.call(this, when);
};
const stop = AudioBufferSourceNode.prototype.stop;
AudioBufferSourceNode.prototype.stop = function () { stops += 1; return stop.call(this); };
"""


class Spoken:
    """A stream whose pieces come when the test says so; piece n begins with the sample n/100."""

    def __init__(self, seconds=0.5, clip=None):
        self.seconds = seconds
        self.clip = clip
        self.turn = threading.Semaphore(0)
        self.given = 0
        self.closed = self.over = False
        self.taken = threading.Semaphore(0)

    def clips(self):
        while True:
            self.turn.acquire()
            if self.over or self.closed:
                return
            self.given += 1
            samples = self._piece()
            yield AudioClip(samples.astype(np.float32), RATE)
            self.taken.release()

    def _piece(self):
        if self.clip:
            return np.array_split(self.clip.samples, 8)[self.given - 1]
        samples = 0.3 * np.sin(np.arange(round(self.seconds * RATE)) / 8)
        samples[0] = self.given / 100
        return samples

    def collect(self):
        return AudioClip(np.zeros(round(self.given * self.seconds * RATE), np.float32), RATE)

    def close(self):
        self.closed = True
        self.turn.release()

    def give(self):
        self.turn.release()
        assert self.taken.acquire(timeout=10)

    def end(self):
        self.over = True
        self.turn.release()


@pytest.fixture(autouse=True)
def nothing_sounds(monkeypatch):
    monkeypatch.setattr(StreamPlayer, "_last", None)


@pytest.fixture
def show_streams(shown):
    """Show players in one page, each with a model that asks the real player, and whose state follows it."""

    def show(*players):
        names = "title state facts rate frames _after _place _heard"
        shown.files["/stream.js"] = ("text/javascript", StreamPlayer._esm)
        page = shown.show(
            f"<!DOCTYPE html><meta charset=utf-8><title>t</title><style>{StreamPlayer._css}</style>"
            f"<script>{FAKE_MODEL}</script><body><main id=cell></main>"
        )
        ask = lambda number, content: players[number]._answer_message(None, content, [])  # noqa: E731 - shorter than a function here
        page.expose_function("ask_player", ask)
        page.evaluate(f"() => {{ window.models = []; {WATCH} }}")
        for number, player in enumerate(players):
            state = {name: getattr(player, name) for name in names.split()}
            page.evaluate(
                """async ([number, state, sound]) => {
                  const model = new FakeModel({ ...state, _sound: viewOf(sound) });
                  model.send = (content) => void window.ask_player(number, content);
                  models[number] = model;
                  const el = document.getElementById("cell").appendChild(document.createElement("div"));
                  (await import("/stream.js")).default.render({ model, el });
                }""",
                [number, state, base64.b64encode(player._sound).decode()],
            )
        return page

    return show


def follow(page, player, number=0):
    """Pass the state of a player to its model, as its comm would."""
    names = "frames rate facts state"
    state = {name: getattr(player, name) for name in names.split()}
    page.evaluate(
        """([number, state, sound]) => {
          const model = models[number];
          for (const [name, value] of Object.entries(state)) if (model.get(name) !== value) model.set(name, value);
          model.set("_sound", viewOf(sound));
        }""",
        [number, state, base64.b64encode(player._sound).decode()],
    )


def test_a_stream_sounds_at_once_and_without_a_gap(show_streams):
    spoken = Spoken(1.0)
    player = StreamPlayer(spoken, title=HOSTILE)
    page = show_streams(player)
    assert page.evaluate("starts.length") == 0
    page.get_by_text("waiting").wait_for()
    for _ in range(3):
        spoken.give()
        follow(page, player)
    first, second, third = page.evaluate("starts")
    assert first["when"] - first["now"] < 0.1  # at once: the rest is not waited for
    assert second["when"] == pytest.approx(first["when"] + 1.0)
    assert third["when"] == pytest.approx(second["when"] + 1.0)
    assert [round(100 * one["first"]) for one in (first, second, third)] == [1, 2, 3]
    page.get_by_text("speaking · first byte after").wait_for()
    page.get_by_text("/ 0:03.0+").wait_for()
    spoken.end()
    player.wait()
    follow(page, player)
    page.get_by_text("no stall").wait_for()
    page.evaluate("jump_s = 0.01")  # the clock goes on while a picture is painted, as on a busy machine
    page.wait_for_function("document.querySelector('.sl-act').textContent === 'Play'")
    page.evaluate("jump_s = 0")
    assert page.evaluate("models[0].get('_heard')") is True
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("starts.length === 4 && starts[3].seconds === 3")
    page.get_by_role("button", name="Pause").click()
    assert page.evaluate("stops") >= 1
    assert page.evaluate("window.fired") is None
    assert page.locator("#cell img").count() == 0


def test_two_players_sound_one_after_the_other_without_a_gap(show_streams):
    one, other = Spoken(2.0), Spoken()
    players = [StreamPlayer(one), StreamPlayer(other)]
    page = show_streams(*players)
    one.give()
    other.give()
    for number, player in enumerate(players):
        follow(page, player, number)
    assert page.evaluate("starts.length") == 1
    one.give()
    one.end()
    players[0].wait()
    follow(page, players[0])
    page.wait_for_function("starts.length === 3")
    starts = page.evaluate("starts")
    assert starts[2]["when"] == pytest.approx(starts[0]["when"] + 4.0)
    other.end()


def test_stop_ends_a_stream_and_the_next_begins(show_streams):
    one, other = Spoken(5.0), Spoken()
    players = [StreamPlayer(one), StreamPlayer(other)]
    page = show_streams(*players)
    one.give()
    other.give()
    follow(page, players[0])
    follow(page, players[1], 1)
    page.get_by_role("button", name="Stop").first.click()
    page.wait_for_function("starts.length === 2")
    second = page.evaluate("starts[1]")
    assert second["when"] - second["now"] < 0.1
    assert page.evaluate("stops") == 1
    clip = players[0].wait()
    assert one.closed
    assert players[0].state == "stopped"
    assert clip.duration_s == 5.0
    other.end()


def test_a_view_that_comes_late_asks_for_what_it_has_missed(show_streams):
    spoken = Spoken()
    player = StreamPlayer(spoken)
    spoken.give()
    spoken.give()
    page = show_streams(player)
    assert page.evaluate("starts.map((one) => one.seconds)") == [1.0]
    answers = []
    player.send = lambda content, buffers=(): answers.append((content, len(buffers[0])))
    spoken.give()
    late = "{ type: 'sound', start: 24000 }, [new DataView(new ArrayBuffer(400))]"
    page.evaluate(f"models[0].emit('msg:custom', {late})")
    page.wait_for_timeout(100)
    assert [(content["start"], size) for content, size in answers] == [
        (16_000, 16_000)
    ]  # what the view lacks
    assert page.evaluate("starts.length") == 1
    spoken.end()


def test_a_stream_loaded_again_waits_for_play(show_streams):
    spoken = Spoken()
    player = StreamPlayer(spoken)
    spoken.give()
    spoken.end()
    player.wait()
    player._heard = True
    page = show_streams(player)
    page.get_by_role("button", name="Play").wait_for()
    assert page.evaluate("starts.length") == 0
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("starts.length === 1")


@pytest.mark.parametrize("shown", pictures("light", "dark"), indirect=True)
def test_a_picture_of_the_stream(shown, show_streams, save_picture, request):
    row = datasets.zh_speech().iloc[2]
    spoken = Spoken(clip=AudioClip.from_file(row["audio"]).resample(RATE))
    player = StreamPlayer(spoken, title=row["text"])
    page = show_streams(player)
    for _ in range(6):
        spoken.give()
        follow(page, player)
    page.get_by_text("speaking · first byte after").wait_for()
    save_picture(page, ".speechlab-stream", f"stream-{request.node.callspec.params['shown']}")
    spoken.end()
    player.wait()
