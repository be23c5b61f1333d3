"""Files and folders of strangers: what unpacks to gigabytes, rows and parts that name others, pipes, circles."""

import gzip
import io
import json
import os
import socket
import sqlite3
import tarfile
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

import speechlab as sl
from speechlab import Store, batch, datasets, evaluate, segments
from speechlab.audio import AudioClip, FileSegment
from speechlab.client import system
from speechlab.errors import (
    AudioDecodeError,
    AudioError,
    AudioLimitError,
    InvalidRequestError,
    SegmentFileError,
    SpeechLabError,
    StoreError,
)
from speechlab.tables import read_stored_table
from support.memory import grown_mib

DIGEST = "0" * 64


CUE = b"1\n00:00:00,000 --> 00:00:01,000\nx\n"


def pack_header(kind):
    """A tar whose name or fields would take 100 MiB."""
    header = tarfile.TarInfo("a")
    header.type, header.size = kind, 100 << 20
    return header.tobuf() + bytes(199 << 20)


def pack_table(table):
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def pack_texts():
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000, pa.int32()), pa.array(["x" * 1_000_000]))
    return pack_table(pa.table({"text": texts}))


PLACE = "unpacks to more than"
LINES = "more than 200,000 lines"
READERS = (datasets.read, segments.read, read_stored_table)
LARGE = [
    *(
        (name, lambda unit=unit: gzip.compress(unit * (160 << 20), 1), PLACE)
        for name, unit in (("a.srt.gz", b"0"), ("a.csv.gz", b"\n"))
    ),
    *(
        (name, lambda line=line: gzip.compress(line * (12_000_000 // len(line))), LINES)
        for name, line in (("a.jsonl.gz", b"{}\n"), ("a.csv.gz", b"a,b\n"), ("a.srt.gz", CUE))
    ),
    ("a.json.gz", lambda: gzip.compress(b"[" + b"[]," * 3_000_000 + b"{}]"), "more than 1,500,000 values"),
    *(("a.tar", lambda kind=kind: pack_header(kind), "104,857,600 bytes") for kind in (b"L", b"x")),
    *(("a.csv", lambda sign=sign: sign * 1_000_000 + b"a", "20,000 columns") for sign in (b",", b"\t")),
    ("a.parquet", lambda: pack_table(pa.table({"text": pa.array(np.zeros(5_000_000, np.int8))})), PLACE),
    ("a.parquet", pack_texts, PLACE),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pack", "words"), LARGE, ids=[f"{name} {words}" for name, _, words in LARGE]
)
def test_what_is_large_inside_is_refused(tmp_path, name, pack, words):
    path = tmp_path / name
    path.write_bytes(pack())
    captions = name[2:5] in {"srt", "vtt"} or name == "a.json.gz"
    for read in READERS if name == "a.parquet" else READERS[captions : captions + 1]:
        with grown_mib() as grown, pytest.raises(SpeechLabError, match=words) as caught:
            read(path)
        assert grown() < (40 if name == "a.tar" else 100)
        assert isinstance(caught.value, InvalidRequestError | SegmentFileError | StoreError)


@pytest.mark.slow
def test_tables_have_a_limited_number_of_columns(tmp_path):
    (tmp_path / "a.parquet").write_bytes(
        pack_table(pa.table({f"a{number}": pa.nulls(0, pa.int8()) for number in range(20_001)}))
    )
    lines = [json.dumps({f"{row}-{name}": 1 for name in range(3_000)}) for row in range(10)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    for name, words in (
        ("a.parquet", "at most 20,000"),
        ("a.jsonl", "more than 20,000 columns, from line 7 on"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            datasets.read(tmp_path / name)


@pytest.fixture(scope="module")
def silence(tmp_path_factory):
    """Minutes of silence: FLAC that says how long it is, FLAC that does not, and OGG of many streams."""
    folder = tmp_path_factory.mktemp("silence")
    for name, blocks, channels in (("known.flac", 20, 8), ("a.ogg", 3, 1)):
        with soundfile.SoundFile(folder / name, "w", 48_000, channels) as file:
            for _ in range(blocks):
                file.write(np.zeros((480_000, channels), np.int16))
    data = bytearray((folder / "known.flac").read_bytes())
    data[21:26] = bytes([data[21] & 0xF0, 0, 0, 0, 0])  # of the number of frames in its header
    (folder / "unknown.flac").write_bytes(data + bytes(70_000))  # more than a frame behind the last one
    (folder / "chained.ogg").write_bytes((folder / "a.ogg").read_bytes() * 14)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["known.flac", "unknown.flac", "chained.ogg"])
def test_silence_does_not_fill_the_memory(silence, name):
    for read in (AudioClip.from_file, lambda path: FileSegment(path, 1).samples):
        with grown_mib() as grown, pytest.raises(AudioError, match=r"too large") as caught:
            read(silence / name)
        assert grown() < 40
        assert isinstance(caught.value, AudioLimitError)


def test_an_ogg_whose_time_goes_back_is_damaged(silence):
    data = bytearray((silence / "a.ogg").read_bytes())
    last = data.rindex(b"OggS")
    data[last + 6 : last + 14] = (10).to_bytes(8, "little")
    with pytest.raises(AudioDecodeError, match="time goes back"):
        AudioClip.from_bytes(bytes(data))


def test_a_pipe_is_no_recording(tmp_path):
    os.mkfifo(tmp_path / "a.wav")
    for read in (AudioClip.from_file, lambda path: FileSegment(path, 1).samples):
        with pytest.raises((OSError, AudioError), match="no file"):
            read(tmp_path / "a.wav")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as store:
        store.put("key", operation="speech", request={}, response={}, files={"audio": (b"sound", ".wav")})
        yield store


def test_rows_of_a_store_name_its_files_alone(store):
    for change in (
        "UPDATE blobs SET sha256 = '/../../../etc/passwd', suffix = ''",
        "UPDATE blobs SET suffix = '/../../../etc/passwd'",
        "UPDATE results SET response = '['",
    ):
        with sqlite3.connect(store.path / "store.sqlite") as other:
            other.execute(change)
        assert store.get("key") is None


@pytest.mark.parametrize("what", ["file", "folder"])
def test_files_of_a_store_are_no_links(tmp_path, store, what):
    file = store.get("key").files["audio"]
    moved = file if what == "file" else file.parent
    moved.rename(tmp_path / "elsewhere")
    moved.symlink_to(tmp_path / "elsewhere")
    assert store.get("key") is None


def test_a_store_has_no_triggers(tmp_path, store):
    with sqlite3.connect(store.path / "store.sqlite") as other:
        other.execute("CREATE TRIGGER gone AFTER INSERT ON results BEGIN DELETE FROM results; END")
    with pytest.raises(StoreError, match="triggers"):
        Store(store.path)


def translate(store, texts=("hello",)):
    with system("echo", translate=lambda text: text, version="1") as lab:
        given = {"source_lang": "en", "target_lang": "ja", "store": store, "progress": False}
        return batch.translate(list(texts), lab, **given)["status"].tolist()


def test_lines_of_a_part_are_checked(store):
    """A part of a run that was lost holds what its workers had got."""
    good = {
        "key": "key",
        "timing": {"attempts": 1, "latency_s": 0.5},
        "files": {"audio": [DIGEST, ".wav", 5]},
        "attempt": ["key", 0.0, 0.5, "ok", 200, None, None],
        "request": {},
        "response": {},
        "audio_s": 1.0,
        "tokens": 0,
    }
    bad = [
        {"files": {"audio": ["../../../etc/passwd", "", 5]}},
        {"files": {"audio": [DIGEST, "/../x", 5]}},
        {"timing": {"latency_s": {}}},
        {"key": 3},
        {"attempt": ["key", 0.0, 0.5, "ok", 10**30, None, None]},
    ]
    keyed = [{**good, "key": f"bad {number}", **change} for number, change in enumerate(bad)]
    lines = [{**good, "key": "good", "files": {}}, [], None, *keyed, {**good, "key": "last", "files": {}}]
    part = store.path / "parts" / "a-run" / "translate-1-0.jsonl"
    part.parent.mkdir(parents=True)
    part.write_text("{\n" + "\n".join(map(json.dumps, lines)))
    before = len(store)
    assert translate(store) == ["ok"]
    assert not part.exists()
    assert [store.get(key) is not None for key in ("good", "last")] == [True, True]
    assert len(store) == before + 2 + 2  # and the translation, and the catalogue


def test_no_folder_behind_a_link_is_removed(tmp_path, store):
    (tmp_path / "home" / "pictures").mkdir(parents=True)
    (store.path / "parts").symlink_to(tmp_path / "home")
    assert translate(store) == ["ok"]
    assert (tmp_path / "home" / "pictures").is_dir()


WAV = AudioClip(np.zeros(800), 8_000).encode("wav")


@pytest.fixture
def odd(tmp_path):
    """A folder with two recordings, and what is named as recordings and texts are."""
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "good.wav").write_bytes(WAV)
    (folder / "good.txt").write_text("good")
    for name in ("pipe.wav", "pipe.txt", "good2.txt"):
        os.mkfifo(folder / name)
    (folder / "good2.wav").write_bytes(WAV)
    (folder / "device.wav").symlink_to("/dev/zero")
    (folder / "device.txt").symlink_to("/dev/zero")
    (folder / "circle.wav").symlink_to(folder / "circle.wav")
    (folder / "folder.wav").mkdir()
    (folder / "up").symlink_to(folder.parent)
    (folder / "self").symlink_to(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s.wav"))
    with open(os.fsencode(folder) + b"/\xff\xfe.wav", "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(WAV)
    (folder / "\x1b[31m.wav").write_bytes(WAV)
    (folder / "a\nb.wav").write_bytes(WAV)
    return folder


def measure(clip, **_):
    return f"{clip.duration_s}"


@pytest.mark.slow
def test_what_is_no_recording_costs_its_own_row(odd, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = datasets.read(odd, language="en")
        assert sorted(table.loc[table["text"].notna(), "text"]) == ["good"]
        system = sl.system("length", transcribe=measure, version="1")
        done = sl.batch.transcribe(table, system, store=tmp_path / "store", progress=False)
        names = [os.fsencode(path).rpartition(b"/")[2] for path in done["audio"]]
        good = {name for name, status in zip(names, done["status"], strict=True) if status != "error"}
        assert good == {b"good.wav", b"good2.wav", b"\x1b[31m.wav", b"a\nb.wav", b"\xff\xfe.wav"}
        assert "<script>" not in sl.show(done).static_html()
        table = table[
            [b"\xff" not in os.fsencode(path) for path in table["audio"]]
        ]  # studies refuse the name
        study = evaluate.recognition(
            system, table.assign(text="0.1"), store=tmp_path / "store", progress=False
        )
        try:
            study.save(tmp_path / "report")
        except SpeechLabError as error:
            assert str(error).isprintable()


def test_a_manifest_is_a_file(tmp_path):
    for name in ("manifest.csv", "manifest.jsonl", "metadata.json"):
        for kind in ("pipe", "device", "circle"):
            folder = tmp_path / f"{name} {kind}"
            folder.mkdir()
            if kind == "pipe":
                os.mkfifo(folder / name)
            else:
                (folder / name).symlink_to("/dev/zero" if kind == "device" else folder / name)
            for place in (folder, folder / name):
                with pytest.raises(SpeechLabError):
                    datasets.read(place)
