"""Tables of polars go in at every door as those of pandas do."""

import pandas as pd
import pytest

import speechlab as sl
from speechlab import metrics

pl = pytest.importorskip("polars")

ROWS = {
    "text": ["one cat sat", "two cats", "three"],
    "hypothesis": ["one hat sat", "two cats", "tree"],
    "other": ["one cat sat", "two hats", "three"],
    "language": ["en"] * 3,
    "group": ["a", "b", "b"],
    "start": [0.0, 1.0, 2.0],
    "end": [1.0, 2.0, 3.0],
}
PANDAS, POLARS = pd.DataFrame(ROWS), pl.DataFrame(ROWS)
NAMES = {"reference": "text", "hypothesis": "hypothesis"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "door",
    [
        lambda table: metrics.error_rate(table, **NAMES, language="en").rate,
        lambda table: metrics.error_rate(table["text"], table["hypothesis"], language="en").rate,
        lambda table: metrics.score(table, **NAMES, language="en")["errors"].tolist(),
        lambda table: metrics.glossary_terms(table, glossary=["cat"], **NAMES)["missed"].tolist(),
        lambda table: metrics.timed_error_rate(table, table).errors,
        lambda table: sl.segments.frame(table)["text"].tolist(),
        lambda table: sl.datasets.sample(table, 2, by="group")["text"].tolist(),
        sl.datasets.row_keys,
    ],
)
def test_a_door_gives_the_same_for_both(door):
    assert door(POLARS) == door(PANDAS)
    assert door(POLARS.lazy().collect()) == door(PANDAS)


@pytest.mark.slow
def test_tables_and_columns_know_speech():
    lab = sl.system("upper", translate=lambda text, **_: text.upper(), version="1")
    options = {"source_lang": "en", "target_lang": "ja", "progress": False}
    done = POLARS.speech.translate(lab, **options)
    assert isinstance(done, pl.DataFrame)
    assert done["translation"].to_list() == [text.upper() for text in ROWS["text"]]
    assert (
        POLARS["text"].speech.translate(lab, **options)["translation"].to_list()
        == done["translation"].to_list()
    )
    assert POLARS.lazy().speech.translate(lab, **options)["status"].to_list() == ["cached"] * 3


@pytest.mark.slow
def test_studies_and_widgets_take_them():
    clip = sl.AudioClip([0.0, 0.1] * 400, 8_000)
    lab = sl.system("one", transcribe=lambda clip: "one cat sat", version="1")
    table = POLARS.select("text", "language").with_columns(
        pl.Series("audio", [{"bytes": clip.encode("wav"), "path": None}] * 3)
    )
    assert sl.evaluate.recognition(lab, table, progress=False).table["error_rate"].tolist()[0] == 0.0
    assert len(sl.show(table).frame) == 3
