"""The listening test in a real browser: in a notebook's cell, and as a page that needs no kernel."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.widgets import ListeningTest
from support.browser import needs_axe, press, told, violations
from support.samples import tone

pytestmark = pytest.mark.browser

PLACE = "speechlab-listening-"
ELSEWHERE = "This test is answered in another window too"
HOSTILE = "<img src=x onerror='window.fired=1'></script> costs $5 in Tokyo and $6 in Osaka \u202e"


@pytest.fixture(scope="module")
def frame():
    rows = [
        (f"s{item}", system, tone(0.08, 200 + 50 * item + 20 * which), HOSTILE)
        for item in range(2)
        for which, system in enumerate(["one", "two", "original"])
    ]
    return pd.DataFrame(rows, columns=["item", "system", "audio", "text"])


def begin(page, name="ann"):
    page.bring_to_front()  # a browser draws one frame a second in a window behind
    page.get_by_label("Your name or number").fill(name)
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("heading", name=re.compile(r"Practice|Question|Thank")).wait_for()


def hear_all(page):
    sounds = page.locator(".sl-hear")
    for number in range(sounds.count()):
        sounds.nth(number).click()
        page.locator(".sl-hear").nth(number).and_(page.locator(".sl-heard")).wait_for()


def answer(page, choice=0):
    page.bring_to_front()
    hear_all(page)
    if page.locator(".sl-range").count():
        assert page.locator(".sl-unrated").count() == page.locator(".sl-range").count()
        for number in range(page.locator(".sl-range").count()):
            page.locator(".sl-range").nth(number).fill(str(20 * number))
        assert page.locator(".sl-unrated").count() == 0
    else:
        page.locator(".sl-option").nth(choice).click()
    page.get_by_role("button", name="Next").click()


def heading(page):
    return page.get_by_role("heading").inner_text()


# -- in a notebook


def test_answers_land_in_python_one_listener_after_the_other(show_test, frame):
    test = ListeningTest(frame, "ab", pairs=[("one", "two")], checks=1, seed=2, training=1)
    page = show_test(test)
    begin(page, HOSTILE)
    assert heading(page) == "Practice 1 of 1"
    # nobody answers before all was heard
    following = page.get_by_role("button", name="Next", exact=True)
    page.locator(".sl-option").first.click()
    assert following.is_disabled()
    assert page.get_by_text("Hear the sounds to the end, then choose.").count() == 1
    page.locator(".sl-hear").first.click()
    page.locator(".sl-heard").first.wait_for()
    assert following.is_disabled()
    hear_all(page)
    following.click()
    page.get_by_role("button", name="Start the test").click()
    for number in range(2):
        assert heading(page) == f"Question {number + 1} of 2"
        assert len(test.answers) == number
        answer(page, 0)
    page.get_by_text("the answers are in the notebook").wait_for()
    rows = test.answers
    assert (rows["listener"].tolist(), rows["order"].tolist()) == ([HOSTILE] * 2, [1, 2])
    assert rows["position"].tolist() == [1, 1]
    assert (rows["time_s"] > 0.1).all()
    assert (rows["plays"] == 2).all()
    assert rows["finished"].all()
    assert rows["attention"].notna().sum() == 1
    page.get_by_role("button", name="Next listener").click()
    begin(page, "bob")
    assert heading(page) == "Practice 1 of 1"
    assert page.evaluate("window.fired") is None


def test_who_reloads_goes_on_and_others_have_own_orders(show_test, frame):
    test = ListeningTest(frame, training=0, checks=0, seed=2)
    page = show_test(test)
    begin(page)
    answer(page, 1)
    assert heading(page) == "Question 2 of 6"
    asked = "sent.filter((one) => one.type === 'sound').map((one) => one.token)"
    order = page.evaluate(asked)
    page = show_test(test)
    assert heading(page) == "Question 2 of 6"
    assert page.evaluate(asked) == order[-1:]
    assert test.answers["score"].tolist() == [4]
    firsts = {order[0]}
    for name in ("bob", "cid"):
        page.get_by_role("button", name="Someone else").click()
        begin(page, name)
        firsts.add(page.evaluate(asked)[-1])
    assert len(firsts) > 1


def two_windows(shown, show_test, test):
    """Two views of one test, whose models are two and whose kernel is one."""
    one = show_test(test)
    other = shown.page.context.new_page()
    other.route("**/*", shown._serve)
    other.expose_function("ask", shown.ask)
    other.goto(one.url)
    names = "test method title question instructions trials order_seed no_preference session words design"
    other.evaluate(
        """async (state) => {
          window.leaked = [];
          window.model = new AskingModel(state);
          const widget = (await import("/test.js")).default;
          widget.render({ model, el: document.getElementById("cell") });
        }""",
        {name: getattr(test, name) for name in names.split()},
    )
    return one, other


def tell_session(page, test):
    """What a kernel tells all of its windows."""
    page.evaluate("session => model.set('session', session)", test.session)


def test_two_windows_of_a_notebook_lose_no_answer(shown, show_test, frame):
    test = ListeningTest(frame, training=0, checks=0, seed=2)
    one, other = two_windows(shown, show_test, test)
    begin(one)
    begin(other)
    for _ in range(2):
        answer(one, 1)
    told(one, test)
    answer(other, 0)  # the first question, which the other window has answered
    other.get_by_text(ELSEWHERE).wait_for()
    assert heading(other) == "Question 3 of 6"
    answer(other, 0)
    assert told(other, test).answers["score"].tolist() == [4, 4, 5]
    tell_session(one, test)
    one.get_by_text(ELSEWHERE).wait_for()
    assert heading(one) == "Question 4 of 6"
    other.get_by_role("button", name="Someone else").click()
    begin(other, "bob")
    tell_session(one, told(other, test))
    assert one.get_by_text("Listener: ann").count() == 1
    answer(one)
    answer(other)
    told(one, test)
    orders = told(other, test).answers.groupby("listener")["order"].agg(list).to_dict()
    assert orders == {"ann": [1, 2, 3, 4], "bob": [1]}
    other.close()


def test_keys_do_it_all_and_none_of_them_reaches_the_notebook(show_test, frame):
    test = ListeningTest(frame, training=0, checks=0, seed=1)
    page = show_test(test)
    press(page, "Tab", "Tab")
    page.keyboard.type("ann")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Question 1 of 6").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Question 1 of 6"
    page.keyboard.press("p")
    page.locator(".sl-heard").wait_for()
    press(page, "4", "x", "Enter")
    page.get_by_role("heading", name="Question 2 of 6").wait_for()
    assert test.answers["score"].tolist() == [4]
    page.keyboard.press("Space")
    page.locator(".sl-heard").wait_for()
    press(page, "Tab", "Tab", "Space", "ArrowDown", "Tab", "Enter")
    page.get_by_role("heading", name="Question 3 of 6").wait_for()
    assert len(test.answers) == 2
    assert set(page.evaluate("leaked")) <= {"Tab"}


def test_switching_between_sounds_goes_on_where_the_other_stood(show_test, frame):
    long = frame.assign(audio=[tone(3.0, 200 + row) for row in range(len(frame))])
    page = show_test(ListeningTest(long, "mushra", reference="original", training=0, seed=1))
    page.evaluate(
        """() => {
          window.offsets = [];
          const start = AudioBufferSourceNode.prototype.start;
          AudioBufferSourceNode.prototype.start = function (when, offset) {
            offsets.push(offset);
            return start.call(this, when, offset);
          };
        }"""
    )
    begin(page)
    page.keyboard.press("0")
    page.locator(".sl-reference.sl-heard").wait_for()
    page.keyboard.press("1")
    page.wait_for_function("offsets.length === 2")
    first, second = page.evaluate("offsets")
    assert first == 0
    assert 1.0 <= second < 3.0


def test_a_kernel_that_is_gone_is_said_in_words(show_test, frame):
    page = show_test(ListeningTest(frame, training=0), answering=False)
    page.clock.install()
    page.get_by_label("Your name or number").fill("ann")
    page.get_by_role("button", name="Begin").click()
    page.clock.run_for(7_000)
    assert "The kernel does not answer" in page.locator(".sl-warning").inner_text()


def test_a_sound_that_is_gone_holds_nobody_up(show_test, frame, tmp_path):
    tone(0.08).save(tmp_path / "gone.wav")
    test = ListeningTest(frame.assign(audio=str(tmp_path / "gone.wav")), training=0, checks=0)
    (tmp_path / "gone.wav").unlink()
    page = show_test(test)
    begin(page)
    page.get_by_text("The recording can no longer be read.").wait_for()
    page.locator(".sl-option").first.click()
    page.get_by_role("button", name="Next").click()
    assert heading(page) == "Question 2 of 6"


# -- as a page


@pytest.fixture
def exported(shown, frame, tmp_path):
    """Opens the page of a test as a listener would."""

    def open_page(test):
        return shown.show(test.save(tmp_path / "test.html").read_text("utf-8"))

    return open_page


@needs_axe
@pytest.mark.parametrize(
    ("shown", "method"), [("dark", "mos"), ("light", "mushra"), ("dark", "abx")], indirect=["shown"]
)
def test_a_page_passes_axe_and_gives_a_file_of_answers(shown, exported, frame, method, tmp_path):
    """All rules, those for whole pages and the experimental ones too; of contrast those of AA, 4.5 to 1."""
    options = {"reference": "original", "text": "text", "checks": 1, "seed": 1, "title": HOSTILE}
    test = ListeningTest(frame[frame["system"] != "two"], method, **options)
    shown.page.set_viewport_size({"width": 380, "height": 800})
    page = exported(test)
    broken = {}

    def scan():
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        broken[page.get_by_role("heading", level=1).inner_text()] = violations(page, every_rule=True)

    scan()
    begin(page, "ann/../x")
    while not page.get_by_role("heading", name="Thank you").count():
        if not re.match("Question [2-9]", heading(page)):
            scan()
        if page.locator(".sl-body").count():
            answer(page)
        else:
            page.get_by_role("button", name="Start the test").click()
    page.get_by_text("Or copy them").click()
    scan()
    assert len(broken) >= 5
    assert [rule for rules in broken.values() for rule in rules] == []
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Save the answers").click()
    assert waiting.value.suggested_filename == "answers-ann-x.json"
    file = tmp_path / "ann.json"
    waiting.value.save_as(file)
    assert page.get_by_label("Answers").input_value() == file.read_text("utf-8")
    assert page.evaluate("window.fired") is None
    assert page.locator("img, mjx-container").count() == 0
    rows = evaluate.listening_answers(file, tmp_path / "test.key.json")
    asked = [trial for trial in test.key["trials"] if trial["role"] != "training"]
    assert rows["trial"].nunique() == len(asked)
    assert rows["finished"].all()
    report = evaluate.listening(file, test, draws=100, max_failed_checks=1) if method == "mos" else None
    assert report is None or len(report.table) == len(rows)


def test_a_page_saves_answers_and_goes_on_after_a_reload(exported, frame, tmp_path):
    page = exported(ListeningTest(frame, training=0, checks=0, seed=8))
    # its policy lets nothing else run
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.fired = 1";
          document.body.append(script);
        }"""
    )
    assert page.evaluate("window.fired") is None
    begin(page)
    assert page.get_by_role("button", name="Save the answers so far").count() == 0
    answer(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save the answers so far").click()
    waiting.value.save_as(tmp_path / "ann.json")
    rows = evaluate.listening_answers(tmp_path / "ann.json", tmp_path / "test.key.json")
    assert rows["finished"].tolist() == [False]
    page.reload()
    assert heading(page) == "Question 2 of 6"
    assert (page.locator(".sl-warning").inner_text(), page.get_by_text("Listener: ann").count()) == ("", 1)
    stored = page.evaluate("Object.entries(localStorage).filter(([name]) => name.endsWith('/ann'))")
    assert len(json.loads(stored[0][1])["answers"]) == 1
    page.get_by_role("button", name="Someone else").click()
    begin(page, "__proto__")
    assert heading(page) == "Question 1 of 6"
    page.get_by_role("button", name="Someone else").click()
    begin(page, "ann")
    assert heading(page) == "Question 2 of 6"


def test_answers_in_the_browser_that_were_edited_break_nothing(exported, frame):
    test = ListeningTest(frame, training=0, checks=0, seed=8)
    page = exported(test)
    begin(page)
    for text in ("{", "5", '{"listener": "ann", "answers": 5}', '{"listener": "ann", "answers": [null]}'):
        page.evaluate("([name, text]) => localStorage.setItem(name, text)", [f"{PLACE}{test.test}/ann", text])
        page.reload()
        if not page.get_by_role("heading", name="Question 1 of 6").count():
            begin(page)
        assert heading(page) == "Question 1 of 6"


def test_two_windows_of_a_page_lose_no_answer(shown, exported, frame, tmp_path):
    test = ListeningTest(frame, training=0, checks=0, seed=8)
    one = exported(test)
    begin(one)
    answer(one)
    other = shown.page.context.new_page()
    other.route("**/*", shown._serve)
    other.goto(one.url)
    assert heading(other) == "Question 2 of 6"
    answer(other)
    one.get_by_text(ELSEWHERE).wait_for()
    assert heading(one) == "Question 3 of 6"
    assert other.get_by_text(ELSEWHERE).count() == 0
    with one.expect_download() as waiting:
        one.get_by_role("button", name="Save the answers so far").click()
    waiting.value.save_as(tmp_path / "ann.json")
    rows = evaluate.listening_answers(tmp_path / "ann.json", tmp_path / "test.key.json")
    assert sorted(rows["order"]) == [1, 2]
    other.get_by_role("button", name="Someone else").click()
    begin(other, "bob")
    for page in (one, other):
        answer(page)
    for page, name, question in ((one, "ann", 4), (other, "bob", 2)):
        page.reload()
        assert heading(page) == f"Question {question} of 6"
        assert page.get_by_text(f"Listener: {name}").count() == 1
    other.close()


def test_a_window_that_has_slept_puts_back_what_it_has_answered(shown, exported, frame):
    page = exported(ListeningTest(frame, training=0, checks=0, seed=8))
    begin(page)
    for _ in range(2):
        answer(page)
    # another window, which knew of none of it, has written its own
    page.evaluate(
        """() => {
          const name = Object.keys(localStorage).find((one) => one.endsWith("/ann"));
          const session = JSON.parse(localStorage.getItem(name));
          session.answers = [{ ...session.answers[0], time_s: 99 }];
          localStorage.setItem(name, JSON.stringify(session));
        }"""
    )
    answer(page)
    times = page.evaluate(
        "JSON.parse(Object.entries(localStorage).find(([n]) => n.endsWith('/ann'))[1]).answers.map((a) => a.time_s)"
    )
    assert (len(times), times[0]) == (3, 99)


@pytest.mark.parametrize("shown", ["dark"], indirect=True)
def test_a_page_of_a_crowd_asks_and_gives_a_code(shown, frame, tmp_path):
    """In Japanese, on a phone: his part alone, questions before and after, and a code once the file is saved."""
    before = {"device": ("何で聞きますか。", ["ヘッドホン", "スピーカー"])}
    asked = {"before": before, "after": {"remark": "ご意見"}, "completion_code": "C-1234"}
    parts = {"page_language": "ja", "items_per_listener": 1, "training": 0, "checks": 0}
    test = ListeningTest(frame, "mos", seed=8, **parts, **asked)
    [page_file, _] = test.save_each(tmp_path, 2)
    shown.page.set_viewport_size({"width": 380, "height": 800})
    page = shown.show(page_file.read_text("utf-8"))
    assert page.get_by_label("お名前または番号").is_hidden()
    page.get_by_role("button", name="始める").click()
    page.get_by_label("何で聞きますか。").select_option("スピーカー")
    page.get_by_role("button", name="次へ").click()
    for number in range(3):
        assert heading(page) == f"質問 {number + 1} / 3"
        hear_all(page)
        page.locator(".sl-option").first.click()
        page.get_by_role("button", name="次へ").click()
    page.reload()
    page.get_by_label("ご意見").fill("なし")
    page.get_by_role("button", name="次へ").click()
    assert heading(page) == "ありがとうございました"
    assert page.get_by_text("C-1234").is_hidden()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="回答を保存").click()
    waiting.value.save_as(tmp_path / "one.json")
    assert page.get_by_text("完了コード: C-1234").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    rows = evaluate.listening_answers(tmp_path / "one.json", tmp_path / "test.key.json")
    assert rows["item"].nunique() == 1
    assert rows["finished"].all()
    assert set(rows["about_device"] + rows["about_remark"]) == {"スピーカーなし"}


