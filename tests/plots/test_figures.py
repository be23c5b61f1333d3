"""Figures of scores and measures: what is drawn where, in any script and in gray, and what is refused."""

import doctest
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import rc_context
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from speechlab import metrics, plots, segments
from speechlab.errors import InvalidRequestError
from speechlab.metrics import judge

SAID = ["the cat sat", "a dog ran", "birds sing", "三時に会議", "精度が高い"] * 6
HEARD = {
    "kokoro: jf_$alpha$": SAID,
    "hibari: 芽衣": [text.replace("cat", "hat").replace("精度", "制度") for text in SAID],
    "晓晓": [text.replace("the", "").replace("ran", "run fast").replace("会議", "会話") for text in SAID],
}


def scored(name, chosen=("en", "ja")):
    columns = {"text": SAID, "hypothesis": HEARD[name], "language": ["en", "en", "en", "ja", "ja"] * 6}
    frame = pd.DataFrame(columns).assign(
        duration_s=np.linspace(1, 7, len(SAID)), latency_s=np.linspace(0.1, 0.9, len(SAID))
    )
    return metrics.score(frame[frame["language"].isin(chosen)])


@pytest.fixture(scope="module")
def rows():
    return pd.concat([scored(name).assign(voice=name) for name in HEARD], ignore_index=True)


@pytest.fixture(scope="module")
def summary(rows):
    return metrics.summarize(rows, by="voice", draws=200)


@pytest.fixture(scope="module")
def drawn(rows, summary):
    english = rows[rows["language"] == "en"]
    bins = metrics.by_bins(english, "duration_s", bins=3, draws=200)
    systems = {name: scored(name, ("en",)) for name in HEARD}
    return {
        "rates": plots.error_rates(summary),
        "several": plots.error_rates(summary.query("unit == 'char'"), rates=["cer", "reading_cer"]),
        "differences": plots.differences(metrics.compare(systems, draws=200)),
        "bins": plots.error_by_measure(bins),
        "lines": plots.error_by_measure(
            pd.concat([bins.assign(voice="芽衣"), bins.assign(voice="b")]), by="voice"
        ),
        "spread": plots.distributions(rows, by="voice", line=0.5),
        "confusions": plots.confusions(metrics.confusions(rows), unit="word"),
        "translation": plots.translation_scores(
            pd.DataFrame({"language": ["日本語", "en"], "chrf": [51.3, None], "utterances": [3, 0]})
        ),
    }


def rows_of(axes):
    """Names of rows with their notes."""
    names = [label.get_text() for label in axes.get_yticklabels()]
    return dict(zip(names, [text.get_text() for text in axes.texts], strict=True))


@pytest.mark.slow
def test_units_have_panels_and_groups_have_rows(drawn, summary):
    characters, words = drawn["rates"].axes
    assert (characters.get_xlabel(), words.get_xlabel()) == ("character error rate", "word error rate")
    notes = rows_of(words)
    assert list(notes) == summary.query("unit == 'word'")["voice"].tolist()
    assert (notes["kokoro: jf_$alpha$"], notes["hibari: 芽衣"]) == ("0.0%, n = 18", "12.5%, n = 18")
    points = np.concatenate([line.get_xdata() for line in words.lines])
    assert sorted(points) == pytest.approx(sorted(summary.query("unit == 'word'")["error_rate"]))
    (lines,) = words.collections
    drawn_ends = [tuple(path.vertices[:, 0]) for path in lines.get_paths()]
    wanted = summary.query("unit == 'word'")[["error_rate_low", "error_rate_high"]].to_numpy(dtype=float)
    assert np.array(drawn_ends) == pytest.approx(wanted)
    few = summary.query("unit == 'word'").assign(error_rate_low=pd.NA, error_rate_high=pd.NA)
    few.loc[few.index[0], ["error_rate", "utterances_scored"]] = [pd.NA, 0]
    first, *others = rows_of(plots.error_rates(few, by="voice").axes[0]).values()
    assert first == "–, n = 0"
    assert all(note.endswith("range unknown") for note in others)


RATE = {"measure": "error rate", "unit": "word", "n": 9}


def test_rates_scores_and_times_have_panels_of_their_own():
    rows = [
        {**RATE, "a": "one", "b": "two", "difference": 0.05, "p": 0.01},
        {"a": "one", "b": "two", "measure": "chrF", "unit": "points", "n": 9, "difference": 2.0, "p": 0.5},
        {"a": "one", "b": "two", "measure": "time", "unit": "ratio", "n": 9, "difference": 1.5, "p": None},
    ]
    panels = [rows_of(axes)["two against one"] for axes in plots.differences(judge(rows, by="measure")).axes]
    assert panels == ["+5.0 points, p = 0.010", "+2.0 points, p = 0.500", "× 1.50, no test"]


