"""The guide runs, from its first block to its last, on the real service; and its table of formats is the code's."""

import os
import re
import shutil
from pathlib import Path

import pytest

from speechlab import segments

GUIDE = Path(__file__).parents[2] / "docs" / "segments.md"


@pytest.mark.engines
def test_the_guide_runs(live_service, monkeypatch, tmp_path):
    monkeypatch.setenv("SPEECHLAB_BASE_URL", live_service.base_url)
    monkeypatch.setenv("SPEECHLAB_API_KEY", live_service.api_key)
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL):
        exec(compile(block, str(GUIDE), "exec"), names)
        if "first" not in names and "figure" in names:
            first = names["first"] = {name: names[name] for name in ("found", "score", "words", "marked")}
    assert names["aligned"]["overlap_s"].min() > 0.5
    assert len(names["silences"]) >= 2
    assert [round(clip.duration_s, 2) for clip in names["sounds"]] == [
        round(row.end - row.start, 2) for row in names["reference"].itertuples()
    ]
    times = ["start", "end"]
    assert names["derived"][times].to_numpy() == pytest.approx(names["found"][times].to_numpy(), abs=0.0021)
    assert len(names["unmerged"]) == len(names["speech"]) == 3
    strict, lenient = names["score"].detection, names["score"].lenient
    assert 0 < strict.detection_error_rate < 0.5
    assert lenient.detection_error_rate < strict.detection_error_rate
    assert names["padded"].detection.false_alarm_s > strict.false_alarm_s
    assert names["words"].rate < 0.3
    assert names["done"].dropped == ("file",)
    again = names["again"].replace("\n", " ", regex=True)
    assert again["text"].str.cat(sep=" ") == names["found"]["text"].str.cat(sep=" ")
    assert again["end"].iloc[-1] == pytest.approx(names["found"]["end"].iloc[-1], abs=0.0006)
    assert names["shown"]["text"].str.len().max() <= 30
    subtitles = segments.read(tmp_path / "recording.srt")
    assert subtitles["text"].str.cat().replace("\n", "") == first["found"]["text"].str.cat()
    assert first["score"].detection.miss_s < 0.3
    assert first["words"].rate < 0.35
    assert (tmp_path / "recording.png").stat().st_size > 20_000
    assert (tmp_path / "talk.pdf").stat().st_size > 5_000
    if folder := os.environ.get("GUIDE_PICTURES"):  # an absolute path
        shutil.copy(tmp_path / "recording.png", Path(folder, "segments.png"))
    names["lab"].close()


def test_the_guide_lists_the_formats():
    row = r"(?m)^\| (`[a-z]+`(?:, `[a-z]+`)*) \| `\.[^|]* \| (exact|[\d.]+ [mµ]s) \| (one|many) \|"
    listed = re.findall(row, GUIDE.read_text("utf-8"))
    known = segments.formats().set_index("format")
    found = {}
    for names, times, recordings in listed:
        for name in re.findall(r"\w+", names):
            found[name] = (times, recordings)
    assert set(found) == set(known.index)
    words = {0.0: "exact", 1e-6: "1 µs", 1e-4: "0.1 ms", 1e-3: "1 ms", 1e-2: "10 ms"}
    for name, (times, recordings) in found.items():
        assert (times, recordings) == (words[known.loc[name, "precision_s"]], known.loc[name, "recordings"])