def test_a_page_works_where_the_browser_keeps_nothing(shown, exported, frame):
    shown.page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
    )
    page = exported(ListeningTest(frame, training=0, checks=0, seed=8))
    assert "This browser keeps nothing" in page.locator(".sl-warning").inner_text()
    begin(page)
    answer(page)
    assert heading(page) == "Question 2 of 6"


ODD = [
    AudioClip(np.zeros(12_000, "f4"), 24_000),
    AudioClip(np.full(1, 0.5, "f4"), 8_000),
    AudioClip(0.1 * np.ones((480, 2), "f4"), 48_000),
    AudioClip((0.1 * np.sin(np.arange(5_513))).astype("f4"), 11_025),
]


def test_sounds_of_any_kind_are_heard_from_a_disk(chromium, tmp_path):
    """Silence, one sample, two channels, four rates: as a file that a listener opens."""
    frame = pd.DataFrame({"item": "a", "system": list("wxyz"), "audio": ODD})
    page_file = ListeningTest(frame, training=0, checks=0, seed=1).save(tmp_path / "t.html")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.set_default_timeout(10_000)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(page_file.as_uri())
    begin(page)
    while not page.get_by_role("heading", name="Thank you").count():
        hear_all(page)
        assert page.locator(".sl-error:not(:empty)").count() == 0
        page.locator(".sl-option").first.click()
        page.get_by_role("button", name="Next").click()
    page.reload()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Save the answers").click()
    waiting.value.save_as(tmp_path / "ann.json")
    assert len(evaluate.listening_answers(tmp_path / "ann.json", tmp_path / "t.key.json")) == 4
    assert problems == []
    context.close()