def test_significant_differences_are_full_and_others_empty():
    rows = [
        {"a": "one", "b": "two", "difference": 0.05, "low": 0.02, "high": 0.08, "p": 0.0002},
        {"a": "one", "b": "three", "difference": -0.01, "low": -0.03, "high": 0.01, "p": 0.4},
    ]
    (axes,) = plots.differences(judge([{**RATE, **row} for row in rows], by="b")).axes
    assert rows_of(axes) == {
        "two against one": "+5.0 points, p < 0.001",
        "three against one": "−1.0 points, p = 0.400",
    }
    faces = {round(line.get_xdata()[0], 6): line.get_markerfacecolor() for line in axes.lines[:2]}
    assert faces[-1.0] == "#ffffff" != faces[5.0]


def test_rows_that_are_not_highlighted_are_gray():
    table = pd.DataFrame(
        {"system": ["one", "two"], "unit": "word", "utterances_scored": 9, "error_rate": [0.1, 0.3]}
    )
    lines = plots.error_rates(table, highlight=[True, False]).axes[0].lines
    drawn = [line for line in lines if len(line.get_xdata()) and np.isfinite(line.get_xdata()).any()]
    highlighted, other = (line.get_color() for line in drawn)
    assert (highlighted != other, other) == (True, "#8a8a8a")
    with pytest.raises(InvalidRequestError, match="highlight"):
        plots.translation_scores(table.assign(chrf=50.0), by="system", highlight=[True])


def test_a_figure_is_drawn_in_axes_of_the_user(rows, summary):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    calls = pd.DataFrame({"voice": ["a", "b"], "latency_s": [0.2, 0.5]})
    assert plots.distributions(calls, by="voice", ax=left) is figure
    assert [text.get_text() for text in left.texts] == ["median 0.2 s, n = 1", "median 0.5 s, n = 1"]
    assert not right.texts
    with pytest.raises(InvalidRequestError, match="2 panels, and ax is one"):
        plots.error_rates(summary, ax=right)  # of words and of characters


def test_dark_styles_are_readable():
    calls = pd.DataFrame({"voice": ["a", "b"], "latency_s": [0.2, 0.5]})
    with rc_context({"axes.facecolor": "black"}):
        (axes,) = plots.distributions(calls, by="voice").axes
    assert all(sum(to_rgb(text.get_color())) > 2 for text in axes.texts)


def test_bins_stand_at_their_means_with_their_edges(drawn):
    (axes,) = drawn["bins"].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("length (s)", "word error rate")
    assert [text.get_text() for text in axes.texts] == ["n = 18"] * 3
    assert axes.get_ylim()[0] == 0
    named = drawn["lines"].axes[0]
    assert [text.get_text() for text in named.texts] == ["芽衣", "b"]
    styles = {(line.get_marker(), line.get_linestyle()) for line in named.lines}
    assert len(styles) == 2  # told apart without color


def test_spreads_have_all_values_and_their_median(drawn, rows):
    (axes,) = drawn["spread"].axes
    assert rows_of(axes)["晓晓"] == "median 0.5 s, n = 30"
    points = [line.get_xdata() for line in axes.lines if line.get_marker() == "o"]
    assert sum(map(len, points)) == len(rows)
    with_gaps = pd.DataFrame({"voice": ["a", "a", None], "latency_s": [1.0, None, 2.0]})
    logarithmic = plots.distributions(with_gaps, by="voice", log=True).axes[0]
    assert rows_of(logarithmic) == {"a": "median 1 s, n = 1", "–": "median 2 s, n = 1"}
    assert logarithmic.get_xscale() == "log"


def test_confusions_are_a_matrix_of_counts(drawn):
    (axes,) = drawn["confusions"].axes
    columns = [label.get_text() for label in axes.get_xticklabels()]
    said = [label.get_text() for label in axes.get_yticklabels()]
    assert (columns[0], said[0]) == ("∅", "∅")
    found = {
        (said[int(text.get_position()[1])], columns[int(text.get_position()[0])]): text.get_text()
        for text in axes.texts
    }
    assert (found[("cat", "hat")], found[("the", "∅")], sum(map(int, found.values()))) == ("6", "6", 24)


