"""Operations against definitions on a grid of microseconds, or of tenths of a second."""

import math
import random
import re
import unicodedata

import numpy as np
import pandas as pd
import pytest

from speechlab import datasets, segments
from speechlab.audio import AudioClip
from speechlab.errors import SegmentError
from support.segment_tables import list_lines, make_table

CELLS = 80
RECORDINGS = 40


def to_grid(rows, file):
    """How many segments, as tuples in tenths of a second, cover each tenth of a second."""
    depth = np.zeros(CELLS, dtype=int)
    for name, start, end in rows:
        if name == file:
            depth[start:end] += 1
    return depth


def make_extents():
    """Return extents of each kind: one length, the length of each recording, and stretches of it."""
    lengths = np.random.default_rng(7).integers(0, 71, RECORDINGS) / 10
    files = [f"ü {number}.wav" for number in range(RECORDINGS)]
    stretches = make_table(8, most=6, instants=False)
    missing = pd.DataFrame({"file": sorted(set(files) - set(stretches["file"])), "start": 0.0, "end": 0.1})
    return [6.5, 0.0, dict(zip(files, lengths.tolist(), strict=True)), pd.concat([stretches, missing])]


def to_extent_grid(extent, file):
    if isinstance(extent, pd.DataFrame):
        return to_grid(list_lines(extent), file) > 0
    length = extent[file] if isinstance(extent, dict) else extent
    return np.arange(CELLS) < round(length * 10)


def list_pieces(table, rows):
    """The pieces that an operation left of each row, as tuples, by the number in the column ``row``."""
    pieces = [[] for _ in rows]
    for number, piece in zip(table["row"].tolist(), list_lines(table), strict=True):
        pieces[number].append(piece)
    return pieces


def test_gaps_and_coverage_share_the_extent():
    table = make_table(1)
    rows = list_lines(table)
    for extent in make_extents():
        silent, covered = segments.gaps(table, extent), segments.coverage(table, extent)
        assert set(covered["file"]) >= set(table["file"])
        silences = list_lines(silent)
        for row in covered.to_dict("records"):
            file = row["file"]
            depth, inside = to_grid(rows, file), to_extent_grid(extent, file)
            assert (to_grid(silences, file) == (inside & (depth == 0))).all(), file
            assert row["extent_s"] == pytest.approx(inside.sum() / 10), file
            assert row["covered_s"] == pytest.approx((inside & (depth > 0)).sum() / 10), file
            assert row["overlapped_s"] == pytest.approx((inside & (depth > 1)).sum() / 10), file
            assert row["total_s"] == pytest.approx((inside * depth).sum() / 10), file
            assert row["segments"] == sum(name == file for name, _, _ in rows)
        assert len(segments.overlap_join(silent, silent)) == len(silent)


def test_an_extent_covers_all_recordings():
    table = segments.frame([(0.0, 1.0), (0.5, 2.0), (1.0, 2.000001)], file="a")
    for change in (segments.gaps, segments.crop, segments.coverage, segments.check_extent):
        with pytest.raises(SegmentError, match="the extent lacks 1 recordings: 'a'"):
            change(table, {"b": 1.0})
    assert segments.coverage(table, {"a": 1.0, "b": 2.0})["file"].tolist() == ["a", "b"]
    segments.check_extent(table, {"a": 2.000001, "b": 1.0})
    with pytest.raises(SegmentError, match=r"row 2 ends at 2.000001 s, but 'a' is only 2 s long") as caught:
        segments.check_extent(table, 2.0)
    assert caught.value.rows == (2,)


def test_gaps_without_an_extent_lie_between_segments():
    table = make_table(2, instants=False)
    rows, silences = list_lines(table), list_lines(segments.gaps(table))
    assert len(silences) > 20
    for file in set(table["file"]):
        covered = np.flatnonzero(to_grid(rows, file))
        between = (np.arange(CELLS) > covered.min()) & (np.arange(CELLS) < covered.max())
        assert (to_grid(silences, file) == (between & (to_grid(rows, file) == 0))).all(), file


@pytest.mark.slow
@pytest.mark.parametrize("tenths", [0, 1, 4])
def test_merge_and_split(tenths):
    gap, table = tenths / 10, make_table(tenths)
    merged, parts = list_lines(segments.merge(table, gap)), segments.split(table, gap).tolist()
    everything = list_lines(table)
    for file in {row[0] for row in everything}:
        rows = sorted(row[1:] for row in everything if row[0] == file)
        wanted = []
        for start, end in rows:
            if wanted and start - wanted[-1][1] <= tenths:
                wanted[-1][1] = max(wanted[-1][1], end)
            else:
                wanted.append([start, end])
        assert [[start, end] for name, start, end in merged if name == file] == wanted, file
        number, latest, numbers = 0, None, {}
        for start, end in rows:
            if latest is not None and start - latest >= tenths:
                number += 1
            latest = end if latest is None else max(latest, end)
            numbers.setdefault((start, end), set()).add(number)
        for row, part in zip(everything, parts, strict=True):
            assert row[0] != file or part in numbers[row[1:]], file


