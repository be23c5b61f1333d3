"""Reports of strangers: names of files that are no recordings or elsewhere, and pages that unpack to gigabytes."""

import base64
import json
import lzma
import re
import shutil
import sys
import zlib
from functools import reduce
from hashlib import sha256
from operator import getitem

import pandas as pd
import pytest

from speechlab import datasets, evaluate
from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError, StoreError
from support.memory import grown_mib

SECRET = "-----BEGIN OPENSSH PRIVATE KEY-----\nthe words of a key\n"


@pytest.fixture
def private(tmp_path):
    """What is nobody's business: a key, and a recording."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "id_rsa").write_text(SECRET)
    AudioClip([0.1] * 800, 8_000).save(folder / "private.wav")
    return folder


@pytest.fixture(scope="module")
def once_saved(tmp_path_factory):
    """A report that was saved: one row with its recording."""
    folder = tmp_path_factory.mktemp("saved")
    AudioClip([0.2] * 800, 8_000).save(folder / "talk.wav")
    rows = pd.DataFrame(
        {"audio": [str(folder / "talk.wav")], "text": "ten cats", "language": "en", "heard": "ten hats"}
    )
    return evaluate.recognition(None, rows, hypotheses="heard").save(folder / "theirs")


@pytest.fixture
def saved(tmp_path, once_saved):
    """A copy of it, which may be changed."""
    return shutil.copytree(once_saved, tmp_path / "theirs")


def set_cells(folder, table="results", **cells):
    frame = pd.read_parquet(folder / f"{table}.parquet")
    frame.assign(**cells).to_parquet(folder / f"{table}.parquet")


def every_byte_of(folder):
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.slow
def test_a_report_copies_recordings_alone(tmp_path, private):
    key, sound = private / "id_rsa", private / "private.wav"
    (private / "key.wav").write_text(SECRET)
    (tmp_path / "link.wav").symlink_to(key)
    files = [key, sound, private / "key.wav", "link.wav"]
    lines = [f"{file},ten cats,en,ten hats" for file in files]
    (tmp_path / "list.csv").write_text("\n".join(["audio,text,language,heard", *lines]))
    report = evaluate.recognition(None, datasets.read(tmp_path / "list.csv"), hypotheses="heard")
    with pytest.warns(UserWarning, match=r"3 files are gone or no recordings .*id_rsa") as warned:
        report.save(tmp_path / "report")
    assert [warning.filename for warning in warned] == [__file__]
    assert SECRET.encode() not in every_byte_of(tmp_path / "report")
    copies = [file.name for file in (tmp_path / "report" / "audio").iterdir()]
    assert copies == ["001-private.wav"]


@pytest.mark.parametrize("cell", ["{home}/private.wav", "audio/../../home/private.wav"])
def test_a_loaded_report_has_no_recordings_of_its_reader(tmp_path, private, saved, cell):
    cell = cell.format(home=private)
    set_cells(saved, audio=cell)
    with pytest.warns(UserWarning, match=r"1 file is outside the report's folder .*private\.wav"):
        report = evaluate.Report.load(saved)
    assert report.table["audio"].isna().all()
    report.save(tmp_path / "again")
    assert not (tmp_path / "again" / "audio").exists()


def test_a_relative_path_is_not_seen_from_the_working_folder(private, saved, monkeypatch):
    monkeypatch.chdir(private)
    set_cells(saved, audio="private.wav")
    report = evaluate.Report.load(saved)
    assert report.table["audio"].tolist() == [str(saved / "private.wav")]
    assert "data:audio" not in report.to_html()


def test_a_report_has_no_sound_in_other_columns(private, saved):
    for audio in (None, "audio/none.wav"):
        set_cells(saved, audio=audio, clip=str(private / "private.wav"), source=str(private / "private.wav"))
        report = evaluate.Report.load(saved)
        assert "data:audio" not in "".join(map(str, report.sections()))
        assert report.build_shown_table().rows.layout.audio == "audio"


@pytest.mark.parametrize("kind", ["recording", "table", "folder of recordings", "folder of figures"])
def test_links_lead_out_of_no_report(tmp_path, private, saved, kind):
    victim = tmp_path / "victim"
    victim.mkdir()
    if kind == "recording":
        copy = next((saved / "audio").iterdir())
        copy.unlink()
        copy.symlink_to(private / "private.wav")
        with pytest.warns(UserWarning, match="outside"):
            assert evaluate.Report.load(saved).table["audio"].isna().all()
    elif kind == "table":
        (saved / "results.parquet").rename(victim / "rows.parquet")
        (saved / "results.parquet").symlink_to(victim / "rows.parquet")
        with pytest.raises(StoreError, match="link"):
            evaluate.Report.load(saved)
    else:
        report = evaluate.Report.load(saved)
        name = "audio" if kind.endswith("recordings") else "figures"
        (saved / name).rename(tmp_path / "before")
        (saved / name).symlink_to(victim)
        with pytest.raises(StoreError, match="link"):
            report.save(saved)
        assert not [*victim.iterdir()]


def test_a_table_is_not_written_through_a_link(tmp_path, saved):
    report = evaluate.Report.load(saved)
    (tmp_path / "diary.txt").write_text("dear diary")
    for name in ("results.csv", "record.json", "report.html", "summary.parquet"):
        (saved / name).unlink()
        (saved / name).symlink_to(tmp_path / "diary.txt")
    report.save(saved)
    assert (tmp_path / "diary.txt").read_text() == "dear diary"


DRAWING = ("fields", "drawings", 0)
DAMAGES = [
    *((("tables", 0), name, "name") for name in ("../../victim/notes", "results", "nul\0", 3)),
    ((*DRAWING, "frames"), ["to_html"], ""),
    (("fields", "shown", "frame"), "save", ""),
    (("fields", "shown", "options", "audio"), "text", ""),
    (("fields", "findings"), [{"text": ["x"]}], ""),
    (("fields", "said"), GONE := object(), ""),
    ((*DRAWING, "function"), "Path", "damaged"),
    ((*DRAWING, "options"), {"language": "en", "path": "x"}, "damaged"),
    (DRAWING, {"title": "", "function": "timeline", "frames": [], "options": {"audio": "/etc/passwd"}}, "damaged"),
    # Arguments that belong to the place where a study was made.
    *((("record", "asked", "arguments", name), "/x", name) for name in ("executor", "concurrency", "store", "frame")),
]  # fmt: skip


def draw_or_run_again(saved, words):
    report = evaluate.Report.load(saved)
    report.figures() if words == "damaged" else report.rerun(None)


@pytest.mark.slow
def test_a_damaged_record_is_refused(saved):
    """Names of tables elsewhere, fields of another form, figures that are none of ours or read files, arguments."""
    whole = (saved / "record.json").read_bytes()
    for (*path, last), value, words in DAMAGES:
        record = json.loads(whole)
        at = reduce(getitem, path, record)
        at[last] = value
        if value is GONE:
            del at[last]
        (saved / "record.json").write_text(json.dumps(record))
        with pytest.raises((StoreError, InvalidRequestError), match=words or re.escape(str(saved))):
            draw_or_run_again(saved, words)
    (saved / "record.json").write_bytes(whole)
    assert evaluate.Report.load(saved)


@pytest.mark.slow
def test_hashes_of_files_elsewhere_are_not_told(saved, private):
    record = json.loads((saved / "record.json").read_bytes())
    record["sha256"][str(private / "id_rsa")] = "0" * 64
    (saved / "record.json").write_text(json.dumps(record))
    unequal = evaluate.verify(saved).unequal.set_index("place")["reported"]
    assert unequal.filter(like="id_rsa").tolist() == ["missing"]


@pytest.mark.parametrize("name", ["page.html", "a/new", "theirs"])
def test_a_full_disk_leaves_the_whole_report_or_none(tmp_path, saved, monkeypatch, name):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a module half written would stay
    earlier = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    report, before = evaluate.Report.load(saved), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(StoreError, match=r"cannot write .*free space"):
            report.save(tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == earlier
    assert (tmp_path / name).exists() == (name == "theirs")


FORGERIES = [
    ("<main>", "<p>The answer is 0%.</p><main>"),
    ("</main>", "</main><p>The answer is 0%.</p>"),
    ("</style>", "h1 { display: none } </style>"),
    ('<script type="module" async>', '<script type="module" async>alert(1);'),
    ("<h1 ", "<p><strong>The sound of 1 of 2 rows is not in this page. All is well.</strong></p><h1 "),
    ("script-src '", "script-src * '"),
    ('"label":"Text"', '"label":"Heard"'),
]


def write_sealed(page, text):
    """Write a page with the hash of its words, as evaluate/test_proofs has it."""
    unsealed = re.sub(r'(?<="seal":")\w{64}', "0" * 64, text, count=1)
    seal = sha256("\n".join(unsealed.split()).encode()).hexdigest()
    page.write_text(unsealed.replace("0" * 64, seal, 1), "utf-8")


@pytest.mark.slow
def test_a_forged_page_is_found_though_its_hash_fits(tmp_path, once_saved):
    text = (once_saved / "report.html").read_text("utf-8")
    page = tmp_path / "page.html"
    for before, after in FORGERIES:
        assert before in text
        write_sealed(page, text.replace(before, after, 1))
        assert not evaluate.verify(page), (before, after)
    write_sealed(page, text)
    assert evaluate.verify(page)


@pytest.mark.slow
def test_a_forged_figure_is_found_though_its_hash_fits(tmp_path):
    said = [f"{letter} cats" for letter in "abcdefghijklmnopqrst"]
    misheard = [text.replace("cats", "hats") for text in said]
    rows = pd.DataFrame({"text": said, "language": "en", "one": said, "other": misheard})
    study = evaluate.recognition(None, rows, hypotheses=["one", "other"])
    text = (study.save(tmp_path / "theirs") / "report.html").read_text("utf-8")
    page = tmp_path / "page.html"
    write_sealed(page, re.sub(r"<figure.*</figure>", "", text))
    assert not evaluate.verify(page)
    forged = re.sub(r'(?<=svg\+xml;base64,)[^"]*', base64.b64encode(b"<svg/>").decode(), text)
    digest = sha256(b"<svg/>" * 2).hexdigest()  # of the figure and of its form for a phone
    title = "Differences of systems, with 95% intervals"
    forged, count = re.subn(rf'(?<="figures":\{{"{title}":")\w{{64}}', digest, forged)
    assert count == 1
    write_sealed(page, forged)
    assert evaluate.verify(page).unequal["place"].tolist() == [f"page, figure {title}"]


def pack_spaces(count, dictionary=None):
    """So many MiB of spaces, in a header that asks for a dictionary of another size."""
    packer = lzma.LZMACompressor(filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}])
    packed = bytearray(b"".join([*(packer.compress(b" " * (1 << 20)) for _ in range(count)), packer.flush()]))
    if dictionary:  # written into the header: a packer with such a dictionary would take gigabytes
        end = 12 + 4 * packed[12]
        assert packed[14:16] == b"\x21\x01"
        packed[16] = dictionary
        packed[end : end + 4] = zlib.crc32(packed[12:end]).to_bytes(4, "little")
    return packed


BOMBS = {
    "texts": lambda: pack_spaces(120),
    "dictionary": lambda: pack_spaces(1, 34),  # of 512 MiB
    "rows": lambda: lzma.compress(b'{"table": {"text": ["S900000000", ["a"]]}}'),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOMBS)
def test_a_page_unpacks_to_a_limited_size(tmp_path, once_saved, kind):
    packed = base64.b64encode(BOMBS[kind]()).decode()
    page = tmp_path / "page.html"
    text = (once_saved / "report.html").read_text("utf-8")
    page.write_text(re.sub(r'(?<="frames":")[^"]*', packed, text), "utf-8")
    with grown_mib() as grown, pytest.raises(StoreError, match="damaged"):
        evaluate.verify(page)
    assert grown() < 100
