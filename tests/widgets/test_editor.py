"""The segment editor as Python sees it: what it takes, what edits make of it, what it refuses."""

from types import SimpleNamespace

import numpy as np
import orjson
import pandas as pd
import pytest

from speechlab import segments
from speechlab.audio import AudioClip
from speechlab.widgets import SegmentEditor

GIVEN = pd.DataFrame(
    {
        "start": [1.0, 0.1 + 0.2, 2.0],
        "end": [1.5, 0.75, 2.5],
        "text": ["b", "a", "<i>c</i>"],
        "confidence": [0.9, np.nan, 0.5],
        "number": [7, 8, 9],
        "checked": [True, False, True],
    }
)


@pytest.fixture
def clip():
    return AudioClip(0.5 * np.sin(np.arange(96_000) / 20), 24_000, "talk")


@pytest.fixture
def editor(clip):
    return SegmentEditor(clip, GIVEN, reference={"marked": [(0.2, 0.8, "x")]})


def asked(editor, **content):
    """What an editor answers to its browser's side."""
    answers = []
    editor.send = lambda told, buffers=(): answers.append((told, *buffers))
    editor._answer_message(editor, content, [])
    return answers


def edit(editor, *put, removed=(), revision=0):
    return asked(editor, type="edit", revision=revision, by="x", number=1, put=put, removed=removed)


def test_segments_that_end_after_the_recording_are_told(clip, editor):
    words = r"1 of 2 segments end after the recording of 4.00 s, the first at 4.70 s; sl\.segments\.crop"
    late = [(0.5, 1.0), (3.0, 4.7)]
    with pytest.warns(UserWarning, match=words):
        SegmentEditor(clip, late)
    with pytest.warns(UserWarning, match="1 of 2 segments end after"):
        editor.frame = segments.frame(late)


def test_edits_keep_ids_times_and_the_other_columns_of_each_row(editor):
    # row 1 split, row 2 deleted, one added
    put = [[1, 0.3, 0.5, "a", "S", 1], [10, 0.5, 0.75, "", "S", 1], [11, 3, 3.5, "new", "", -1]]
    [(told,)] = edit(editor, *put, removed=[2])
    assert told["type"] == "kept"
    frame = editor.frame
    pd.testing.assert_frame_equal(segments.frame(frame), frame)
    assert (frame["start"].tolist(), frame["file"].tolist()) == ([0.3, 0.5, 1.0, 3.0], ["talk"] * 4)
    assert (frame["speaker"].tolist(), frame["number"].tolist()) == (["S", "S", "", ""], [8, 8, 7, pd.NA])
    assert (frame["checked"].tolist(), frame.loc[2, "confidence"]) == ([False, False, True, pd.NA], 0.9)
    assert editor.edits == 1
    changes = editor.changes
    assert changes["change"].tolist() == ["changed", "added", "deleted", "added"]
    assert changes["row"].tolist() == [1, pd.NA, 2, pd.NA]
    assert changes.loc[0, ["end_before", "end", "speaker"]].tolist() == [0.75, 0.5, "S"]


def test_what_is_undone_is_no_change(editor):
    seen = []
    editor.observe(lambda change: seen.append(len(editor.frame)), "edits")
    edit(editor, [0, 0.1 + 0.2, 1717.5 * 0.002, "b", "", 0], removed=[1])
    assert [0.3, 3.435] in editor.frame[["start", "end"]].values.tolist()  # whole microseconds
    assert len(editor.changes) == 2
    edit(editor, [0, 1.0, 1.5, "b", "", 0], [1, 0.1 + 0.2, 0.75, "a", "", 1])
    assert editor.changes.empty
    assert editor.frame["number"].tolist() == [8, 7, 9]
    assert seen == [2, 3]


def test_what_python_sets_wins_over_edits_that_it_did_not_have(editor):
    edit(editor, [0, 1.2, 1.7, "b", "", 0])
    answers = []
    editor.send = lambda told, buffers=(): answers.append((told, *buffers))
    editor.frame = editor.frame.assign(number=[3, 2, 1])
    [(told, data)] = answers
    assert (told["type"], told["revision"], len(orjson.loads(data))) == ("rows", 1, 3)
    assert editor.changes.empty
    assert edit(editor, [0, 0.0, 0.1, "late", "", 0], revision=0) == []
    assert editor.frame["text"].tolist() == ["a", "b", "<i>c</i>"]
    assert editor.frame["number"].tolist() == [3, 2, 1]
    edit(editor, [0, 0.0, 0.1, "in time", "", 0], revision=1)
    assert editor.frame["text"].tolist()[0] == "in time"


def test_an_edit_that_cannot_be_is_dropped_whole(clip):
    for row in [
        [0, 1.5, 1.0, "", "", 0],
        [0, 3.9, 4.1, "", "", 0],
        [0, float("nan"), 1.0, "", "", 0],
        [0, 0.0, 1.0, 5, "", 0],
        5,
    ]:
        editor = SegmentEditor(clip, GIVEN)
        before = editor.frame
        [(told, data)] = edit(editor, [1, 0.0, 0.1, "x", "", 1], row, removed=[2])
        assert "not applied" in told["error"]
        assert [one[0] for one in orjson.loads(data)] == [1, 0, 2]
        pd.testing.assert_frame_equal(editor.frame, before)


def test_segments_come_in_every_form(clip):
    transcript = SimpleNamespace(audio=clip, segments=segments.frame([(0, 1, "一")]), language="zh")
    editor = SegmentEditor(transcript)
    assert (editor.lang, editor.frame["text"].tolist()) == ("zh", ["一"])
    empty = SegmentEditor(clip)
    edit(empty, [5, 0.5, 1.0, "first", "", -1])
    assert empty.frame.to_dict("records") == [{"file": "talk", "start": 0.5, "end": 1.0, "text": "first"}]
    # a recognizer rounds: the last segment ends after the recording, and stays as it is until its end is edited
    beyond = SegmentEditor(clip, [(3.5, 4.01, "x")])
    edit(beyond, [0, 3.6, 4.01, "x", "", 0])
    assert beyond.frame["end"].tolist() == [4.01]


def test_static_html_has_segments_speakers_and_reference(editor):
    edit(editor, [0, 1.0, 1.5, "$5 and $6", "<b>Ann</b>", 0])
    html = str(editor.static_html())
    assert all(part in html for part in ("&lt;i&gt;c&lt;/i&gt;", "&lt;b&gt;Ann&lt;/b&gt;", "marked"))
