"""The segment editor in a real browser, driven by real drags, fields and keys."""

import numpy as np
import pandas as pd
import pytest

from speechlab.audio import AudioClip
from speechlab.widgets import SegmentEditor
from support.browser import assert_readable, needs_axe, press, told

pytestmark = pytest.mark.browser

RATE = 24_000
HOSTILE = "<img src=x onerror='window.fired=1'> costs $5 and $6 \u202eabc"
GIVEN = [(0.5, 1.0, "one two"), (1.5, 2.0, "聞き"), (3.0, 3.5, HOSTILE)]
WAVE_PX, TIER_PX, REFERENCE_PX = 60, 133, 172
"""Where the waveform, the tier that is edited and the reference stand in the picture, from its top."""


def tone(seconds):
    return AudioClip(0.5 * np.sin(np.arange(round(seconds * RATE)) / 20), RATE, "a <b>talk</b>")


@pytest.fixture
def editor():
    given = pd.DataFrame(GIVEN, columns=["start", "end", "text"]).assign(number=[7, 8, 9])
    return SegmentEditor(tone(4), given, reference={"marked": [(0.6, 1.2, "said"), (2.2, 2.8, "more")]})


@pytest.fixture
def show_editor(show_player):
    def show(editor, body_style=""):
        page = show_player(editor, body_style)
        page.wait_for_function("sent && document.querySelector('.sl-chosen').textContent")
        if len(editor.frame):
            page.locator(".sl-segments li").first.wait_for()
        return page

    return show


def canvas(page):
    return page.get_by_role("slider", name="Position")


def places(page, y, *times):
    """Where these times are at a height of the picture."""
    start, end = page.evaluate("model.get('view')")
    box = page.locator("canvas").bounding_box()
    return [(box["x"] + box["width"] * (time - start) / (end - start), box["y"] + y) for time in times]


def hold(page, start, end, y=TIER_PX):
    """Drag, and hold on to it."""
    first, *others = places(page, y, start, (start + end) / 2, end)
    page.mouse.move(*first)
    page.mouse.down()
    for place in others:
        page.mouse.move(*place, steps=2)


def drag(page, start, end, y=TIER_PX):
    hold(page, start, end, y)
    page.mouse.up()


def spans(page, editor):
    return [tuple(row) for row in told(page, editor).frame[["start", "end"]].to_numpy().round(3).tolist()]


def status(page):
    return page.get_by_role("status").text_content()


def deliver(page):
    """Deliver what Python has sent meanwhile."""
    page.evaluate("model.send({ type: 'nothing' })")


def choose(page, number):
    """Choose a segment of the list by its number; if it was chosen, it plays, which ends here."""
    page.locator(".sl-segments .sl-segment").nth(number).click()
    page.evaluate("model.emit('msg:custom', { type: 'pause' }, [])")


def test_dragged_edges_and_segments_snap_to_neighbors(show_editor, editor):
    page = show_editor(editor)
    drag(page, 1.0, 1.2)  # the end of the first holds on to the end of the reference's first
    assert spans(page, editor)[0] == (0.5, 1.2)
    drag(page, 1.2, 1.51, y=WAVE_PX)  # on the waveform too; now to its neighbor
    assert spans(page, editor)[0] == (0.5, 1.5)
    drag(page, 3.0, 3.9)  # no negative length
    assert spans(page, editor)[2] == pytest.approx((3.499, 3.5))
    page.get_by_role("button", name="Undo").click()
    drag(page, 3.2, 3.69)  # moved as a whole: its end holds on to the end of the recording
    assert spans(page, editor)[2] == (3.5, 4.0)
    page.keyboard.down("Alt")
    drag(page, 1.75, 1.8)  # holds on to nothing
    page.keyboard.up("Alt")
    start, end = spans(page, editor)[1]
    assert start == pytest.approx(1.55, abs=0.01)
    assert end - start == pytest.approx(0.5)
    assert page.evaluate("model.get('selected')") == 1
    assert told(page, editor).frame["number"].tolist() == [7, 8, 9]
    assert told(page, editor).frame["text"].tolist()[2] == HOSTILE
    # a drag right after typing keeps the text
    choose(page, 0)
    page.get_by_label("Text").fill("typed")
    drag(page, 1.5, 1.3)
    end, text = told(page, editor).frame.loc[0, ["end", "text"]]
    assert end == pytest.approx(1.3, abs=0.005)  # Firefox has whole pixels only
    assert text == "typed"


