"""The pictures of the guide of the widgets, as a browser shows them: ``poe pictures`` takes them anew."""

from pathlib import Path

import pandas as pd
import pytest

from speechlab import datasets, metrics
from speechlab.audio import AudioClip
from speechlab.batch import Counts, Outcome
from speechlab.engines import EngineVoice
from speechlab.store import StoredResult
from speechlab.widgets import (
    AudioTable,
    BatchPreview,
    ErrorBrowser,
    ListeningTest,
    Player,
    Recorder,
    ReferenceBrowser,
    SegmentEditor,
    VoiceExplorer,
)
from support.browser import MICROPHONE
from support.recorders import ShownRecorder
from support.staged_voices import RecordedVoices, voices_service

pytestmark = pytest.mark.browser

SOUNDS = Path(__file__).parents[2] / "tools" / "site" / "sounds"
in_both_schemes = pytest.mark.parametrize(
    ("shown", "scheme"), [(one, one) for one in ("light", "dark")], indirect=["shown"]
)
ERRORS = {"的": "地", "三": "山", "天": "田", "很": "", "今": "金", "在": "再"}


def misheard(frame):
    heard = frame["text"].tolist()
    for one, other in ERRORS.items():
        heard = [text.replace(one, other, 1) for text in heard]
    return heard


@pytest.fixture
def table():
    frame = datasets.zh_speech()
    heard = misheard(frame)
    frame = metrics.score(frame.assign(hypothesis=heard), reference="text")
    shown = ["id", "text", "hypothesis", "error_rate", "duration_s"]
    return AudioTable(frame, columns=shown, reference="text", hypotheses="hypothesis")


def settled(page):
    for part in ("svg", "del"):
        page.locator(f".sl-row {part}").first.wait_for()
    page.locator(".sl-row").nth(1).locator(".sl-play").click()
    page.wait_for_selector(".sl-row.sl-playing")
    page.keyboard.press("m")
    page.keyboard.press("4")
    page.wait_for_timeout(600)
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)


@pytest.mark.parametrize(
    ("shown", "width", "name"),
    [("light", 1020, "table-light"), ("dark", 1020, "table-dark"), ("dark", 380, "table-narrow-dark")],
    indirect=["shown"],
)
def test_a_picture_of_the_table(shown, show_table, table, save_picture, width, name):
    shown.page.set_viewport_size({"width": width, "height": 900})
    page = show_table(table, "margin:0")
    settled(page)
    if name == "table-dark":
        page.get_by_role("button", name="Filter").click()
    save_picture(page, ".speechlab-table", name)


@in_both_schemes
def test_a_picture_of_three_languages(shown, show_table, save_picture, scheme):
    rows = pd.read_csv(SOUNDS / "sounds.csv", dtype="string")
    rows["audio"] = [str(SOUNDS / name) for name in rows["audio"]]
    columns = ["text", "hypothesis", "voice"]
    table = AudioTable(rows, reference="text", hypotheses="hypothesis", language="language", columns=columns)
    shown.page.set_viewport_size({"width": 1020, "height": 900})
    page = show_table(table, "margin:0")
    for part in ("svg", "del"):
        page.locator(f".sl-row {part}").first.wait_for()
    page.wait_for_timeout(600)
    save_picture(page, ".speechlab-table", f"languages-{scheme}")


@in_both_schemes
def test_a_picture_of_the_errors(shown, show_table, save_picture, scheme):
    frame = datasets.zh_speech()
    small = misheard(frame)
    large = frame["text"].str.replace("的", "地", n=1).str.replace("今天", "明天")
    errors = ErrorBrowser(frame.assign(small=small, large=large), hypothesis=["small", "large"])
    shown.page.set_viewport_size({"width": 1180, "height": 900})
    page = show_table(errors, "margin:0")
    settled(page)
    if scheme == "light":
        page.get_by_role("button", name="Filter").click()
    save_picture(page, ".speechlab-table", f"errors-{scheme}")


@in_both_schemes
def test_a_picture_of_the_references(shown, show_table, save_picture, scheme):
    frame = datasets.zh_speech()
    said = frame["text"].tolist()
    frame["text"] = misheard(frame)
    doubted = metrics.suspects(frame.assign(small=said, large=said), ["small", "large"])
    shown.page.set_viewport_size({"width": 1020, "height": 900})
    page = show_table(ReferenceBrowser(doubted.rename(columns={"id": "row"})), "margin:0")
    page.locator(".sl-row svg").first.wait_for()
    page.locator(".sl-grid").focus()
    page.keyboard.press("y")
    save_picture(page, ".speechlab-table", f"references-{scheme}")


VOICES = (
    EngineVoice("mei", ("zh",), "Female", "Chinese, calm, for long texts"),
    EngineVoice("jun", ("zh", "en"), "Male", "Chinese and English, lively"),
    EngineVoice("hana", ("ja", "zh"), "Female", "Japanese and Chinese, a story teller"),
    EngineVoice("outage", ("zh",), "Neutral", "Chinese, very fast"),
    EngineVoice("kenji", ("ja",), "Male", "Japanese, deep"),
    EngineVoice("rose", ("en",), "Female", "British English, clear"),
)


@in_both_schemes
def test_a_picture_of_the_voices(shown, show_table, save_picture, scheme):
    with voices_service(RecordedVoices(voices=VOICES), "studio") as lab:
        explorer = VoiceExplorer(lab, text="今天的天气真不错，我们去公园走走吧。")
        explorer.voices = ["mei", "jun", "outage"]
        explorer.speak()
        shown.page.set_viewport_size({"width": 1020, "height": 1200})
        page = show_table(explorer, "margin:0")
        page.locator(".sl-row svg").nth(1).wait_for()
        page.get_by_role("button", name="Play row 2", exact=True).click()
        page.wait_for_function("document.querySelector('.sl-time').textContent >= '0:00.8'")
        page.keyboard.press("Escape")
        page.mouse.move(0, 0)
        save_picture(page, ".speechlab-table", f"voices-{scheme}")


