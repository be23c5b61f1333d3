"""Reports prove themselves: numbers follow from rows, a changed digit is found, corrections are scored anew."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.errors import InvalidRequestError, StoreError
from support.forked import speechlab
from support.studies import serving

WORDS = "the old clock on north tower strikes twice before every market opens at dawn".split()  # noqa: SIM905


def sentences(count=24, wrong=()):
    """Sentences with a wrong word in the references of some; two systems that err in other rows, one more often."""
    rows = []
    for row in range(count):
        words = [WORDS[(row * step + row) % len(WORDS)] for step in range(1, 9)]
        said = " ".join(words)
        reference = said.replace(words[4], "lantern") if row in wrong else said
        one = said.replace(words[2], "shadow") if row % 4 == 0 else said
        other = said.replace(words[6], "window") if row % 2 == 0 else said
        rows.append((f"s{row}", reference, one, other, "en", 3.0))
    return pd.DataFrame(rows, columns=["id", "text", "one", "other", "language", "duration_s"])


def report_of(folder, frame=None, **options):
    frame = sentences() if frame is None else frame
    names = {"one": "one", "other": "other"}
    return evaluate.recognition(None, frame, hypotheses=names, store=folder / "store", **options)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    report = report_of(folder)
    report.save(folder / "report")
    report.save(folder / "page.html")
    return folder


@pytest.mark.parametrize("name", ["report", "page.html"])
def test_every_number_follows_from_the_rows(saved, name):
    verified = evaluate.verify(saved / name)
    assert verified.answer == f"{verified.numbers:,} numbers recomputed, all equal."
    assert verified
    assert verified.numbers > 300


def test_a_study_of_voices_and_one_of_translations_prove_themselves(tmp_path):
    with serving(languages=("ja", "en")) as staged:
        texts = pd.DataFrame({"text": ["good morning", "good evening", "good night"], "language": "en"})
        how = {"store": tmp_path / "store", "progress": False}
        reports = [
            evaluate.round_trip(staged.lab, texts, **how),
            evaluate.voices(staged.lab, texts, dnsmos=0, speed=1, **how),
            evaluate.translation(
                staged.lab, texts, source_lang="en", target_lang="ja", glossary=["good"], back=True, **how
            ),
        ]
    for number, report in enumerate(reports):
        for name in (f"{number}", f"{number}.html"):
            report.save(tmp_path / name)
            verified = evaluate.verify(tmp_path / name)
            assert verified, verified
            assert verified.numbers > 20


def changed(text, number, place):
    """The page with another digit in the number at this place."""
    digit = str((int(number[-1]) + 1) % 10)
    return text[: place + len(number) - 1] + digit + text[place + len(number) :]


def places_of(page):
    """Where numbers stand that a reader sees, and those of the rows."""
    main = page.index("<main>"), page.index("</main>")
    record = page.index("<pre>{"), page.index("</pre>")
    visible = re.finditer(r"(?<=>)[^<]*", page[main[0] : main[1]])
    for match in visible:
        for number in re.finditer(r"\d+(?:[.,]\d+)*", match[0]):
            place = main[0] + match.start() + number.start()
            if not record[0] < place < record[1]:
                yield number[0], place
    rows = page.index('"c:errors_one"'), page.index("]", page.index('"c:errors_one"'))
    for number in re.finditer(r"(?<=[\[,])\d+", page[rows[0] : rows[1]]):
        yield number[0], rows[0] + number.start()


def test_a_changed_digit_is_found_wherever_a_number_stands(saved, tmp_path):
    page = (saved / "page.html").read_text("utf-8")
    script_of = page.index('<script type="application/json" id="report">')
    numbers = [
        (number, place)
        for number, place in places_of(page)
        if place < script_of or place > page.index("</main>")
    ]
    assert len(numbers) > 60
    random = np.random.default_rng(4)
    for at in random.choice(len(numbers), 25, replace=False):
        (tmp_path / "page.html").write_text(changed(page, *numbers[at]), "utf-8")
        verified = evaluate.verify(tmp_path / "page.html")
        assert not verified, numbers[at]
        assert len(verified.answer) < 700


def test_a_figure_a_row_and_a_table_that_were_changed_are_found(saved, tmp_path):
    page = (saved / "page.html").read_text("utf-8")
    drawn = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', page)[1]
    other = base64.b64encode(base64.b64decode(drawn).replace(b"<path", b"<path ", 1)).decode()
    (tmp_path / "page.html").write_text(page.replace(drawn, other), "utf-8")
    assert "figure" in evaluate.verify(tmp_path / "page.html").answer
    report = evaluate.Report.load(saved / "report")
    report.table.loc[3, "hypothesis"] = "something else"
    report.save(tmp_path / "rows")
    assert "rows, row 3, errors" in set(evaluate.verify(tmp_path / "rows").unequal["place"])
    report = evaluate.Report.load(saved / "report")
    report.summary.loc[0, "error_rate"] += 0.001
    report.save(tmp_path / "summary")
    verified = evaluate.verify(tmp_path / "summary")
    assert verified.unequal["place"].tolist() == ["summary, row 0, error_rate"]
    assert len(verified.answer) < 300


def test_the_command_says_in_one_line_what_is_so(saved, tmp_path):
    done = speechlab("verify", str(saved / "report"))
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stdout.strip().endswith("numbers recomputed, all equal.")
    page = (saved / "page.html").read_text("utf-8")
    number, place = next(iter(places_of(page)))
    (tmp_path / "page.html").write_text(changed(page, number, place), "utf-8")
    assert speechlab("verify", str(tmp_path / "page.html")).returncode == 1
    (tmp_path / "none.html").write_text("<main></main>")
    assert speechlab("verify", str(tmp_path / "none.html")).returncode == 2
    assert speechlab("verify", str(tmp_path / "nowhere.html")).returncode == 2


def test_a_page_without_rows_or_with_damaged_ones_is_told(saved, tmp_path):
    page = (saved / "page.html").read_text("utf-8")
    (tmp_path / "old.html").write_text(
        re.sub(r'<script type="application/json" id="report">.*?</script>', "", page)
    )
    with pytest.raises(InvalidRequestError, match="lacks its rows as data"):
        evaluate.verify(tmp_path / "old.html")
    (tmp_path / "damaged.html").write_text(page.replace('"frames":{"table":"', '"frames":{"table":"A'))
    with pytest.raises(StoreError, match="damaged"):
        evaluate.verify(tmp_path / "damaged.html")
    with pytest.raises(StoreError):
        evaluate.verify(tmp_path / "nothing.html")


def test_a_page_holds_its_rows_in_a_tenth_of_its_size_and_no_path(saved):
    page = (saved / "page.html").read_text("utf-8")
    held = re.search(r'<script type="application/json" id="report">(.*?)</script>', page)[1]
    assert len(held) < len(page) / 10
    assert str(saved) not in page
    assert json.loads(held)["study"] == "recognition"


def test_references_that_are_wrong_are_suspected_corrected_and_scored_anew(tmp_path):
    report = report_of(tmp_path, sentences(wrong=(3, 11, 17)))
    suspects = report.suspects()
    assert set(suspects["row"]) == {"s3", "s11", "s17"}
    fixes = pd.DataFrame({"row": suspects["row"], "old": suspects["text"], "new": suspects["suggestion"]})
    fixes.to_csv(tmp_path / "fixes.csv", index=False)
    corrected = evaluate.corrected(report, tmp_path / "fixes.csv")
    before, after = (int(one.table["errors"].sum()) for one in (report, corrected))
    assert before - after == 6  # of both systems
    assert str(corrected.findings[0]).startswith(f"3 references were corrected; 6 of {before} errors (")
    again = report_of(tmp_path, sentences())
    assert corrected.summary["error_rate"].tolist() == again.summary["error_rate"].tolist()
    assert report.table["text"].tolist() == sentences(wrong=(3, 11, 17))["text"].tolist() * 2
    corrected.save(tmp_path / "corrected")
    assert not evaluate.verify(tmp_path / "corrected").unequal["place"].str.startswith("summary").any()


def test_one_system_suspects_nobody(tmp_path):
    report = evaluate.recognition(None, sentences(), hypotheses="one", store=tmp_path / "store")
    with pytest.raises(InvalidRequestError, match="nobody to agree with"):
        report.suspects()
