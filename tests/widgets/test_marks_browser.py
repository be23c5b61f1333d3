"""What people do stays: marks, ratings, notes, order and filters, in saved notebooks and in pages for others."""

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab.widgets import AudioTable, ErrorBrowser
from support.samples import tone

pytestmark = pytest.mark.browser

HOSTILE = "=1+1<img src=x onerror='window.fired=1'>\u202e, \"two\"\nlines"


def rows(count=5):
    texts = [f"sentence {row}" for row in range(count)]
    names = [f"k{row}" for row in range(count)]
    return pd.DataFrame({"audio": [tone(0.25)] * count, "text": texts, "rate": range(count)}, index=names)


def saved(table, tmp_path, shown):
    return shown.show(table.save(tmp_path / "page.html").read_text("utf-8"))


def marked_file(page, tmp_path):
    with page.expect_download() as download:
        page.get_by_role("button", name="Save marks").click()
    download.value.save_as(tmp_path / "marks.csv")
    return tmp_path / "marks.csv"


def mark_some(page):
    page.locator(".sl-row").first.wait_for()
    page.get_by_role("button", name="Mark row 2").click()
    page.keyboard.press("4")
    page.get_by_label("Note on row 4").fill(HOSTILE.replace("\n", " "))
    page.keyboard.press("Enter")


def test_marks_of_a_page_are_kept_and_saved(shown, tmp_path):
    table = AudioTable(rows())
    table.marked = ["k0"]  # the author's own marks are not in the page
    page = saved(table, tmp_path, shown)
    mark_some(page)
    page.reload()
    page.get_by_text("1 marked").wait_for()
    assert page.get_by_label("Note on row 4").input_value() == HOSTILE.replace("\n", " ")
    file = marked_file(page, tmp_path)
    assert page.evaluate("window.fired") is None
    assert "'=1+1" in file.read_text("utf-8-sig")  # a spreadsheet computes nothing
    again = sl.show(rows().iloc[::-1], marks=file).frame.loc[rows().index]
    assert again["mark"].tolist() == [False, True, False, False, False]
    assert again["rating"].tolist() == [pd.NA, 4, pd.NA, pd.NA, pd.NA]
    assert again["note"].tolist()[3] == HOSTILE.replace("\n", " ")
    assert pd.isna(again["note"].iloc[0])


def test_the_page_of_errors_is_marked_and_given_back_too(shown, tmp_path):
    frame = rows().assign(hypothesis="sentence 1", language="en")
    page = saved(ErrorBrowser(frame), tmp_path, shown)
    page.locator(".sl-row").first.wait_for()
    page.get_by_role("button", name="Mark row 1").click()
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("group", name="Error classes").get_by_role("checkbox").first.check()
    file = marked_file(page, tmp_path)
    worst = ErrorBrowser(frame).frame.index[0]
    assert ErrorBrowser(frame, marks=file).marked == [worst]


def test_pages_keep_their_marks_apart(shown, tmp_path):
    page = saved(AudioTable(rows()), tmp_path, shown)
    mark_some(page)
    page = saved(AudioTable(rows(4)), tmp_path, shown)
    page.get_by_text("4 rows").wait_for()
    assert page.get_by_text("1 marked").count() == 0
    page = shown.show(AudioTable(rows())._table.render_page("Report"))
    page.locator(".sl-row").first.wait_for()
    assert page.locator(".sl-star, .sl-rate, .sl-noted").count() == 0


def test_marks_are_saved_where_the_browser_keeps_none(shown, tmp_path):
    shown.page.add_init_script("Storage.prototype.setItem = () => { throw new Error('full'); };")
    page = saved(AudioTable(rows()), tmp_path, shown)
    page.locator(".sl-row").first.wait_for()
    assert page.get_by_role("alert").filter(visible=True).count() == 0
    mark_some(page)
    page.get_by_text("This browser keeps nothing. Save your marks before you leave this page.").wait_for()
    assert sl.show(rows(), marks=marked_file(page, tmp_path)).marked == ["k1"]


def test_the_html_has_the_marks_the_order_and_the_filters(show_table):
    table = AudioTable(rows(60), static_rows=3)
    page = show_table(table)
    assert "sentence 59" not in table.static_html()
    page.get_by_role("button", name="Rate", exact=True).dblclick()  # descending
    page.get_by_role("searchbox").fill("sentence 5")
    page.get_by_text("15 of 60 rows").wait_for()
    page.wait_for_function("model.get('view').words?.length === 2")
    table.view = page.evaluate("model.get('view')")
    table.rate("k58", 5)
    table.note("k5", "far down")
    html = str(table.static_html())
    assert html.index("sentence 59") < html.index("sentence 58") < html.index("sentence 57")
    assert "15 of 60 rows" in html
    assert "by rate, descending" in html
    assert "with “sentence 5”" in html
    assert "rated 5" in html
    assert "k5,,,far down" in html  # not among the three rows, but in the file below them
    # another view of the same table begins with the same order and filters
    page = show_table(table)
    page.get_by_text("15 of 60 rows").wait_for()
    assert page.locator(".sl-row").first.get_attribute("data-row") == "59"
    table.frame = rows(2)
    assert table.view == {}


@pytest.mark.parametrize("long", [False, True])
def test_marks_of_ten_thousand_rows_take_little_html(tmp_path, long):
    random = np.random.default_rng(7)
    frame = pd.DataFrame({"text": ["a"] * 10_000, "audio": [None] * 10_000})
    judged = frame.assign(mark=random.random(10_000) < 0.5, rating=random.integers(1, 6, 10_000))
    if long:
        judged["note"] = [" ".join(map(str, random.integers(0, 999, 8))) for _ in range(10_000)]
    plain = len(AudioTable(frame).static_html())
    html = str(AudioTable(judged).static_html())
    assert len(html) - plain < 60_000
    assert ("notes have no room here" in html) is long
    text = html.split("<pre", 1)[1].split(">", 1)[1].split("</pre>", 1)[0]
    (tmp_path / "marks.csv").write_text(text, encoding="utf-8")
    again = sl.show(frame, marks=tmp_path / "marks.csv").frame
    assert again["mark"].tolist() == judged["mark"].tolist()
    assert again["rating"].tolist() == judged["rating"].tolist()


def test_marks_without_a_kernel_are_said_not_to_be_kept(show_table):
    table = AudioTable(rows())
    page = show_table(table)
    warning = page.locator(".sl-warning")
    page.get_by_role("button", name="Mark row 1").click()
    assert warning.is_hidden()
    page.evaluate("() => { model.send = () => { throw new Error('closed'); }; }")
    page.get_by_role("button", name="Mark row 2").click()
    assert "what you mark, rate and note now is not kept" in warning.inner_text()
    page.evaluate("delete model.send")
    page.get_by_role("button", name="Mark row 3").click()
    page.wait_for_function("document.querySelector('.sl-warning').hidden")