@in_both_schemes
def test_pictures_of_the_player_and_the_preview(show_player, show_preview, save_picture, scheme):
    clip = AudioClip.from_file(datasets.zh_speech()["audio"].iloc[0])
    said = [(0.2, 1.42, "目前的经济形势"), (1.54, 2.3, "非常复杂")]
    heard = [(0.22, 1.4, "目前的经济形式"), (1.56, 2.25, "非常复杂")]
    tiers = {"reference": said, "recognizer": heard, "VAD": [(0.2, 2.3)]}
    sounds = (
        {"24 kHz": clip, "8 kHz": clip.resample(8_000)} if scheme == "dark" else clip.with_title("zh-023")
    )
    page = show_player(Player(sounds, tiers, lang="zh", spectrogram=True))
    page.evaluate("model.set('selection', [0.9, 1.42]); model.set('current_time', 0.4)")
    page.wait_for_timeout(500)
    save_picture(page, ".speechlab-player", f"player-{scheme}")
    preview = BatchPreview()
    preview.begin("synthesize")
    preview.update([Outcome("ok", latency_s=0.4)], Counts(40, 40, 0, 2, 9.0))
    preview.end()
    preview.begin("transcribe")
    rows = [
        Outcome("ok", StoredResult("k", "transcribe", {}, {"text": text, "language": "zh"}), latency_s=0.61)
        for text in ("今天的天气真不错，我们去公园走走吧。", "目前的经济形势非常复杂")
    ]
    rows.insert(1, Outcome("error", error_text="ServerError: 502", latency_s=1.2, attempts=3))
    preview.update(rows, Counts(12, 40, 1, 0, 6.0))
    save_picture(show_preview(preview), ".speechlab-preview", f"preview-{scheme}")


@in_both_schemes
def test_a_picture_of_the_editor(shown, show_player, save_picture, scheme):
    clip = AudioClip.from_file(datasets.zh_speech()["audio"].iloc[0]).with_title("zh-023")
    found = {"start": [0.12, 1.3, 1.52], "end": [1.3, 1.46, 2.45], "text": ["目前的经济形势", "", "非常复杂"]}
    marked = {"reference": [(0.2, 1.42), (1.54, 2.3)]}
    found = pd.DataFrame(found).assign(speaker="A")
    editor = SegmentEditor(clip, found, reference=marked, lang="zh", spectrogram=True)
    shown.page.set_viewport_size({"width": 1020, "height": 1200})
    page = show_player(editor, "margin:0")
    page.locator(".sl-segments li").nth(2).wait_for()
    page.evaluate("model.set('selected', 0); model.set('current_time', 0.2)")
    page.get_by_role("slider", name="Position").press("[")
    page.wait_for_timeout(400)
    save_picture(page, ".speechlab-editor", f"editor-{scheme}")


@pytest.mark.parametrize(("scheme", "width"), [("light", 760), ("dark", 380)])
def test_a_picture_of_the_recorder(launch, save_picture, tmp_path, scheme, width):
    spoken = AudioClip.from_file(datasets.zh_speech()["audio"].iloc[0]).resample(44_100)
    (tmp_path / "spoken.wav").write_bytes(
        AudioClip((1.1 if scheme == "light" else 1.6) * spoken.samples, 44_100).encode("wav")
    )
    fake = [*MICROPHONE, f"--use-file-for-fake-audio-capture={tmp_path / 'spoken.wav'}"]
    context = launch(*fake).new_context(
        color_scheme=scheme, permissions=["microphone"], viewport={"width": width, "height": 700}
    )
    shown = ShownRecorder(context, Recorder(max_s=20, title="Sentence 12"))
    shown.record(2.4)
    shown.taken(1)
    shown.press("Record again")
    shown.heard(1.6)
    save_picture(shown.page, ".speechlab-recorder", f"recorder-{scheme}")


@pytest.fixture
def recordings():
    """Short ones, so that they are soon heard to the end."""
    frame = datasets.zh_speech().head(3)
    clips = [AudioClip.from_file(path).resample(16_000) for path in frame["audio"]]
    clips = [AudioClip(clip.samples[:10_000], 16_000) for clip in clips]
    narrow = [clip.resample(8_000).resample(16_000) for clip in clips]
    systems = {"wide": clips, "narrow": narrow, "again": clips}
    parts = [frame.assign(system=name, audio=made) for name, made in systems.items()]
    return pd.concat(parts, ignore_index=True)


@in_both_schemes
@pytest.mark.parametrize("method", ["mos", "mushra"])
def test_a_picture_of_the_listening_test(shown, show_test, recordings, save_picture, method, scheme):
    practice = 0 if method == "mos" else 1
    test = ListeningTest(
        recordings, method, item="id", text="text", language="language", reference="wide", training=practice,
        title="Two codecs", seed=1,
    )  # fmt: skip
    shown.page.set_viewport_size({"width": 700, "height": 900})
    page = show_test(test, "margin:0")
    page.get_by_label("Your name or number").fill("ann")
    page.keyboard.press("Enter")
    page.locator(".sl-body").wait_for()
    page.locator(".sl-hear").first.click()
    page.locator(".sl-heard").first.wait_for()
    if method == "mos":
        page.keyboard.press("4")
    for number, score in enumerate((92, 35, 71) if method == "mushra" else ()):
        page.locator(".sl-range").nth(number).fill(str(score))
    page.mouse.move(0, 0)
    save_picture(page, ".speechlab-listening", f"listening-{'mushra-' * practice}{scheme}")
