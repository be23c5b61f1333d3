"""What every report can do: pages, folders and back, tables and words for papers."""

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.metrics import score

HOSTILE = r"50% & <b>$x_1$</b> \input{secret} | `rm`"


def made(folder, rows=24, figures=False, **columns):
    """A report of English and Japanese rows with sound; without figures it is saved at once."""
    tone = AudioClip((0.3 * np.sin(np.arange(8_000) / 5)).astype(np.float32), 16_000)
    each = {
        "text": ["the cat sat on the mat", "精度を上げる"],
        "hypothesis": ["the hat sat on the mat", "制度を上げる"],
        "language": ["en", "ja"],
        "voice": ["a", "b"],
        "voice_name": [HOSTILE, "声"],
    }
    cells = {name: [pair[row % 2] for row in range(rows)] for name, pair in each.items()}
    cells |= {"id": [f"r{row}" for row in range(rows)], "gender": "female", "duration_s": 0.5, "error": None}
    cells |= {"audio": [str(tone.save(folder / f"talk-{row}.wav")) for row in range(rows)], "status": "ok"}
    frame = pd.DataFrame(cells).assign(**columns)
    record = {"study": "made", "runs": []}
    report = evaluate.Report.of_scores("Two voices", score(frame).assign(loop=False), record=record)
    return report if figures else dataclasses.replace(report, drawings=())


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return made(tmp_path_factory.mktemp("sounds"), rows=44, figures=True)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return made(tmp_path_factory.mktemp("few sounds"), rows=2)


def held(page, name):
    return json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page)[1])


@pytest.mark.slow
def test_a_page_of_many_rows_shows_some(tmp_path, monkeypatch):
    for module in ("contents", "page"):
        monkeypatch.setattr(f"speechlab.evaluate._writing.{module}.MANY_ROWS", 30)
        monkeypatch.setattr(f"speechlab.evaluate._writing.{module}.SHOWN_ROWS", 5)
    frame = pd.DataFrame({"text": ["the cat"] * 40, "heard": ["the cat"] * 40, "language": "en"})
    frame.loc[[7, 31], "heard"] = "a dog"
    report = evaluate.recognition(None, frame, hypotheses="heard", progress=False, store=tmp_path / "store")
    assert len(report.build_shown_table().rows) == 10
    text = report.save(tmp_path / "many.html").read_text("utf-8")
    assert held(text, "data")["rows"]["c:hypothesis"].count("a dog") == 2
    assert (
        "Of 40 rows, the 5 with most errors and a random sample of 5 are shown; figures are of all." in text
    )
    assert not len(evaluate.verify(tmp_path / "many.html").unequal)


@pytest.mark.slow
def test_a_page_holds_everything(report, tmp_path):
    path = report.save(tmp_path / "report.html")
    page = path.read_text("utf-8")
    assert path.stat().st_size < evaluate.PAGE_BYTES
    assert len(held(page, "sounds")) == len(held(page, "data")["rows"]["c:text"]) == 44
    assert all(data for data, _ in held(page, "sounds"))
    assert report.charted == set(report.figures())  # the table has the same as bars
    assert page.count('class="bar"') == len(report.summary)
    assert page.count("data:image/svg+xml;base64,") == 0
    assert "Levenshtein" in page
    assert "Record of the run" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_sounds_beyond_the_size_of_a_page_stay_out_in_words(tmp_path):
    report = made(tmp_path, rows=12)
    whole = len(report.to_html().encode())
    small = report.to_html(max_bytes=whole - 10_000)
    assert len(small.encode()) <= whole - 10_000
    left_out = [note for data, note in held(small, "sounds") if not data]
    assert 0 < len(left_out) < 12
    assert set(left_out) == {"not in this page, which is full"}
    assert f"The sound of {len(left_out)} of 12 rows is not in this page" in small


@pytest.mark.slow
def test_a_folder_is_read_back_as_it_was(report, tmp_path):
    folder = report.save(tmp_path / "out")
    moved = tmp_path / "elsewhere"
    folder.rename(moved)
    again = evaluate.Report.load(moved)
    fields = "title columns record study conclusion findings views drawings said facts"
    for name in fields.split():
        assert getattr(again, name) == getattr(report, name), name
    pd.testing.assert_frame_equal(again.summary, report.summary, check_dtype=False)
    without = [one.table.drop(columns="audio") for one in (again, report)]
    pd.testing.assert_frame_equal(*without, check_dtype=False)
    assert again.table["audio"].str.startswith(str(moved)).all()
    assert AudioClip.from_file(again.table["audio"].iloc[0]).duration_s == 0.5
    again.save(moved)  # onto itself
    assert evaluate.Report.load(moved).table["audio"].tolist() == again.table["audio"].tolist()