def test_the_reference_stays_and_a_drag_elsewhere_adds(show_editor, editor):
    page = show_editor(editor)
    drag(page, 2.5, 3.2, y=REFERENCE_PX)
    assert told(page, editor).edits == 0
    assert editor.layers[0]["segments"][1]["start"] == 2.2
    page.mouse.click(*places(page, REFERENCE_PX, 2.5)[0])
    assert page.evaluate("[starts.length, model.get('selected')]") == [0, 1]
    page.mouse.click(*places(page, REFERENCE_PX, 2.5)[0])
    page.wait_for_function("starts.length")
    assert page.evaluate("[starts[0].offset, starts[0].duration]") == pytest.approx([2.2, 0.6])
    assert page.get_by_role("list", name="Segments: marked").get_by_role("listitem").count() == 2
    page.keyboard.press("a")  # the times of the reference, as a segment
    assert spans(page, editor)[2] == (2.2, 2.8)
    assert page.get_by_role("list", name="Segments: segments").get_by_role("listitem").count() == 4
    page.keyboard.press("Control+z")
    drag(page, 2.15, 2.795)
    assert spans(page, editor)[2] == pytest.approx((2.15, 2.8), abs=0.01)
    assert page.get_by_text("Segment 3 of 4").count() == 1
    drag(page, 3.6, 3.8, y=WAVE_PX)
    assert len(told(page, editor).frame) == 4
    page.get_by_role("button", name="Add").click()
    assert spans(page, editor)[4] == pytest.approx((3.6, 3.8), abs=0.01)
    assert page.evaluate("model.get('selection')") == []


def test_a_drag_that_the_browser_ends_changes_nothing(show_editor, editor):
    page = show_editor(editor)
    hold(page, 1.75, 2.1)
    picture = page.locator("canvas").screenshot()
    canvas(page).dispatch_event("pointercancel")  # as a finger that begins to scroll the page
    assert page.locator("canvas").screenshot() != picture
    page.mouse.move(*places(page, TIER_PX, 2.3)[0], steps=3)
    page.mouse.up()
    assert told(page, editor).edits == 0
    page.evaluate("model.set('view', [0, 1])")
    hold(page, 0.75, 0.8)
    page.evaluate("model.emit('msg:custom', { type: 'play', start: 0.9, end: 3 }, [])")
    page.wait_for_function("model.get('current_time') > 1.1")
    assert page.evaluate("model.get('view')") == [0, 1]
    page.mouse.up()
    page.wait_for_function("model.get('view')[0] > 0")


def test_all_of_it_by_keys_alone(show_editor, editor):
    page = show_editor(editor)
    canvas(page).focus()
    page.keyboard.press("n")  # plays the first, which is chosen then
    press(page, "Space", "Home", "PageUp", "ArrowLeft", "ArrowLeft", "ArrowLeft", *[","] * 10, "[")
    assert spans(page, editor)[0] == (0.9, 1.0)
    press(page, "Shift+ArrowRight", "Shift+ArrowRight")
    assert spans(page, editor)[0] == (0.92, 1.02)
    page.keyboard.press("Control+z")  # both steps in one
    assert spans(page, editor)[0] == (0.9, 1.0)
    page.keyboard.press("Control+Shift+Z")
    assert spans(page, editor)[0] == (0.92, 1.02)
    press(page, *["."] * 7, "c")
    assert spans(page, editor)[:2] == [(0.92, 0.97), (0.97, 1.02)]
    assert told(page, editor).frame["text"].tolist()[:2] == ["one two", ""]
    assert told(page, editor).frame["number"].tolist() == [7, 7, 8, 9]
    page.keyboard.press("m")
    assert spans(page, editor)[0] == (0.92, 1.02)
    page.keyboard.press("m")
    assert told(page, editor).frame.loc[0, ["start", "end", "text"]].tolist() == [0.92, 2.0, "one two聞き"]
    page.keyboard.press("Delete")
    assert told(page, editor).frame["text"].tolist() == [HOSTILE]
    page.keyboard.press("a")
    assert spans(page, editor)[0] == (0.97, 1.97)
    page.keyboard.press("e")
    page.keyboard.type("new x")
    page.keyboard.press("Enter")
    assert told(page, editor).frame["text"].tolist()[0] == "new x"
    press(page, *["Control+z"] * 12)
    assert spans(page, editor) == [(0.5, 1.0), (1.5, 2.0), (3.0, 3.5)]
    assert told(page, editor).changes.empty
    assert status(page) == "Nothing to undo"
    assert [key for key in page.evaluate("leaked") if key not in {"Control", "Shift"}] == []


