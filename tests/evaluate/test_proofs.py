"""Pages of every study prove themselves, and a changed digit is found wherever a number stands."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html import unescape

import pandas as pd
import pytest

from evaluate.test_listening import rows_of
from evaluate.test_verify import sentences
from speechlab import evaluate
from support.studies import serving

pytestmark = pytest.mark.slow

STUDIES = (
    *("joined", "voices", "noise", "three systems", "translation", "listening"),
    *("changes", "changes of translations", "watch"),
)
FOLDERS = ("noise", "voices")


def of_services(folder):
    """The reports that need a service."""
    how = {"store": folder / "store", "progress": False}
    texts = pd.DataFrame({"text": ["good morning", "good evening", "good night"], "language": "en"})
    ways = {"source_lang": "en", "target_lang": "ja"}
    with serving(languages=("ja", "en")) as staged:
        lab = staged.lab
        spoken = evaluate.round_trip(lab, texts, speed=2, **how)
        yield "voices", evaluate.voices(lab, texts, dnsmos=0, speed=2, **how)
        first, other = (
            evaluate.translation(
                lab, texts, glossary=["good"], back=True, speed=2, context=context, **ways, **how
            )
            for context in ("A letter.", "A poem.")
        )
        yield "translation", first
        yield "changes of translations", other.compare(first)
        clips = [
            lab.synthesize(text, voice="low").save(folder / f"{n}.wav")
            for n, text in enumerate(texts["text"])
        ]
        rows = texts.assign(audio=clips)
        noisy = {"noise_db": (20, 5), "speechless": 1, "hotwords": ["evening"], "speed": 2}
        yield "noise", evaluate.recognition(lab, rows, **noisy, **how)
        heard = evaluate.recognition(lab, rows.assign(language="ja"), voice=None, **how)
        yield "joined", evaluate.Report.combine("Voices and what was understood", [spoken, heard])


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Each report as a page, and some as a folder."""
    folder = tmp_path_factory.mktemp("pages")
    reports = dict(of_services(folder))
    names = {"one": "one", "other": "other", "third": "text"}
    dated = sentences(20).assign(day=pd.Timestamp("2026-11-26"))
    reports["three systems"] = evaluate.recognition(None, dated, hypotheses=names, formatting=True)
    scores = {
        (n, item, *names): n % 3 + len(names[0])
        for n in range(7)
        for item in "ab"
        for names in [("one",), ("two",)]
    }
    reports["listening"] = evaluate.listening(rows_of(scores), draws=200)
    by_speaker = [
        rows.assign(speaker=[f"s{row % 8}" for row in range(len(rows))])
        for rows in (sentences(), sentences(wrong=(3, 5)))
    ]
    night, later = (evaluate.recognition(None, rows, hypotheses="one") for rows in by_speaker)
    reports["changes"] = later.compare(night)
    nights = [f"2026-11-{day:02}T03:{day:02}:00Z" for day in range(10, 14)]
    reports["watch"] = evaluate.watch([replace(night, record={**night.record, "made": at}) for at in nights])
    assert set(reports) == set(STUDIES)
    for name, report in reports.items():
        if name in FOLDERS:
            shutil.copy(report.save(folder / name) / "report.html", folder / f"{name}.html")
        else:
            report.save(folder / f"{name}.html")
    return folder


def test_a_folder_proves_itself_with_another_hash_seed(pages):
    """A folder is compared with its page; of the pages of all studies, a test below finds what was changed alone."""
    code = "import sys; from speechlab.evaluate import verify; print(verify(sys.argv[1]).answer)"
    command = [sys.executable, "-c", code, str(pages / "noise")]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=100)
    count, equal, _ = done.stdout.partition(" numbers recomputed, all equal.")
    assert (bool(equal), int(count.replace(",", "")) > 20) == (True, True), done.stdout


