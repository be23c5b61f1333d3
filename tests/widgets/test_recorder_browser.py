"""The recorder in a real browser with a microphone that plays a file: what arrives is what was played."""

from itertools import pairwise

import numpy as np
import pytest
import soundfile

from speechlab.widgets import Recorder
from support.browser import MICROPHONE, assert_readable, needs_axe
from support.recorders import LOCAL, ShownRecorder

pytestmark = pytest.mark.browser

RATE = 44_100
"""The rate of Chromium's own fake microphone."""
TENTH = RATE // 10
HOSTILE = "<img src=x onerror='window.fired=1'> costs $5 and $6"


def played():
    """Five seconds that are nowhere alike: a tone that rises, and grows until it is clipped."""
    times = np.arange(5 * RATE) / RATE
    return np.clip(np.sin(2 * np.pi * (200 * times + 150 * times**2)) * (0.1 + 0.05 * times), -1, 1)


@pytest.fixture(scope="module")
def listening(launch, tmp_path_factory):
    """A browser whose microphone plays a file, once for each take."""
    file = tmp_path_factory.mktemp("microphone") / "played.wav"
    soundfile.write(file, played(), RATE, subtype="PCM_16")
    return launch(*MICROPHONE, f"--use-file-for-fake-audio-capture={file}%noloop")


@pytest.fixture
def show_recorder(listening):
    contexts, pages = [], []

    def show(recorder, browser=listening, origin=LOCAL, headers=None, **options):
        options = {"permissions": ["microphone"], "viewport": {"width": 820, "height": 640}, **options}
        contexts.append(browser.new_context(**options))
        pages.append(ShownRecorder(contexts[-1], recorder, origin, headers))
        return pages[-1]

    yield show
    for context in contexts:
        context.close()
    assert [page.errors + page.refused for page in pages] == [[]] * len(pages)