def test_what_merged_segments_say():
    table = segments.frame(
        [
            {"start": 2.0, "end": 4.0, "text": "two", "speaker": "a", "confidence": 0.2, "source": "x"},
            {"start": 0.0, "end": 1.0, "text": "one", "speaker": "a", "confidence": 0.8, "source": "y"},
            {"start": 9.0, "end": 9.5, "text": "三", "speaker": "b", "confidence": None, "source": "x"},
            {"start": 9.5, "end": 9.6, "text": "時に", "speaker": "b", "confidence": 0.5, "source": "x"},
        ],
        file="f",
    ).assign(mine=1)
    merged = segments.merge(table, gap=1.0)
    assert list(merged) == ["file", "start", "end", "text", "speaker", "confidence", "source"]
    assert (merged["text"].tolist(), merged["speaker"].tolist()) == (["one two", "三時に"], ["a", "b"])
    assert merged["source"].tolist() == ["", "x"]
    assert merged["confidence"][0] == pytest.approx((0.8 + 2 * 0.2) / 3)
    assert math.isnan(merged["confidence"][1])
    assert len(segments.merge(table, gap=99, by=["speaker"])) == 2


def test_subtract():
    table, other = make_table(4), make_table(5, most=5)
    left = segments.subtract(table.assign(row=np.arange(len(table))), other)
    rows, holes = list_lines(table), list_lines(other)
    for row, pieces in zip(rows, list_pieces(left, rows), strict=True):
        file, start, end = row
        wanted = (to_grid([row], file) > 0) & (to_grid(holes, file) == 0)
        assert {piece[0] for piece in pieces} <= {file}
        assert (to_grid(pieces, file) == wanted).all(), row
        if start == end:
            held = any(name == file and begin <= start < stop for name, begin, stop in holes)
            assert len(pieces) == (0 if held else 1), row
    assert left["row"].is_monotonic_increasing


@pytest.mark.slow
@pytest.mark.parametrize("edges", ["cut", "keep", "drop"])
def test_crop(edges):
    table = make_table(6)
    rows = list_lines(table)
    for extent in make_extents():
        inside_of = {file: to_extent_grid(extent, file) for file in set(table["file"])}
        cropped = segments.crop(table.assign(row=np.arange(len(table))), extent, edges)
        for row, pieces in zip(rows, list_pieces(cropped, rows), strict=True):
            file, start, end = row
            cells, inside = to_grid([row], file) > 0, inside_of[file]
            own = to_grid(pieces, file)
            assert {piece[0] for piece in pieces} <= {file}
            if start == end:
                assert len(pieces) == int(inside[start]), row
            elif edges == "cut":
                assert (own == (cells & inside)).all(), row
            elif edges == "keep":
                assert (own == (cells if (cells & inside).any() else 0)).all(), row
            else:
                assert (own == (cells if not (cells & ~inside).any() else 0)).all(), row


def test_shift():
    table = segments.frame([{"file": "a", "start": 1, "end": 2}, {"file": "b", "start": 0, "end": 1}])
    moved = segments.shift(table, 0.1)
    assert moved[["start", "end"]].to_numpy().tolist() == [[1.1, 2.1], [0.1, 1.1]]
    assert segments.shift(table, {"a": -1, "b": 2})["start"].tolist() == [0.0, 2.0]
    for shift, said in [(-0.5, "row 1 would start at -0.5 s"), ({"a": 1}, "the shift of 'b' is None")]:
        with pytest.raises(SegmentError, match=said):
            segments.shift(table, shift)


def test_resegment():
    said = [
        (0.0, 0.4, "Good"),
        (0.5, 1.0, "morning"),
        (1.9, 2.3, "how"),
        (2.3, 2.5, "are"),
        (9.0, 9.1, "you"),
    ]
    words = segments.frame(said, file="a")
    reference = segments.frame([(2.0, 3.0), (0.0, 1.0), (20.0, 21.0)], file="a")
    made = segments.resegment(words, reference)
    assert made["text"].tolist() == ["how are you", "Good morning", ""]
    assert (made["parts"].tolist(), made["moved_s"].round(6).tolist()) == ([3, 2, 0], [0.2, 0.0, 0.0])
    assert made["start"].tolist() == [2.0, 0.0, 20.0]
    assert segments.resegment(words.iloc[:0], reference)["text"].tolist() == ["", "", ""]
    with pytest.raises(SegmentError, match="the reference has no segment of 1 recordings: 'a'"):
        segments.resegment(words, reference.assign(file="b"))