def test_fields_change_times_text_and_speaker(show_editor, editor):
    page = show_editor(editor)
    assert page.get_by_label("Start (s)").is_disabled()
    choose(page, 0)
    start, end = page.get_by_label("Start (s)"), page.get_by_label("End (s)")
    assert (start.input_value(), end.input_value()) == ("0.5", "1")
    start.press("ArrowUp")
    assert spans(page, editor)[0] == (0.51, 1.0)
    start.fill("0.25")
    start.press("Enter")
    assert spans(page, editor)[0] == (0.25, 1.0)
    assert canvas(page).evaluate("node => node === document.activeElement")
    end.fill("0.1")
    end.press("Tab")
    assert status(page) == "A segment starts before it ends"
    assert end.input_value() == "1"
    for field, wrong, right in ((start, "-1", "0.25"), (end, "999", "1")):
        field.fill(wrong)
        field.press("Tab")
        assert status(page).startswith("The recording goes from 0 to 0:0")
        assert field.input_value() == right
    speaker = page.get_by_label("Speaker")
    speaker.fill("<i>Ann</i>")
    choose(page, 1)  # what was typed belongs to the row that it was typed for
    assert told(page, editor).frame["speaker"].tolist() == ["<i>Ann</i>", "", ""]
    assert page.locator("datalist option").evaluate_all("all => all.map((one) => one.value)") == [
        "<i>Ann</i>"
    ]
    text = page.get_by_label("Text")
    text.fill("dropped")
    text.press("Escape")
    assert text.input_value() == "聞き"
    text.fill("kept, x and d d")
    text.press("Enter")
    assert told(page, editor).frame["text"].tolist()[1] == "kept, x and d d"
    assert page.evaluate("leaked") == []
    # what was typed to the end is there when the widget is removed
    choose(page, 0)
    text.fill("typed to the end")
    page.evaluate("cleanup()")
    assert page.evaluate("model.listeners.length") == 0
    assert told(page, editor).frame["text"].tolist()[0] == "typed to the end"


def test_fields_that_nobody_typed_in_change_nothing(show_editor):
    texts = ["one\r\ntwo", "  with spaces "]
    editor = SegmentEditor(tone(4), [(0.5, 1.0, texts[0]), (1.5, 2.0, texts[1])])
    page = show_editor(editor)
    choose(page, 0)
    choose(page, 1)
    assert told(page, editor).edits == 0
    page.get_by_label("Start (s)").fill("1.4")
    page.get_by_label("Start (s)").press("Enter")
    assert told(page, editor).frame["start"].tolist() == [0.5, 1.4]
    assert told(page, editor).frame["text"].tolist() == texts


def test_segment_and_edges_play_to_the_sample(show_editor, editor):
    page = show_editor(editor)
    choose(page, 2)
    assert page.get_by_label("Text").input_value() == HOSTILE
    assert page.get_by_role("button", name=HOSTILE[:20]).count() == 1
    assert page.locator("img, svg, .sl-segments b, .sl-segments i").count() == 0
    assert page.evaluate("window.fired") is None
    assert page.get_by_role("group", name="Segment editor: a <b>talk</b>").count() == 1
    assert "mathjax_ignore" in page.locator(".speechlab-editor").get_attribute("class")
    for name, expected in [
        ("Play the segment", (3.0, 0.5)),
        ("Play around its start", (2.5, 1.0)),
        ("Play around its end", (3.0, 1.0)),
    ]:
        page.evaluate("starts.length = 0")
        page.get_by_role("button", name=name).click()
        page.wait_for_function("starts.length")
        assert page.evaluate("[starts[0].offset, starts[0].duration]") == pytest.approx(expected)
        page.evaluate("model.emit('msg:custom', { type: 'pause' }, [])")


def test_segments_snap_to_multiples_and_overlap_in_lanes(show_editor):
    editor = SegmentEditor(tone(4), [(0.5, 1.0)], snap_s=0.03)
    page = show_editor(editor)
    drag(page, 1.0, 2.345)
    assert spans(page, editor) == [(0.5, 2.34)]
    page.get_by_label("Start (s)").fill("0.7")
    page.get_by_label("Start (s)").press("Enter")
    assert spans(page, editor) == [(0.69, 2.34)]
    drag(page, 2.34, 0.1)  # past the start: as short as may be
    assert spans(page, editor) == [(0.69, 0.72)]
    frame = pd.DataFrame(
        {"start": [0.5, 1.0], "end": [2.0, 3.0], "text": ["", "said"], "speaker": ["Ann", "Bo"]}
    )
    editor = SegmentEditor(tone(4), frame)
    page = show_editor(editor)
    page.wait_for_function("words.includes('Ann') && words.includes('Bo: said')")
    assert not page.evaluate("words.some((one) => one.startsWith('Ann:'))")
    drag(page, 1.5, 1.9, y=TIER_PX + 24)
    assert spans(page, editor)[0] == (0.5, 2.0)
    assert spans(page, editor)[1] == pytest.approx((1.4, 3.4), abs=0.01)


