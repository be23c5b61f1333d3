"""The guide and the page on any system run, with real engines; recipes of vendors load nothing."""

import re
from pathlib import Path

import pytest

import speechlab as sl

DOCS = Path(__file__).parents[2] / "docs"


def run_page(name, names):
    for block in re.findall(r"```python\n(.*?)```", (DOCS / name).read_text("utf-8"), re.DOTALL):
        exec(compile(block, name, "exec"), names)


@pytest.mark.engines
def test_the_guide_runs(light_service, monkeypatch, tmp_path):
    monkeypatch.setenv("SPEECHLAB_BASE_URL", light_service.base_url)
    monkeypatch.setenv("SPEECHLAB_API_KEY", light_service.api_key)
    monkeypatch.chdir(tmp_path)
    names = {}
    run_page("client.md", names)
    assert names["clip"].duration_s > 0.5
    assert names["whole"].duration_s > 1
    assert "おはよう" in names["transcript"].text
    assert names["timed"].segments["text"].str.contains("おはよう").any()
    assert names["result"].text
    assert names["stream"].translation.text
    names["lab"].close()


@pytest.mark.engines
def test_the_page_on_any_system_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("SPEECHLAB_STORE", str(tmp_path))
    names = {}
    for page in ("any-system.md", "vendors.md"):
        run_page(page, names)
    assert names["mine"].transcribe(([0.9] * 800, 8_000)).text == "loud"
    assert names["report"].summary.set_index("system")["wer"].to_dict() == {"week 1": 0.25, "week 2": 0.0}
    systems = ["mine", "whisper", "hugging_face", "sherpa", "sherpa_live", "whisper_live", "lessac"]
    systems += ["azure", "google", "eleven_labs", "deepgram"]
    for name in systems:
        assert isinstance(names[name], sl.Client)
        names[name].identity()  # known without the model
    engine = sl.engines.create("whisper")
    engine.find_model()
    names["MODEL"] = str(sl.engines.ModelStore().root / engine.model)
    recording = sl.datasets.zh_speech().sort_values("duration_s").iloc[0]
    heard = names["whisper"].transcribe(recording["audio"], language="zh", hotwords=["天气"])

    def error_rate(found):
        return sl.metrics.error_rate([recording["text"]], [found.text], unit="char", language="zh").rate

    assert error_rate(heard) < 0.5
    assert heard.language == "zh"
    assert len(heard.segments)
    assert heard.words["confidence"].between(0, 1).all()
    assert heard.words["end"].max() <= recording["duration_s"] + 1
    clip = sl.AudioClip.from_file(recording["audio"])
    how = {"version": "1", "sample_rate": 16_000, "piece_s": 4.0, "playback_rate": None}
    with names["sl"].system("live", transcribe_stream=names["LiveWhisper"], **how) as live:
        streamed = live.transcribe(clip, language="zh", stream=True)
    assert error_rate(streamed) < 0.5
    assert len(streamed.partials) > 1
    for name in systems:
        names[name].close()