# -- clips


@pytest.fixture
def ramp():
    return AudioClip(np.linspace(-1, 1, 8000, dtype=np.float32), 8000, title="ramp")


def test_clips(ramp, tmp_path):
    table = segments.frame([(0.25, 0.5), (0.0, 0.1), (1.0, 1.0)], file="x")
    cut = list(segments.clips(table, ramp))
    assert [clip.frames for clip in cut] == [2000, 800, 0]
    assert np.array_equal(cut[0].samples, ramp.samples[2000:4000])
    assert cut[0].title == "x 0.25 to 0.50 s"
    path = tmp_path / "ramp.wav"
    ramp.save(path)
    assert next(segments.clips(table.assign(file=str(path)))) == next(segments.clips(table, path))
    both = segments.frame([{"file": "a", "start": 0, "end": 1}, {"file": "b", "start": 0, "end": 0.5}])
    assert [clip.frames for clip in segments.clips(both, {"a": ramp, "b": path})] == [8000, 4000]


def test_clips_past_the_end_are_refused(ramp):
    late = segments.frame([(0.0, 0.5), (0.5, 1.01)])
    cut = segments.clips(late, ramp)
    assert next(cut).frames == 4000
    with pytest.raises(SegmentError, match=r"row 1 ends at 1.01 s, but '' is only 1 s long") as caught:
        next(cut)
    assert caught.value.rows == (1,)
    two = segments.frame([{"file": "a", "start": 0, "end": 1}, {"file": "b", "start": 0, "end": 0.5}])
    with pytest.raises(SegmentError, match="no recording for 'b'"):
        segments.clips(two, {"a": ramp})


# -- captions

ENGLISH = "It was not so much the loss of the cotton itself, but the fantasy. The hopes, the dreams built around it."
JAPANESE = (
    "日本語をちゃんと聞き取れていますか。これはテストですが、この機械が言葉を聞き取れるかどうかを計ります。"
)


def wide(text):
    return sum(1 + (unicodedata.east_asian_width(one) in "WF") for one in text)


@pytest.mark.parametrize("text", [ENGLISH, JAPANESE, re.sub("[.,]", "", ENGLISH), "今天天气很好" * 30])
@pytest.mark.parametrize(("line_width", "lines"), [(42, 2), (20, 1)])
def test_captions_keep_their_limits_and_all_of_the_text(text, line_width, lines):
    table = segments.frame([{"start": 1.5, "end": 31.25, "text": text, "speaker": "ann", "mine": 1}])
    made = segments.captions(table, line_width=line_width, lines=lines)
    shown = made["text"].str.split("\n")
    assert shown.map(len).max() <= lines
    assert shown.explode().map(wide).max() <= line_width
    assert (made["end"] - made["start"]).max() <= 7.0
    assert (made["start"].iloc[0], made["end"].iloc[-1]) == (1.5, 31.25)
    assert made["start"].tolist()[1:] == made["end"].tolist()[:-1]
    assert "".join("".join(made["text"]).split()) == "".join(text.split())
    assert made[["speaker", "mine"]].drop_duplicates().values.tolist() == [["ann", 1]]


def test_captions_break_at_sentences_and_clauses():
    made = segments.captions(segments.frame([(0.0, 8.0, ENGLISH)]))
    assert made["text"].tolist() == [
        "It was not so much the loss of the\ncotton itself, but the fantasy.",
        "The hopes, the dreams built around it.",
    ]
    made = segments.captions(segments.frame([(0.0, 8.0, JAPANESE)]), line_width=30)
    assert made["text"].tolist() == [
        "日本語をちゃんと\n聞き取れていますか。",
        "これはテストですが、\nこの機械が言葉を",
        "聞き取れるかどうかを計ります。",
    ]
    assert all(line[0] not in "、。ゃっー" for line in made["text"].str.split("\n").explode())


def test_what_is_a_caption_already_is_unchanged():
    rows = [(0.0, 3.0, "- Yes?\n- No."), (3.0, 20.0, "You"), (20.0, 20.0, "a bell"), (21.0, 22.0, "")]
    table = segments.frame(rows, file="talk")
    assert segments.equal(segments.captions(table), table)
    assert segments.captions(segments.frame([])).empty