def test_pages_hold_their_proof_in_a_tenth_of_their_size(pages):
    for study in STUDIES:
        page = (pages / f"{study}.html").read_text("utf-8")
        held = re.search(r'<script type="application/json" id="report">(.*?)</script>', page)[0]
        assert len(held) < (len(page) - len(held)) / 10, study
        assert str(pages) not in page, study


def words_with_numbers(page):
    """Where words with numbers stand that people read: in texts and attributes, but not in the record."""
    start = page.index("<main>")
    main = re.sub(
        r"<script.*?</script>|<style.*?</style>|<pre>.*?</pre>|srcset=\"[^\"]*\"|(?:src|style|class|id)=\"[^\"]*\"|</?h\d",
        lambda part: " " * len(part[0]),
        page[start : page.index("</main>")],
        flags=re.DOTALL,
    )
    for word in re.finditer(r"[^\s<>\"]*\d[^\s<>\"]*", main):
        if "&#" not in word[0]:
            yield start + word.start(), word[0]


def cells_with_numbers(page):
    """Where numbers stand in the cells of the rows, with the column and the position of each."""
    held = re.search(r'<script type="application/json" id="data">([^<]*)<', page)
    for column in re.finditer(r'"c:([^"]+)":(\[(?:"(?:[^"\\]|\\.)*"|[^]"])*\])', held[1]):
        for cell in re.finditer(r"(?<=[\[,])-?\d[\d.e-]*(?=[\],])", column[2]):
            yield held.start(1) + column.start(2) + cell.start(), cell[0]


def other_digit(word):
    return re.sub(r"[0-9]", lambda digit: str((int(digit[0]) + 1) % 9 + 1), word, count=1)


@pytest.mark.parametrize("study", STUDIES)
def test_changed_digits_are_found_where_they_stand(pages, tmp_path, study):
    """All numbers of a page are changed at once."""
    page = (pages / f"{study}.html").read_text("utf-8")
    words, cells = list(words_with_numbers(page)), list(cells_with_numbers(page))
    assert len(words) > 12
    text = page
    for place, word in sorted([*words, *cells], reverse=True):
        text = text[:place] + other_digit(word) + text[place + len(word) :]
    changed = tmp_path / "page.html"
    changed.write_text(text, "utf-8")
    unequal = evaluate.verify(changed).unequal
    new = [unescape(other_digit(word)) for _, word in words]
    new += [str(json.loads(other_digit(cell))) for _, cell in cells]
    *found, seal = unequal["reported"]
    assert unequal["place"].iloc[-1] == "page, sha256", seal
    assert Counter(found) == Counter(new)


def test_sounds_in_the_folder_of_voices_are_measured_again(pages, tmp_path):
    folder = tmp_path / "voices"
    shutil.copytree(pages / "voices", folder)
    rows = pd.read_parquet(folder / "results.parquet")
    rows.assign(loudness_lufs=rows["loudness_lufs"].where(rows.index > 0, -90.0)).to_parquet(
        folder / "results.parquet"
    )
    verified = evaluate.verify(folder)
    assert "sounds, row 0, loudness_lufs" in set(verified.unequal["place"])
    assert "The sounds of 6 clips were measured again." in verified.notes
    assert any("taken as they are" in note for note in evaluate.verify(pages / "voices.html").notes)


def test_the_hash_is_that_of_all_words_of_the_page(pages, tmp_path):
    page = (pages / "listening.html").read_text("utf-8")
    seal = re.search(r'"seal":"([0-9a-f]{64})"', page)[1]
    words = "\n".join(page.replace(seal, "0" * 64, 1).split())
    assert hashlib.sha256(words.encode()).hexdigest() == seal
    changed = tmp_path / "page.html"
    changed.write_text(page.replace("</main>", " </main>") + "<!-- 1 -->", "utf-8")
    places = evaluate.verify(changed).unequal["place"].tolist()
    assert places[-1] == "page, sha256"
    assert places[0].startswith("page, markup after")