def test_what_python_sets_shows_and_wins_over_a_drag_and_a_text(show_editor, editor):
    page = show_editor(editor)
    hold(page, 1.75, 2.1)
    editor.frame = [(0, 1, "from <b>Python</b>")]
    deliver(page)
    page.mouse.move(*places(page, TIER_PX, 2.3)[0])
    page.mouse.up()
    assert status(page) == "Python has set other segments; what was under way here is dropped"
    assert page.locator(".sl-segments li").all_text_contents() == ["0:00.00 – 0:01.00from <b>Python</b>"]
    assert spans(page, editor) == [(0.0, 1.0)]
    assert page.get_by_role("button", name="Undo").is_disabled()
    choose(page, 0)
    page.get_by_label("Text").fill("half a te")
    editor.frame = [(0, 2, "again")]
    deliver(page)
    assert status(page) == "Python has set other segments; what was under way here is dropped"
    assert page.get_by_label("Text").input_value() == ""
    page.keyboard.press("x")
    assert told(page, editor).frame["text"].tolist() == ["again"]
    page.evaluate("model.set('selected', 0)")
    assert (page.get_by_label("Text").input_value(), page.evaluate("leaked")) == ("again", [])


def test_edits_of_another_window_and_refused_ones_show(show_editor, editor):
    page = show_editor(editor)
    edit = {"type": "edit", "revision": 0, "by": "other", "number": 1, "put": [], "removed": [0]}
    for change, said in (
        ({}, "Edited in another window"),
        ({"put": [[1, 9, 8, "", "", 1]], "removed": []}, "The edit was not applied"),
    ):
        editor._answer_message(editor, {**edit, **change}, [])
        deliver(page)
        assert page.locator(".sl-segments li").count() == 2
        assert status(page).startswith(said)


def test_edits_that_cross_end_as_python_has_them(show_editor, editor):
    page = show_editor(editor)
    page.evaluate(
        """void (model.later = model.send, model.send = async (content) => {
          if (content.type === "edit") model.held = content;
        })"""
    )
    choose(page, 1)
    page.get_by_label("Text").fill("here")
    page.get_by_label("Text").press("Enter")
    other = {"type": "edit", "revision": 0, "by": "other", "number": 1, "removed": []}
    editor._answer_message(editor, {**other, "put": [[1, 1.5, 2.0, "there", "", 1]]}, [])
    page.evaluate("model.later({ type: 'nothing' })")
    assert page.get_by_label("Text").input_value() == "there"
    page.evaluate("model.later(model.held)")
    page.wait_for_function("document.querySelector('textarea').value === 'here'")
    assert told(page, editor).frame["text"].tolist()[1] == "here"
    page.evaluate("void (window.setTimeout = (act) => act())")  # its patience is over at once
    choose(page, 0)
    page.get_by_role("button", name="Delete").click()
    assert "are not in Python yet" in status(page)
    page.get_by_label("Text").fill("half a te")
    page.evaluate("model.later(model.held)")
    page.get_by_text("Python has all edits now").wait_for()
    assert len(told(page, editor).frame) == 2
    assert page.get_by_label("Text").input_value() == "half a te"


def test_two_views_of_an_editor_choose_one_segment(show_editor, editor):
    page = show_editor(editor)
    page.evaluate(
        """async () => {
          const { render } = (await import("/player.js")).default;
          render({ model, el: document.body.appendChild(document.createElement("section")) });
        }"""
    )
    first, second = page.locator("main"), page.locator("section").first
    second.locator(".sl-segments .sl-segment").nth(0).click()
    second.get_by_label("Text").fill("typed for the first")
    first.locator(".sl-segments .sl-segment").nth(1).press("ArrowDown")
    assert told(page, editor).frame["text"].tolist() == ["typed for the first", "聞き", HOSTILE]
    for view in (first, second):
        assert view.get_by_text("Segment 3 of 3").count() == 1
        assert view.get_by_label("Text").input_value() == HOSTILE
    # segments that have not come are not said to be none
    page.evaluate(
        """async () => {
          const { render } = (await import("/player.js")).default;
          const busy = new FakeModel({ ...model.state });
          busy.send = () => {};
          render({ model: busy, el: document.body.appendChild(document.createElement("section")) });
        }"""
    )
    assert page.locator("section .sl-chosen").last.text_content() == "The segments have not come yet"