def test_captions_that_are_read_too_fast_stay_into_the_silence():
    rows = [(0.0, 1.0, "x" * 20), (1.5, 2.0, "x" * 20), (9.0, 9.5, "x" * 20), (10.0, 12.0, "x")]
    made = segments.captions(segments.frame(rows), pace=10)
    assert (made["end"].tolist(), made["start"].tolist()) == ([1.5, 3.5, 10.0, 12.0], [0.0, 1.5, 9.0, 10.0])


def test_captions_lose_no_character():
    chance = random.Random(1)
    texts = ["".join(chance.choices("ab .,\n三時にー。「」x", k=chance.randrange(120))) for _ in range(60)]
    rows = [(0.0, chance.choice([0.0, 0.5, 9.0, 60.0]), text) for text in texts]
    table = segments.frame(rows).assign(row=range(60))
    for line_width, lines in ((1, 1), (7, 2), (20, 3), (50, 1)):
        made = segments.captions(table, line_width=line_width, lines=lines)
        assert (made["end"] >= made["start"]).all()
        for (_, end, text), (row, part) in zip(rows, made.groupby("row"), strict=True):
            assert "".join("".join(part["text"]).split()) == "".join(text.split()), row
            assert part["end"].iloc[-1] == end, row


# -- doubts


DOUBTS = [
    (0, 20, "You", "sparse"),
    (0, 5, "Yes.", "sparse"),
    (0, 4.9, "Yes.", ""),
    (0, 20, "…", ""),
    (0, 20, "", "no text"),
    (0, 1.9, " ", ""),
    (0, 3, " thanks for watching! ", "stock phrase"),
    (0, 3, "ご視聴ありがとうございました。", "stock phrase"),
    (0, 3, "Thanks for watching my dog.", ""),
    (0, 20, "Thank you so much, thank you so much, thank you so much.", "loop"),
    (0, 3, "ニュース、ニュース、ニュース", "loop"),
    (0, 3, "No, no, no.", ""),
    (0, 1, "This is more than anybody can say in one second.", ""),
    (0, 0.5, "This is more than anybody can say in half of one.", "dense"),
    (0, 0, "This is more than anybody can say in no time.", ""),
]


def test_doubts_follow_their_rules():
    for *row, doubt in DOUBTS:
        assert segments.doubts(segments.frame([row])).tolist() == [doubt], row


def test_segments_that_repeat_each_other_are_a_loop():
    said = ["Thank you.", "thank you", "Thank you!", "Good bye.", "Thank you.", "Yes.", "Yes.", "Yes."]
    rows = [{"file": "a", "start": at, "end": at + 1, "text": text} for at, text in enumerate(said)]
    rows.append({"file": "b", "start": 0, "end": 1, "text": "Good bye."})
    table = segments.frame(rows).iloc[::-1].set_axis(list("ihgfedcba"))
    doubt = segments.doubts(table)
    assert (doubt[doubt != ""].to_dict(), doubt.name) == ({"c": "loop", "b": "loop", "a": "loop"}, "doubt")
    assert segments.doubts(segments.frame([])).empty


def test_no_prompt_is_doubted():
    prompts = datasets.prompts()
    rows = pd.DataFrame({"start": 0.0, "end": prompts["text"].map(wide) / 14 + 0.5, "text": prompts["text"]})
    assert not segments.doubts(segments.frame(rows)).any()


def test_captions_have_the_times_of_their_words():
    said = "Good morning, everybody. The weather is fine today, they say."
    words = said.split()
    starts = [0.5, 0.7, 1.0, 4.0, 4.2, 4.5, 4.6, 4.9, 5.2, 5.5]
    timed = pd.DataFrame({"word": words, "start": starts, "end": [*starts[1:3], 1.6, *starts[4:], 5.9]})
    table = segments.frame([(0.0, 8.0, said)], file="talk")
    made = segments.captions(table, line_width=40, lines=1, words=timed)
    assert made["text"].tolist() == ["Good morning, everybody.", "The weather is fine today, they say."]
    assert made[["start", "end"]].to_numpy().tolist() == [[0.5, 1.6], [4.0, 5.9]]
    japanese = segments.frame([(0.0, 4.0, "今日は晴れ。明日は雨でしょう。")])
    parts = {"word": ["今日は", "晴れ。", "明日は", "雨でしょう。"], "start": [0.1, 1.0, 2.0, 3.0]}
    characters = pd.DataFrame({**parts, "end": [0.6, 1.5, 2.5, 3.5]})
    made = segments.captions(japanese, line_width=20, lines=1, words=characters)
    assert made[["start", "end"]].to_numpy().tolist() == [[0.1, 1.5], [2.0, 3.5]]
    with pytest.raises(SegmentError, match="not those of the text of row 0"):
        segments.captions(table, words=timed.iloc[1:])