@pytest.mark.slow
def test_recordings_that_are_in_the_folder_stay_as_they_are(tmp_path):
    clips = [AudioClip(np.full(frames, 0.2, np.float32), 16_000) for frames in (1_000, 2_000, 3_000)]
    columns = {"id": "same", "voice_name": "a", "audio": pd.Series(clips, dtype=object)}
    again = evaluate.Report.load(made(tmp_path, rows=3, **columns).save(tmp_path / "out"))
    turned = dataclasses.replace(again, table=again.table[::-1].reset_index(drop=True))
    turned.table.loc[2, "audio"] = str(clips[2].save(tmp_path / "other.wav"))
    third = evaluate.Report.load(turned.save(tmp_path / "out"))
    assert [AudioClip.from_file(path).frames for path in third.table["audio"]] == [3_000, 2_000, 3_000]
    third.save(tmp_path / "out")
    assert len(list((tmp_path / "out" / "audio").iterdir())) == 3  # without the one that no report names


@pytest.mark.slow
def test_texts_in_a_column_called_spoken_stay(tmp_path):
    (tmp_path / "secret").write_text("key", encoding="utf-8")
    texts = ["Hello there.", "", "a" * 5_000, "\0", "audio or spoken", "3.50"]
    rows = pd.DataFrame({"spoken": texts})
    loaded = evaluate.Report.load(evaluate.Report("texts", rows, rows).save(tmp_path / "report"))
    assert loaded.table["spoken"].tolist() == texts
    rows = pd.DataFrame({"spoken": ["Hello there.", str(tmp_path / "secret")]})
    with pytest.warns(UserWarning, match="not copied"):
        evaluate.Report("texts", rows, rows).save(tmp_path / "report")
    assert evaluate.Report.load(tmp_path / "report").table["spoken"].isna().all()


@pytest.mark.slow
def test_clips_and_bytes_are_kept_as_files(tmp_path):
    clip = AudioClip(np.full(8_000, 0.2, np.float32), 16_000)
    sounds = pd.Series([clip, clip.encode("flac"), b"nothing"], dtype=object)
    report = made(tmp_path, rows=3, audio=sounds, id="精度を上げる" * 20)
    again = evaluate.Report.load(report.save(tmp_path / "out"))
    assert [str(path)[-4:] for path in again.table["audio"][:2]] == [".wav", "flac"]
    assert pd.isna(again.table["audio"][2])
    assert [AudioClip.from_file(path).frames for path in again.table["audio"][:2]] == [8_000, 8_000]


@pytest.mark.slow
def test_a_report_leaves_no_files_of_the_earlier_one(tmp_path):
    report = made(tmp_path, rows=2, figures=True)
    folder = report.save(tmp_path / "out")
    mine = [folder / "mine.parquet", folder / "figures" / "mine.svg"]
    theirs = [folder / name for name in ("hotwords.parquet", "figures/noise.svg", "../outside.parquet")]
    for one in (*mine, *theirs):
        one.write_bytes(b"data")
    record = json.loads((folder / "record.json").read_bytes())
    files = record["files"]
    assert {"results.parquet", "figures/error-rates.svg"} <= set(files)
    listed = [*files, "hotwords.parquet", "figures/noise.svg", "../outside.parquet"]
    (folder / "record.json").write_text(json.dumps({**record, "files": listed}))
    report.save(folder)
    assert [one.exists() for one in theirs] == [False, False, True]
    assert all((folder / name).is_file() for name in files if "/" in name or name == "results.parquet")
    assert all(one.read_bytes() == b"data" for one in mine)


@pytest.mark.slow
def test_signs_of_direction_turn_no_words_of_the_page(small):
    turned, shown = "\N{RIGHT-TO-LEFT OVERRIDE}", "live \N{REPLACEMENT CHARACTER} evil"
    page = dataclasses.replace(small, title=f"live {turned} evil").to_html()
    assert turned not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert f"<title>{shown}</title>" in page