@pytest.mark.slow
def test_figures_are_vectors_with_every_letter(drawn, recwarn):
    for figure in drawn.values():
        assert isinstance(figure, Figure)
        out = BytesIO()
        figure.savefig(out, format="svg")
        assert len(out.getvalue()) > 5_000
        assert b"<image" not in out.getvalue() or figure is drawn["confusions"]
    assert [str(one.message) for one in recwarn] == []


def series(count, of):
    """Markers and dashes of so many series."""
    if of == "lines":
        bins = pd.DataFrame({"duration_s_from": [0, 2], "duration_s_to": [2, 4], "duration_s_mean": [1, 3]})
        rated = bins.assign(
            unit="word", error_rate=0.1, error_rate_low=0.05, error_rate_high=0.2, utterances_scored=9
        )
        tables = [rated.assign(voice=f"v{number}") for number in range(count)]
        lines = plots.error_by_measure(pd.concat(tables), by="voice").axes[0].lines
    elif of == "rates":
        names = [f"rate {number}" for number in range(count)]
        table = pd.DataFrame(
            {"voice": ["a"], "unit": "word", "utterances_scored": 3, **dict.fromkeys(names, 0.1)}
        )
        lines = plots.error_rates(table, rates=names).legends[0].legend_handles
    else:
        figure = plots.listeners(many_listeners(5, [f"s{number:02d}" for number in range(count)]))
        lines = figure.legends[0].legend_handles
    return [(line.get_marker(), line.get_linestyle()) for line in lines]


@pytest.mark.parametrize("of", ["lines", "rates", "systems"])
def test_series_are_told_apart_without_color(of):
    found = series(12, of)
    assert len(set(found)) == len({marker for marker, _ in found}) == 12


def test_scales_make_nothing_large_that_is_not(drawn):
    pair = judge([{**RATE, "a": "one", "b": "two", "difference": -0.0001, "p": 1.0}])
    for difference, note in ((-0.0001, "0.0 points, p = 1.000"), (np.nan, "–, p = 1.000")):
        ends = dict.fromkeys(("difference", "low", "high"), difference)
        (axes,) = plots.differences(pair.assign(**ends)).axes
        assert np.ptp(axes.get_xlim()) >= 2
        assert list(rows_of(axes).values()) == [note]
    scored = pd.DataFrame({"language": ["ja"], "chrf": [40.5]})
    assert np.ptp(plots.translation_scores(scored).axes[0].get_xlim()) >= 10
    (axes,) = drawn["translation"].axes
    assert (axes.get_xlabel(), rows_of(axes)) == ("chrF", {"日本語": "51.3, n = 3", "en": "no score"})


LONG = "とても長い名前の声その一・東京のスタジオで録音された落ち着いた声", "one  two\nthree " * 6, "x" * 200


@pytest.mark.slow
def test_hostile_names_stand_in_the_figure_as_they_are(recwarn):
    names = ["$\\frac{1}{0}$ _x_\t\n<b>", LONG[2], LONG[0]]
    errors = pd.DataFrame({"unit": "word", "operation": "substitution", "reference": names, "count": 3})
    rated = many_listeners(3).assign(listener=np.repeat(names, 2), system=[names[0], names[2]] * 3)
    tiers = {name: segments.frame([(0.0, 1.0, name)], file="a.wav") for name in names}
    for figure in (
        plots.confusions(errors.assign(hypothesis=names[::-1])),
        plots.listeners(rated),
        plots.timeline(tiers),
    ):
        figure.draw_without_rendering()
        axes = figure.axes[-1]
        assert axes.get_position().width > 0.25
        boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert all(figure.bbox.containsx(box.x0) for box in boxes)
        assert any(label.get_text().startswith("$\\frac{1}{0}$") for label in axes.get_yticklabels())
    assert [
        str(one.message) for one in recwarn if "layout" in str(one.message) or "Glyph 9" in str(one.message)
    ] == []


RATED = pd.DataFrame({"listener": ["ann", "bob"], "system": "one", "other": None, "score": ["4", "good"]})
RATED = RATED.assign(method="mos", role="test")
CALLS = pd.DataFrame({"voice": ["a", "b"], "latency_s": [0.0, 1.0], "text": ["x", "y"]})