def test_editor_says_that_the_kernel_is_gone(show_editor, editor):
    page = show_editor(editor)
    choose(page, 0)
    page.evaluate("void (model.send = () => { throw new Error('closed') })")
    page.get_by_role("button", name="Delete").click()
    assert status(page) == "No answer: the kernel is gone. What is edited here is not in Python"
    assert page.locator(".sl-segments li").count() == 2
    page.evaluate("model.emit('msg:custom', { type: 'play', start: 0, end: 0.1 }, [])")
    page.wait_for_function("starts.length && model.get('current_time') === 0.1 && !model.get('playing')")
    assert "is not in Python" in status(page)  # and not where it paused


def test_segments_dragged_past_others_are_listed_in_order(show_editor, editor):
    page = show_editor(editor)
    listed = page.locator(".sl-segments .sl-text")
    drag(page, 0.75, 2.4)
    assert listed.all_text_contents() == ["聞き", "one two", HOSTILE]
    drag(page, 3.25, 0.4)
    assert listed.all_text_contents() == [HOSTILE, "聞き", "one two"]
    press(page, "Control+z", "Control+z")
    assert listed.all_text_contents() == ["one two", "聞き", HOSTILE]


def test_tab_passes_the_list_and_focus_stays(show_editor, editor):
    page = show_editor(editor)
    page.get_by_role("button", name="one two").focus()
    page.keyboard.press("ArrowDown")  # the arrows of the list choose without a sound
    page.keyboard.press("ArrowDown")
    assert page.get_by_text("Segment 3 of 3").count() == 1
    assert page.evaluate("document.activeElement.textContent").endswith(HOSTILE)
    page.keyboard.press("Home")
    assert (page.get_by_label("Text").input_value(), page.evaluate("starts.length")) == ("one two", 0)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Keys"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.textContent").endswith("one two")
    page.keyboard.press("Enter")
    page.wait_for_function("starts.length")
    assert page.evaluate("leaked").count("ArrowDown") == 0
    choose(page, 1)
    page.keyboard.press("Delete")  # on the list: the next one has the focus
    focused = "document.activeElement.textContent"
    assert HOSTILE in page.evaluate(focused)
    page.get_by_role("button", name="Delete").focus()
    press(page, *["Enter"] * 2)
    assert len(told(page, editor).frame) == 0
    assert canvas(page).evaluate("node => node === document.activeElement")
    assert page.get_by_text("There are no segments").count() == 1


def test_thousands_of_segments_are_edited_at_once(show_player):
    times = np.arange(3_000) * 1.2
    frame = pd.DataFrame({"start": times, "end": times + 0.9, "text": "said"})
    editor = SegmentEditor(AudioClip(np.zeros(3_600 * 1_000), 1_000), frame)
    page = show_player(editor)
    page.locator(".sl-segments li").nth(2_999).wait_for(state="attached")
    assert len(page.evaluate("sent").__repr__()) < 2_000
    strongest = page.locator("canvas").evaluate(
        """(canvas, y) => {
          const row = canvas.getContext("2d").getImageData(9, y * devicePixelRatio, canvas.width / 2, 1).data;
          return Math.max(...row.filter((_, at) => at % 4 === 3));
        }""",
        TIER_PX,
    )
    assert strongest < 200  # a light band, and not a block of edges side by side
    page.evaluate("model.set('selected', 1500)")
    page.locator(".sl-edit button").get_by_text("Delete").click()  # asking for roles takes seconds here
    assert len(told(page, editor).frame) == 2_999
    page.evaluate("model.set('view', [1700, 1703])")
    drag(page, 1701.1, 1701.7)
    assert told(page, editor).changes["change"].tolist() == ["changed", "deleted"]


@needs_axe
def test_axe_finds_nothing_serious_and_nothing_is_cut_off(show_editor):
    editor = SegmentEditor(tone(4), GIVEN, reference={"long names " * 20: [(0.6, 1.2, "said")]})
    page = show_editor(editor)
    choose(page, 2)
    page.locator("summary").click()
    assert_readable(page, ("light", 820), ("dark", 380))
