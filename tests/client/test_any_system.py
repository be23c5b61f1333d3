"""The page on any system runs, with a real model where its weights are bundled; recipes of vendors load nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import speechlab as sl

PAGE = Path(__file__).parents[2] / "docs" / "any-system.md"


def whisper_folder() -> Path:
    engine = sl.engines.create("whisper")
    engine.find_model()
    return sl.engines.ModelStore().root / engine.model


@pytest.mark.engines
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("SPEECHLAB_STORE", str(tmp_path))
    names = {}
    for page in (PAGE, PAGE.with_name("vendors.md")):
        for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            exec(compile(block, str(page), "exec"), names)
    assert names["mine"].transcribe(([0.9] * 800, 8_000)).text == "loud"
    assert names["report"].summary.set_index("system")["wer"].to_dict() == {"week 1": 0.25, "week 2": 0.0}
    systems = (
        "mine",
        "whisper",
        "hugging_face",
        "sherpa",
        "sherpa_live",
        "whisper_live",
        "lessac",
        "azure",
        "google",
        "eleven_labs",
        "deepgram",
    )
    for name in systems:
        assert isinstance(names[name], sl.Client)
        names[name].identity()  # known without the model
    names["MODEL"] = str(whisper_folder())
    recording = sl.datasets.zh_speech().sort_values("duration_s").iloc[0]
    heard = names["whisper"].transcribe(recording["audio"], language="zh", hotwords=["天气"])
    assert sl.metrics.error_rate([recording["text"]], [heard.text], unit="char", language="zh").rate < 0.5
    assert heard.language == "zh"
    assert len(heard.segments)
    assert heard.words["confidence"].between(0, 1).all()
    assert heard.words["end"].max() <= recording["duration_s"] + 1
    clip = sl.AudioClip.from_file(recording["audio"])
    with names["sl"].system(
        "live",
        transcribe_stream=names["LiveWhisper"],
        version="1",
        sample_rate=16_000,
        piece_s=4.0,
        playback_rate=None,
    ) as live:
        streamed = live.transcribe(clip, language="zh", stream=True)
    assert sl.metrics.error_rate([recording["text"]], [streamed.text], unit="char", language="zh").rate < 0.5
    assert len(streamed.partials) > 1
    for name in systems:
        names[name].close()