@pytest.mark.slow
def test_a_folder_with_tables_of_others_is_not_written_over(small, tmp_path):
    theirs = tmp_path / "results.csv"
    theirs.write_text("theirs")
    told = r"has results\.csv, which would be lost; name another folder"
    with pytest.raises(InvalidRequestError, match=told):
        small.save(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["results.csv"]
    assert theirs.read_text() == "theirs"
    theirs.rename(tmp_path / "other.csv")
    assert small.save(small.save(tmp_path)) == tmp_path  # a report of ours is replaced, also one half written
    (tmp_path / "record.json").write_bytes(b"")
    assert evaluate.Report.load(small.save(tmp_path)).title == small.title


@pytest.mark.slow
def test_what_is_no_report_or_cannot_be_written_says_so(small, tmp_path):
    folder = small.save(tmp_path / "out")
    for place, told in (
        (tmp_path, r"holds no report: record\.json is missing"),
        (tmp_path / "nowhere", "holds no report: it is not there; name a folder"),
        (folder / "report.html", "holds no report: it is no folder; name a folder"),
    ):
        with pytest.raises(StoreError, match=told):
            evaluate.Report.load(place)
    record = '{"kind": "os.system", "fields": {}, "record": {}}'
    for file, data in (("results.parquet", b"damaged"), ("record.json", record.encode())):
        (folder / file).write_bytes(data)
        with pytest.raises(StoreError, match="cannot be read"):
            evaluate.Report.load(folder)
    for place in (tmp_path / ("long" * 100), folder / "record.json" / "page.html"):
        with pytest.raises(StoreError, match="cannot write"):
            small.save(place)
    twice = evaluate.Report("Twice", pd.DataFrame([[1, 2]], columns=["a", "a"]), small.summary)
    huge = evaluate.Report("Huge", pd.DataFrame({"a": [2**80]}), small.summary)
    for odd in (twice, huge):
        with pytest.raises(StoreError, match="holds what Parquet cannot"):
            odd.to_parquet(tmp_path / "odd.parquet")


@pytest.mark.slow
def test_methods_name_what_was_used_and_nothing_else(report, tmp_path):
    text, sources = report.methods()
    assert "Japanese was counted by characters, normalized by ja-" in text
    assert "English was counted by words, normalized by en-" in text
    assert "Readings are the kana" in text
    assert "percentile bootstrap" in text  # 22 utterances a voice
    cited = {int(number) for marks in re.findall(r"\[([\d, ]+)\]", text) for number in marks.split(",")}
    assert cited == set(range(1, len(sources) + 1))
    assert not re.search("chrF|DNSMOS|Holm|LUFS", text)
    few = made(tmp_path, rows=2).methods()
    assert "bootstrap" not in few.text
    assert not any("Bisani" in source for source in few.sources)


def test_tables_for_papers_have_all_groups(report):
    """Hostile texts are in strangers/test_fields."""
    assert "1. V. I. Levenshtein" in report.to_markdown()
    latex = report.to_latex(label="tab:one")
    assert r"50\% \& \textless{}b\textgreater{}\$x\_1\$" in latex
    assert latex.count(r"\\") == 1 + len(report.summary)


def test_names_break_no_table(tmp_path):
    names = ["[1] pt", "* one", "a|b"]  # [ and * are arguments behind the end of a row
    report = made(tmp_path, rows=6, voice=names * 2, voice_name=names * 2)
    heads = [line.partition(" &")[0] for line in report.to_latex().splitlines()]
    assert {"{}[1] pt", "{}* one", r"a\textbar{}b"} <= set(heads)
    heads = [line[2:12].rstrip() for line in report.to_markdown().splitlines()]
    assert any(head.startswith(r"a\|b") for head in heads)


def test_one_parquet_file_with_its_record(report, tmp_path):
    path = report.to_parquet(tmp_path / "rows.parquet")
    assert pd.read_parquet(path)["id"].tolist() == report.table["id"].tolist()
    kept = json.loads(pq.read_schema(path).metadata[b"speechlab_report"])
    assert kept == {"study": "made", "title": "Two voices", "record": {"study": "made", "runs": []}}


def test_a_report_that_another_version_saved_is_refused(small, tmp_path):
    record = small.save(tmp_path / "report") / "record.json"
    record.write_text(json.dumps({**json.loads(record.read_text("utf-8")), "format": 99}), "utf-8")
    told = r"another version of speechlab saved .*\(its format is 99, the one known"
    with pytest.raises(StoreError, match=told):
        evaluate.Report.load(tmp_path / "report")