def places_of(clip, sound):
    """For each tenth of a second: where it was played, its gain, and what is left when that is taken away."""
    found = []
    for part in np.split(clip[: len(clip) // TENTH * TENTH], len(clip) // TENTH):
        size = len(part) + len(sound)
        likeness = np.fft.irfft(np.fft.rfft(sound, size) * np.conj(np.fft.rfft(part, size)), size)
        first = int(likeness[: len(sound)].argmax())
        played = sound[first : first + len(part)]
        gain = float(np.dot(part, played) / np.dot(played, played))
        found.append((first, gain, float(np.sqrt(np.mean((part - gain * played) ** 2) / np.mean(part**2)))))
    return found


def exact(places):
    """The tenths that came back as they were played; a busy browser drops a buffer of its microphone now and then."""
    return [first for first, gain, rest in places if gain == pytest.approx(1, abs=0.02) and rest < 0.02]


def test_what_arrives_is_what_was_played(show_recorder):
    recorder = Recorder(title=HOSTILE)
    shown = show_recorder(recorder)
    shown.record(1.6)
    shown.taken(1)
    clip = recorder.clip
    assert (clip.sample_rate, clip.channels) == (RATE, 1)
    assert 1.6 <= clip.duration_s < 4
    middle = clip.samples[RATE // 2 : RATE // 2 + RATE]
    firsts = exact(places_of(middle, played()))
    assert len(firsts) >= 8
    assert all(later - first >= TENTH for first, later in pairwise(firsts))
    assert 0 < firsts[0] < 3 * RATE
    [take] = recorder.takes
    assert (take["rate"], take["clipped"]) == (RATE, 0)
    assert take["device"]
    assert take["peak_dbfs"] == pytest.approx(20 * np.log10(np.abs(clip.samples).max()))
    assert (shown.page.locator("img").count(), shown.page.get_by_text(f"{HOSTILE} 1").count()) == (0, 1)
    assert shown.page.evaluate("window.fired") is None
    # what the saved notebook has
    html = str(recorder.static_html())
    assert "&lt;img src=x" in html
    assert html.count("<audio") == 1


def test_takes_play_are_recorded_again_and_deleted(show_recorder):
    recorder = Recorder(sample_rate=16_000)
    shown = show_recorder(recorder)
    seen = []
    recorder.observe(lambda change: seen.append(recorder.clip), "takes")
    page = shown.page
    page.evaluate(
        """() => {
          window.starts = [];
          window.sounding = new Set();
          const { start, stop } = AudioBufferSourceNode.prototype;
          AudioBufferSourceNode.prototype.start = function () {
            starts.push(this.buffer.duration);
            sounding.add(this);
            return start.call(this);
          };
          AudioBufferSourceNode.prototype.stop = function () { sounding.delete(this); return stop.call(this); };
        }"""
    )
    shown.record(0.3)
    shown.taken(1)
    shown.record(0.5, "Record again")
    shown.taken(2)
    assert [clip.sample_rate for clip in recorder.clips] == [16_000] * 2
    assert [clip.title for clip in recorder.clips] == ["Recording 1", "Recording 2"]
    assert seen == recorder.clips
    page.get_by_role("button", name="Play Recording 1").click()
    page.wait_for_function("starts.length === 1")
    shown.press("Stop Recording 1")
    assert page.evaluate("starts[0]") == pytest.approx(recorder.clips[0].duration_s, abs=0.001)
    page.get_by_role("button", name="Delete Recording 2").focus()
    page.keyboard.press("Enter")
    shown.taken(1)
    assert len(recorder.clips) == 1
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Delete Recording 1"
    shown.press("Play the last")
    page.wait_for_function("starts.length === 2")
    page.keyboard.press("d")
    assert page.evaluate("leaked") == []
    page.evaluate("model.set('takes', [])")  # Python forgets them: there is nothing left to stop it with
    assert page.evaluate("sounding.size") == 0


def test_a_take_ends_by_itself_and_a_busy_kernel_loses_nothing(show_recorder):
    recorder = Recorder(max_s=1.2)
    shown = show_recorder(recorder)
    shown.page.evaluate(
        """() => {
          window.said = [];
          const live = document.querySelector("[role=status]");
          new MutationObserver(() => said.push(live.textContent)).observe(live, { childList: true });
        }"""
    )
    shown.lost = 2
    shown.press("Record")
    shown.page.get_by_text("Stopped: a take has 1.2 seconds at most").wait_for()
    shown.taken(1)
    said = shown.page.evaluate("said")
    assert "Recording" in said
    assert all(one != after for one, after in pairwise(said))  # nothing is read aloud at each chunk
    assert recorder.clip.frames == round(1.2 * RATE)
    places = places_of(recorder.clip.samples[RATE // 4 :], played())
    assert len(exact(places)) >= len(places) // 2  # a browser on a busy machine has holes in what it hears


def test_the_level_is_told_and_so_is_clipping(show_recorder, launch, tmp_path):
    file = tmp_path / "loud.wav"
    soundfile.write(file, np.clip(3 * np.sin(np.arange(3 * RATE) / 30), -1, 1), RATE)
    recorder = Recorder()
    shown = show_recorder(recorder, launch(*MICROPHONE, f"--use-file-for-fake-audio-capture={file}"))
    meter = shown.page.get_by_role("meter", name="Level")
    assert meter.get_attribute("aria-valuetext") == "silence"
    shown.press("Record")
    shown.page.get_by_text("Too loud: the sound is clipped").wait_for()
    # the browser's microphone may be silent for a moment while the machine is busy
    loud = "meter => Number(meter.getAttribute('aria-valuenow')) >= -1"
    shown.page.wait_for_function(loud, arg=meter.element_handle())
    shown.press("Stop")
    shown.taken(1)
    assert recorder.takes[0]["clipped"] > 1_000
    assert shown.page.get_by_text("samples at full scale").count() == 1
    shown.page.wait_for_function(
        "meter => meter.getAttribute('aria-valuetext') === 'silence'", arg=meter.element_handle()
    )


def test_a_recorder_without_a_microphone_says_why(show_recorder, launch, chromium):
    for options, said in (
        ({"origin": "http://page.test", "permissions": []}, "only to pages over https, or from this machine"),
        (
            {"headers": {"Permissions-Policy": "microphone=()"}},
            "The program that shows this notebook keeps the microphone",
        ),
    ):
        shown = show_recorder(Recorder(), **options)
        assert said in shown.status()
        assert shown.page.get_by_role("button", name="Record").is_disabled()
    deny = [flag.replace("fake-ui-for-media-stream", "fake-ui-for-media-stream=deny") for flag in MICROPHONE]
    for shown, said in (
        (
            show_recorder(Recorder(), launch(*deny), permissions=[]),
            "refuses the microphone. Allow it for this page",
        ),
        (show_recorder(Recorder(), chromium), "There is no microphone. Connect one, then record again."),
    ):
        shown.press("Record")
        shown.page.get_by_text(said).wait_for()
        assert shown.page.get_by_role("button", name="Record").is_enabled()
        assert shown.recorder.clips == []
    refuse = (
        "navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('<b>why</b>', name); }"
    )
    for name, said in (
        ("NotReadableError", "another program may be using it"),
        ("OverconstrainedError", "Choose another one"),
        ("StrangeError", "The microphone cannot be used: <b>why</b>"),
    ):
        shown.page.evaluate(f"name => {{ {refuse}; }}", name)
        shown.press("Record")
        shown.page.get_by_text(said).wait_for()


COUNT_ENDS = """() => {
  window.ended = 0;
  const stop = MediaStreamTrack.prototype.stop;
  MediaStreamTrack.prototype.stop = function () { ended += 1; return stop.call(this); };
}"""


def test_recorder_says_that_no_code_may_run_in_audio(show_recorder):
    shown = show_recorder(Recorder())
    shown.page.evaluate(COUNT_ENDS)
    refuse = (
        "AudioWorklet.prototype.addModule = () => Promise.reject(new DOMException('policy', 'AbortError'))"
    )
    shown.page.evaluate(f"void ({refuse})")
    shown.press("Record")
    shown.page.get_by_text("the page's policy lets no code into the audio thread").wait_for()
    assert shown.page.evaluate("ended") == 1


def test_a_microphone_that_goes_keeps_what_it_heard(show_recorder):
    recorder = Recorder()
    shown = show_recorder(recorder)
    shown.page.evaluate(
        """() => {
          const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
          navigator.mediaDevices.getUserMedia = async (what) => (window.stream = await open(what));
        }"""
    )
    shown.press("Record")
    shown.heard(0.3)
    shown.page.evaluate("stream.getAudioTracks()[0].dispatchEvent(new Event('ended'))")
    shown.page.get_by_text("Microphone disconnected; the recording so far is kept").wait_for()
    shown.taken(1)
    assert recorder.clip.duration_s >= 0.3


def test_a_microphone_is_chosen_by_name(show_recorder):
    shown = show_recorder(Recorder())
    page = shown.page
    page.evaluate(
        """() => {
          window.wanted = [];
          const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
          navigator.mediaDevices.getUserMedia = (what) => (wanted.push(what.audio), open(what));
        }"""
    )
    shown.record(0.2)
    shown.taken(1)
    choice = page.get_by_label("Microphone")
    name = choice.locator("option").nth(1).text_content()
    choice.select_option(label=name)
    shown.record(0.2, "Record again")
    shown.taken(2)
    first, second = page.evaluate("wanted")
    assert (first["echoCancellation"], first["autoGainControl"]) == (False, False)
    assert "deviceId" not in first
    assert second["deviceId"]["exact"]
    assert name in shown.recorder.takes[1]["device"]


def test_recorder_says_that_the_kernel_is_gone(show_recorder):
    shown = show_recorder(Recorder())
    page = shown.page
    page.evaluate("void (model.send = () => { throw new Error('closed') })")
    shown.press("Record")
    page.get_by_text("No answer: the kernel is gone. The take is kept here").wait_for()
    page.evaluate(COUNT_ENDS)
    page.evaluate("cleanup()")
    page.wait_for_function("ended > 0 && model.listeners.length === 0")


@needs_axe
def test_axe_finds_nothing_serious_and_nothing_is_cut_off(show_recorder):
    shown = show_recorder(Recorder(title=HOSTILE))
    page = shown.page
    shown.record(0.2)
    shown.taken(1)
    shown.press("Record again")
    shown.heard(0.1)
    assert_readable(page, ("light", 820), ("dark", 380))
    page.get_by_role("button", name="Stop", exact=True).focus()
    page.keyboard.press("Space")
    shown.taken(2)
