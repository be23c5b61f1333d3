"""A watched set: a change that was planted is found, others are not, and both ends can be heard."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evaluate.test_verify import sentences
from speechlab import AudioClip, evaluate, system
from speechlab.errors import InvalidRequestError, StoreError
from support.planted import hear_anew

pytestmark = pytest.mark.slow


def nights(rates, count=40, seed=1):
    """Reports of one set: two systems, of which the second has these rates of errors; the first always the first."""
    random = np.random.default_rng(seed)
    rows = sentences(count).assign(language="de")

    def heard(rate):
        spoil = lambda text: " ".join("wrong" if random.random() < rate else word for word in text.split())  # noqa: E731
        return [spoil(text) for text in rows["text"]]

    first = evaluate.recognition(None, rows, hypotheses={"one": "one", "other": "other"})
    for rate in rates:
        yield hear_anew(first, [*heard(rates[0]), *heard(rate)])


@pytest.fixture(scope="module")
def doubled():
    return list(nights([0.08] * 4 + [0.3] * 2, count=30))


def test_a_change_that_was_planted_is_found_in_its_series_alone(doubled):
    watch = evaluate.watch(doubled)
    worse = watch.summary[watch.summary["changed"]]
    assert worse[["group", "measure"]].values.tolist() == [["other, de", "error rate"]]
    assert worse["alarm"].iloc[0] in {5, 6}
    assert watch.conclusion.text == "The error rate of other in German has been higher since about run 5."
    series = watch.tables["series"]
    assert len(series) == 6 * len(watch.summary)
    counts = [one.table.query("system == 'other'")[["errors", "reference_length"]].sum() for one in doubled]
    rates = [count["errors"] / count["reference_length"] for count in counts]
    assert series.loc[series["group"] == "other, de", "value"].tolist() == pytest.approx(rates)
    assert not evaluate.watch(doubled[:4]).summary["changed"].any()


def test_alarms_wait_for_the_evidence_of_all_series_together(doubled):
    watch = evaluate.watch(doubled[:3])
    assert watch.summary["needed"].tolist() == [len(watch.summary) / 0.05] * 3
    assert "At most 5%" in watch.answer
    assert watch.conclusion.text == "Nothing is shown to have become worse in 3 runs."
    assert watch.conclusion.certainty.startswith("Nearest to an alarm: error rate of ")
    assert "Ville" in watch.methods().text


def test_rows_of_the_first_and_newest_run_stand_together(doubled):
    rows = evaluate.watch(doubled).table
    assert rows["run"].tolist() == ["first", "newest"] * 60
    assert rows["text"].iloc[::2].tolist() == rows["text"].iloc[1::2].tolist()
    by = (rows["errors"].iloc[1::2].to_numpy() - rows["errors"].iloc[::2].to_numpy()).tolist()
    assert list(map(abs, by)) == sorted(map(abs, by), reverse=True)
    assert by[0] > 2
    alone = evaluate.watch(doubled[:1])
    assert alone.table["run"].unique().tolist() == ["newest"]
    assert alone.conclusion.text == "This is the first run."


def test_both_sounds_are_in_the_page_that_proves_itself(tmp_path):
    rows = pd.DataFrame({"text": ["ten cats", "two dogs"], "language": "en"})
    scored = evaluate.recognition(None, rows.assign(heard=rows["text"]), hypotheses="heard").table
    for height in (220, 330):
        tone = AudioClip(0.3 * np.sin(2 * np.pi * height * np.arange(8_000) / 16_000), 16_000)
        table = scored.assign(audio=[tone] * 2, duration_s=0.5, voice="ada", voice_name="ada")
        replace(evaluate.Report.of_scores("Nights", table), drawings=()).save(tmp_path / "runs" / str(height))
    page = evaluate.watch(tmp_path / "runs").save(tmp_path / "page.html")
    assert page.read_text("utf-8").count("T2dnUw") >= 4  # beginnings of sounds in Ogg
    assert evaluate.verify(page)


def test_times_count_as_one_value_for_each_run():
    random, runs = np.random.default_rng(3), []
    report = next(nights([0.1], count=4))
    for night in range(32):
        slow = 3.0 if night >= 20 else 1.0
        calls = pd.DataFrame({"system": ["one"] * 4 + ["other"] * 4, "language": "de", "error": None})
        calls["total_s"] = random.uniform(0.9, 1.1) * np.array([1.0] * 4 + [slow] * 4)
        runs.append(evaluate.Report.of(replace(report, speed=calls)))
    watch = evaluate.watch(runs)
    worse = watch.summary[watch.summary["changed"]]
    assert worse["measure"].tolist() == ["time to the end"]
    assert worse["group"].tolist() == ["other, de"]
    assert worse["unit"].tolist() == ["ratio"]
    assert worse["now"].iloc[0] > 2


def test_other_rows_other_studies_and_no_runs_are_refused(doubled, tmp_path):
    other = next(nights([0.1], count=31))
    with pytest.raises(InvalidRequestError, match="run 2 has 2 rows that the first has not"):
        evaluate.watch([doubled[0], other])
    with pytest.raises(InvalidRequestError, match="of one study"):
        evaluate.watch([doubled[0], doubled[1].compare(doubled[0])])
    with pytest.raises(InvalidRequestError, match="there is no run"):
        evaluate.watch(tmp_path)
    with pytest.raises(StoreError):
        evaluate.watch([tmp_path])


def test_translations_of_a_service_are_watched(tmp_path):
    """Their rows have the keys of calls, which those of outputs that exist have not."""
    rows = pd.DataFrame(
        {"text": ["one", "two"], "reference": ["ONE", "TWO"], "source_lang": "en", "target_lang": "ja"}
    )
    with system("upper", translate=str.upper, version="1") as lab:
        how = {"store": tmp_path, "progress": False}
        watch = evaluate.watch([evaluate.translation(lab, rows, **how) for _ in range(2)])
    assert watch.table["translation"].tolist() == ["ONE", "ONE", "TWO", "TWO"]