def test_what_is_refused(rows):
    nothing = metrics.summarize([], [], language="en")
    one = metrics.confusions(["a"], ["a"], language="en")
    for draw, table, given, words in (
        (plots.error_rates, CALLS, {}, "no column .*unit.*summarize"),
        (plots.error_rates, nothing, {}, "no rows"),
        (plots.confusions, one, {}, "no rows"),
        (plots.confusions, metrics.confusions(rows), {}, r"choose one, as in unit="),
        (plots.distributions, CALLS, {"column": "text"}, "must hold numbers"),
        (plots.distributions, CALLS, {"log": True}, "logarithmic"),
        (plots.distributions, CALLS.assign(latency_s=np.nan), {}, "no row has a value"),
        (plots.distributions, CALLS, {"by": "speaker"}, "no column 'speaker'"),
        (plots.listeners, RATED, {}, "must hold numbers"),
        (plots.listeners, RATED.head(0), {}, "has no rows"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            draw(table, **given)


def many_listeners(count, systems=("one", "two")):
    """The first rates all high, the second turns the scale round, all others agree; every tenth is excluded."""
    cells = [(number, system, place) for number in range(count) for place, system in enumerate(systems)]
    table = pd.DataFrame(cells, columns=["listener", "system", "score"])
    table["score"] += 2.0
    table.loc[table["listener"] == 0, "score"] = 5.0
    table.loc[table["listener"] == 1, "score"] = 5.0 - table.loc[table["listener"] == 1, "score"]
    table["excluded"] = np.where(table["listener"] % 10 == 9, "attention: 1 of 1 checks failed", "")
    return table.assign(listener="l" + table["listener"].astype(str), other=None, method="mos", role="test")


@pytest.mark.slow
def test_of_many_listeners_those_far_from_others_have_rows():
    names = {}
    for count in (3, 300):
        figure = plots.listeners(many_listeners(count))
        (axes,) = figure.axes
        names[count] = [label.get_text() for label in axes.get_yticklabels()]
        assert figure.get_size_inches()[1] < 13
        figure.to_svg()
    assert (len(names[3]), len(names[300])) == (3, 41)
    assert {"l0", "l1"} <= set(names[300])
    assert names[300][-1] == "260 others"
    assert "nearer to the means; 20 excluded" in [text.get_text() for text in axes.texts]
    name = "of a name that is much longer than any legend can be in a figure"
    figure = plots.listeners(many_listeners(5, [f"{number:02d} {name}" for number in range(30)]))
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert (len(texts), max(map(len, texts)) <= 60) == (12, True)
    assert figure.axes[0].get_xlabel() == "mean opinion score, the first 12 of 30 systems"


def test_the_examples_of_the_guide_run():
    guide = Path(__file__).parents[2] / "docs" / "plots.md"
    result = doctest.testfile(str(guide), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert (result.attempted > 4, result.failed) == (True, 0)


def test_a_reliability_diagram_has_a_bar_for_each_bin():
    words = pd.DataFrame({"correct": [True, False, True, True], "confidence": [0.15, 0.15, 0.95, 0.85]})
    (axes,) = plots.reliability(metrics.calibration(words)).axes
    assert [bar.get_height() for bar in axes.patches] == [0.5, 1.0, 1.0]
    assert [text.get_text() for text in axes.texts] == ["2", "1", "1"]
    assert axes.lines[1].get_xdata().tolist() == pytest.approx([0.15, 0.85, 0.95])
    assert axes.get_title(loc="left") == "ECE 0.225, n = 4"


def test_a_figure_for_a_phone_has_letters_of_one_size():
    rates = {"error_rate": [0.1, 0.2], "error_rate_low": [0.05, 0.1], "error_rate_high": [0.2, 0.3]}
    rows = pd.DataFrame({"voice": ["a voice with a name of many words", "b"], **rates})
    rows = rows.assign(unit="word", utterances_scored=30)
    figure = plots.error_rates(rows, "voice")
    wide, phone = figure.to_svg(), figure.to_phone_svg()
    widths = [float(re.search(rb'width="([\d.]+)pt"', one)[1]) for one in (wide, phone)]
    assert widths[1] == pytest.approx(3.9 * 72)
    assert widths[0] > 1.5 * widths[1]
    (axes,) = figure.axes
    notes = [text for text in axes.texts if text.get_text()]
    assert notes
    assert not any(text.get_visible() for text in notes)
    names = axes.get_yticklabels()
    assert {label.get_fontsize() for label in names} == {8.0}
    assert "\n" in names[0].get_text()
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    edges = [one.get_window_extent(renderer) for one in (*names, axes)]
    assert min(box.x0 for box in edges) >= 0
    assert max(box.x1 for box in edges) <= 3.9 * figure.dpi
