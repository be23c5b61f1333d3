"""The figure of segments: what is drawn where, without pyplot, with any script, and what is refused."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from speechlab import plots, segments
from speechlab.audio import AudioClip
from speechlab.errors import AudioError, InvalidRequestError, SegmentError

SAID = segments.frame([(0.5, 2.0, "早上好，大家好。"), (3.0, 5.0, "see $you$ <b>_then_</b>")], file="a.wav")


def tone(seconds=6.0, hz=1_000, rate=16_000):
    at = np.arange(int(seconds * rate)) / rate
    return AudioClip((0.5 * np.sin(2 * np.pi * hz * at) * (at < 3)).astype(np.float32), rate)


def bars(axes):
    return [
        (round(one.get_x(), 6), round(one.get_x() + one.get_width(), 6), one.get_y())
        for one in axes.patches
        if isinstance(one, Rectangle)
    ]


@pytest.mark.slow
def test_each_panel_has_what_it_says():
    found = segments.frame([(0.4, 2.4, "one"), (2.0, 3.0, "overlaps"), (4.0, 4.0, "instant")], file="a.wav")
    figure = plots.timeline({"reference": SAID, "found": found}, tone())
    wave, spectrum, tiers = figure.axes
    assert {axes.get_xlim() for axes in figure.axes} == {(0.0, 6.0)}
    assert wave.get_ylim()[1] == pytest.approx(0.525, abs=0.01)
    (image,) = spectrum.get_images()
    levels = np.asarray(image.get_array())
    peak = levels[:, : levels.shape[1] // 3].mean(axis=1).argmax() / levels.shape[0] * image.get_extent()[3]
    assert peak == pytest.approx(1.0, abs=0.1)  # kHz
    assert [label.get_text() for label in tiers.get_yticklabels()] == ["reference", "found"]
    drawn = bars(tiers)
    assert [bar[:2] for bar in drawn] == [(0.5, 2.0), (3.0, 5.0), (0.4, 2.4), (2.0, 3.0), (4.0, 4.0)]
    heights = [bar[2] for bar in drawn]
    assert heights[0] == heights[1] > heights[2] == heights[4] > heights[3]


def test_texts_are_texts_and_stay_in_their_bars():
    long = "a sentence that is far too long for its bar, and so is shortened somewhere in here"
    crowded = segments.frame(
        [(0, 1, long), (1, 1.02, "gone"), (2, 6, "今日は天気がいいですね")], file="a.wav"
    )
    figure = plots.timeline({"said": SAID, "crowded": crowded}, width=5)
    axes = figure.axes[-1]
    texts = [text.get_text() for text in axes.texts]
    assert texts[1] == "see $you$ <b>_then_</b>"
    assert texts[2].endswith("…")
    assert len(texts) == 4  # in a bar of a few pixels there is none
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    for text, (left, right, _) in zip(axes.texts, [bar for bar in bars(axes) if bar[0] != 1], strict=True):
        box = text.get_window_extent(renderer).transformed(axes.transData.inverted())
        assert left <= box.x0 < box.x1 <= right
        assert box.height < 1


def test_a_stretch_is_cut_out():
    figure = plots.timeline(SAID, tone(), start=1.0, end=4.0, spectrogram=False)
    assert (len(figure.axes), figure.axes[1].get_xlim()) == (2, (1.0, 4.0))
    assert [bar[:2] for bar in bars(figure.axes[1])] == [(1.0, 2.0), (3.0, 4.0)]
    assert len(plots.timeline({}, tone()).axes) == 2
    assert len(plots.timeline({"none": segments.frame([])}, tone(0.001)).axes) == 3


def test_the_figure_reads_in_gray_with_every_letter(recwarn):
    figure = plots.timeline(SAID, language="ja")
    bar = figure.axes[0].patches[0]
    light = [
        float(np.dot(to_rgb(color), (0.299, 0.587, 0.114))) for color in ("#1a1a1a", bar.get_facecolor())
    ]
    assert light[1] - light[0] > 0.5
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert [str(one.message) for one in recwarn] == []  # matplotlib warns of a glyph that is missing


@pytest.mark.parametrize(
    ("error", "tiers", "given"),
    [
        (SegmentError, SAID.assign(file=["a", "b"]), {}),  # several recordings
        (InvalidRequestError, segments.frame([]), {}),
        (InvalidRequestError, SAID, {"start": 5.0}),
        (AudioError, SAID, {"audio": b"no sound"}),
    ],
)
def test_what_is_refused(error, tiers, given):
    with pytest.raises(error):
        plots.timeline(tiers, **given)
