"""Peak memory of files and replies of strangers, above that of an ordinary one of the same kind.

    python benchmarks/strangers.py [NAME ...]

Each is read in a process of its own, which ends with an error or a value; VmHWM of Linux is its peak. Replies come
from a server in this process. Prints a line for each; exit status 1 if one takes more than 200 MiB above its like.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_MIB = 200
_MOST_S = 200.0
_MIB = 1 << 20
_Found = tuple[float, float, str]
_CHILD = """
import sys, time, warnings
warnings.simplefilter("ignore")
import speechlab as sl
from speechlab import datasets, evaluate, segments
path, began = sys.argv[1], time.monotonic()
try:
    {code}
    end = "read"
except Exception as error:
    end = type(error).__name__
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
print(f"{{peak:.0f}} {{time.monotonic() - began:.1f}} {{end}}")
"""
_CLIP = "sl.AudioClip.from_file(path)"
_TABLE = "datasets.read(path)"
_TIMED = "segments.read(path)"
_PAGE = "evaluate.verify(path)"
_STORE = "s = sl.Store(path); s.get('a'); s.attempts('a'); s.runs(); s.facts('a')"
_CLIENT = (
    "lab = sl.client.Client(path, api_key='sl:a', max_retries=0, timeout=60, transport={wire!r}); {call}"
)
_CALLS = {
    "catalogue": "lab.voices()",
    "transcript": "lab.transcribe(sl.AudioClip([0.0] * 800, 8_000))",
    "translation": "lab.translate('Hi.', source_lang='en', target_lang='ja')",
    "speech": "lab.synthesize('Hi.', voice='00000000-0000-4000-8000-000000000000', format='wav')",
}


def _sine(
    seconds: float, kind: str = "WAV", channels: int = 1, silent: bool = False, rate: int = 48_000
) -> bytes:
    import numpy as np
    import soundfile

    out = io.BytesIO()
    block = np.zeros((rate, channels), np.float32)
    if not silent:
        block += np.sin(np.arange(rate) / 9)[:, None] / 3
    with soundfile.SoundFile(out, "w", rate, channels, format=kind) as file:
        for _ in range(max(round(seconds), 1)):
            file.write(block)
    return out.getvalue()


def _wav(
    head: bytes = b"", size: int = 0xFFFF_FFFF, channels: int = 1, rate: int = 8_000, body: int = 1_000
) -> bytes:
    form = b"fmt \x10\0\0\0\1\0" + channels.to_bytes(2, "little") + rate.to_bytes(4, "little")
    form += (
        (rate * 2 * channels % 2**32).to_bytes(4, "little")
        + (2 * channels % 65_536).to_bytes(2, "little")
        + b"\x10\0"
    )
    return b"RIFF\xff\xff\xff\xffWAVE" + form + head + b"data" + size.to_bytes(4, "little") + bytes(body)


def _packed(unit: bytes, mebibytes: int = 300, form: str = "gz") -> bytes:
    data = unit * (_MIB // len(unit))
    if form == "gz":
        out = io.BytesIO()
        with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6) as file:
            for _ in range(mebibytes):
                file.write(data)
        return out.getvalue()
    packer: Any = bz2.BZ2Compressor() if form == "bz2" else lzma.LZMACompressor()
    return b"".join([*(packer.compress(data) for _ in range(mebibytes)), packer.flush()])


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return out.getvalue()


def _tar(files: dict[str, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as packed:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _zip_of_many(count: int) -> bytes:
    data = (b"PK\x01\x02" + bytes(24) + b"\x01" + bytes(17) + b"a") * count
    return data + b"PK\x05\x06" + bytes(8) + len(data).to_bytes(4, "little") + bytes(6)


def _parquet(kind: str) -> bytes:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000, pa.int32()), pa.array(["x" * _MIB]))
    columns = {
        "rows": {"text": pa.array(np.zeros(50_000_000, np.int8))},
        "texts": {"text": texts},
        "lists": {
            "text": pa.ListArray.from_arrays(
                np.arange(0, 40_000_001, 40_000), pa.nulls(40_000_000, pa.int8())
            )
        },
        "nulls": {"text": pa.nulls(200_000_000, pa.string())},
        "columns": {f"a{number}": ["a"] for number in range(30_000)},
        "deep": {"text": pa.array([None] * 10, _nest(pa, 200))},
        "usual": {"text": ["hello"] * 1_000, "audio": ["a.wav"] * 1_000},
    }[kind]
    pq.write_table(pa.table(columns), out, compression="zstd")
    return out.getvalue()


def _nest(pa: Any, depth: int) -> Any:
    kind = pa.int8()
    for _ in range(depth):
        kind = pa.struct([("a", kind)])
    return kind


def _flac_with_picture(size: int) -> bytes:
    data = _sine(1, "FLAC")
    block = b"\x06" + min(size, (1 << 24) - 1).to_bytes(3, "big") + bytes(1_000)
    return data[:4] + data[4:5] + data[5:42] + block + data[42:]


def _id3(size: int, body: bytes) -> bytes:
    return b"ID3\x04\0\0" + bytes((size >> shift) & 127 for shift in (21, 14, 7, 0)) + body


_GRID = 'File type = "ooTextFile"\nObject class = "TextGrid"\n0 1 <exists> '
_CSV, _SRT = b"audio,text\na.wav,hello\n", b"1\n00:00:00,000 --> 00:00:01,000\nx\n"
_ROW = b'{"audio": "a.wav", "text": "a"}\n'
_SEGLST = b'[{"session_id": "a", "speaker": "b", "start_time": 0, "end_time": 1, "words": "c"}]'


def _list_files() -> dict[str, tuple[str, str, Callable[[], bytes], Callable[[], bytes]]]:
    """Return what reads a file, its name, the hostile bytes and ordinary ones, by the name of the case."""
    sine, flac = (lambda: _sine(2)), (lambda: _sine(2, "FLAC"))
    ogg, mp3 = (lambda: _sine(2, "OGG")), (lambda: _sine(2, "MP3"))
    long_mp3 = lambda: _sine(600, "MP3", 2)  # noqa: E731
    csv, srt, rows = (lambda: _CSV), (lambda: _SRT), (lambda: _ROW)
    archive = {"a.wav": _sine(1), "a.txt": b"hello"}
    packed_row, packed_csv = (lambda: gzip.compress(_ROW)), (lambda: gzip.compress(_CSV))
    zipped, tarred, parquet = (lambda: _zip(archive)), (lambda: _tar(archive)), (lambda: _parquet("usual"))

    def brackets() -> bytes:
        return gzip.compress(b"[" + b"[]," * 5_000_000 + b"{}]")

    def objects() -> bytes:
        return gzip.compress(b"[" + b'{"a":1},' * 2_000_000 + b"{}]")

    def elements() -> bytes:
        return gzip.compress(b"<tt>" + b"<p/>" * 4_000_000 + b"</tt>")

    return {
        "WAV that says 4 GB": (_CLIP, "a.wav", _wav, sine),
        "WAV of 65,535 channels": (_CLIP, "a.wav", lambda: _wav(channels=65_535, body=_MIB), sine),
        "WAV with a list of 4 GB": (_CLIP, "a.wav", lambda: _wav(b"LIST\xf0\xff\xff\xff"), sine),
        "WAV of 1,000,000 empty chunks": (_CLIP, "a.wav", lambda: _wav(b"junk\0\0\0\0" * 1_000_000), sine),
        "FLAC of silence": (_CLIP, "a.flac", lambda: _sine(900, "FLAC", 8, silent=True), flac),
        "FLAC of silence, length unknown": (_CLIP, "a.flac", _unknown_flac, flac),
        "FLAC with a picture of 16 MB": (_CLIP, "a.flac", lambda: _flac_with_picture(1 << 24), flac),
        "OGG of silence": (_CLIP, "a.ogg", lambda: _sine(300, "OGG", 8, silent=True), ogg),
        "OGG, 200 streams": (_CLIP, "a.ogg", lambda: _sine(60, "OGG", silent=True) * 200, ogg),
        "OGG of one page, no end": (_CLIP, "a.ogg", lambda: _sine(1, "OGG")[:58] * 100_000, ogg),
        "MP3 of silence": (_CLIP, "a.mp3", lambda: _sine(600, "MP3", 2, silent=True), long_mp3),
        "MP3 with a tag of 256 MB": (_CLIP, "a.mp3", lambda: _id3((1 << 28) - 1, bytes(1_000)), mp3),
        "MP3 with 100,000 tags": (_CLIP, "a.mp3", lambda: _id3(0, b"") * 100_000 + _sine(1, "MP3"), mp3),
        "M4A that says 4 GB": (_CLIP, "a.m4a", lambda: b"\xff\xff\xff\xffftypM4A " + bytes(100), sine),
        "SRT in gz, one line": (_TIMED, "a.srt.gz", lambda: _packed(b"0"), lambda: gzip.compress(_SRT)),
        "SRT in gz, lines": (_TIMED, "a.srt.gz", lambda: _packed(_SRT, 16), lambda: gzip.compress(_SRT)),
        "CSV in gz, lines": (_TABLE, "a.csv.gz", lambda: _packed(b"a,b\n", 16), packed_csv),
        "CSV in gz, commas": (_TABLE, "a.csv.gz", lambda: _packed(b",", 16), packed_csv),
        "CSV in gz, quotes": (_TABLE, "a.csv.gz", lambda: _packed(b'"', 16), packed_csv),
        "CSV, one line of 16 MB": (_TABLE, "a.csv", lambda: b"a" * (16 * _MIB), csv),
        "CSV of 2,000,000 names": (_TABLE, "a.csv", lambda: b",".join(b"a%d" % n for n in range(2_000_000)), csv),
        "JSON Lines in gz, empty objects": (_TABLE, "a.jsonl.gz", lambda: _packed(b"{}\n", 15), packed_row),
        "JSON Lines in gz, names": (_TABLE, "a.jsonl.gz", _names, packed_row),
        "JSON in gz, brackets": (_TABLE, "a.json.gz", brackets, packed_row),
        "JSON in gz, objects": (_TABLE, "a.json.gz", objects, packed_row),
        "JSON, 10 MB deep": (_TABLE, "a.json", lambda: b"[" * 10_000_000, rows),
        "SegLST in gz, brackets": (_TIMED, "a.json.gz", brackets, lambda: gzip.compress(_SEGLST)),
        "TextGrid that says 1e9 tiers": (_TIMED, "a.TextGrid", f"{_GRID} 1000000000".encode, srt),
        "EAF with entities": (_TIMED, "a.eaf", _entities, srt),
        "TTML, 10 MB deep": (_TIMED, "a.ttml", lambda: b"<tt>" + b"<p>" * 3_000_000, srt),
        "TTML in gz, 5,000,000 elements": (_TIMED, "a.ttml.gz", elements, srt),
        "Parquet of 50,000,000 rows": (_TABLE, "a.parquet", lambda: _parquet("rows"), parquet),
        "Parquet of one text": (_TABLE, "a.parquet", lambda: _parquet("texts"), parquet),
        "Parquet of lists": (_TABLE, "a.parquet", lambda: _parquet("lists"), parquet),
        "Parquet of nothing": (_TABLE, "a.parquet", lambda: _parquet("nulls"), parquet),
        "Parquet of 30,000 columns": (_TABLE, "a.parquet", lambda: _parquet("columns"), parquet),
        "Parquet, 200 structs deep": (_TABLE, "a.parquet", lambda: _parquet("deep"), parquet),
        "ZIP, a sound of zeros": (_CLIP, "zip://a.wav::a.zip", lambda: _zip({"a.wav": bytes(300 * _MIB)}), zipped),
        "ZIP, 1,000 texts of zeros": (_TABLE, "a.zip", _zip_of_texts, zipped),
        "ZIP of 1,000,000 names": (_TABLE, "a.zip", lambda: _zip_of_many(1_000_000), zipped),
        "ZIP of 250,000 names": (_TABLE, "a.zip", lambda: _zip_of_many(250_000), zipped),
        "TAR of 500,000 names": (_TABLE, "a.tar.gz", _tar_of_many, lambda: _tar(archive, "w:gz")),
        "TAR in xz, zeros": (_TABLE, "a.tar.xz", lambda: _packed(b"\0", form="xz"), lambda: _tar(archive, "w:xz")),
        "TAR in bz2, zeros": (_TABLE, "a.tar.bz2", lambda: _packed(b"\0", form="bz2"), tarred),
        "TAR, a name of 100 MB": (_TABLE, "a.tar", _tar_of_one_name, tarred),
    }  # fmt: skip


def _unknown_flac() -> bytes:
    data = bytearray(_sine(900, "FLAC", 8, silent=True))
    data[21:26] = bytes([data[21] & 0xF0, 0, 0, 0, 0])  # of the number of frames in its header
    return bytes(data) + bytes(70_000)


def _names() -> bytes:
    return gzip.compress(b"{" + b",".join(b'"%d":1' % number for number in range(1_400_000)) + b"}\n")


def _entities() -> bytes:
    lines = [b'<!ENTITY a0 "aaaaaaaaaa">'] + [
        b'<!ENTITY a%d "%s">' % (number, b"&a%d;" % (number - 1) * 10) for number in range(1, 10)
    ]
    return b"<!DOCTYPE a [" + b"".join(lines) + b"]><ANNOTATION_DOCUMENT>&a9;</ANNOTATION_DOCUMENT>"


def _zip_of_texts() -> bytes:
    zeros = b"a" * (16 * _MIB - 1)
    return _zip(
        {
            name: data
            for number in range(100)
            for name, data in ((f"{number}.wav", b"x"), (f"{number}.txt", zeros))
        }
    )


def _tar_of_many() -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
        for number in range(500_001):
            file.write(tarfile.TarInfo(f"{number}.wav").tobuf())
    return out.getvalue()


def _tar_of_one_name() -> bytes:
    header = tarfile.TarInfo("a")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 100 * _MIB
    return header.tobuf() + bytes(100 * _MIB)


def _make_report(folder: Path) -> Path:
    code = (
        "import pandas as pd\nfrom speechlab import evaluate\n"
        "t = [f'{n} ten cats' for n in range(40)]\n"
        "rows = pd.DataFrame({'text': t, 'language': 'en', 'heard': [x.replace('cats', 'hats') for x in t]})\n"
        f"evaluate.recognition(None, rows, hypotheses='heard').save({str(folder)!r})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    return folder


def _spoil_page(page: Path, text: bytes) -> None:
    packed = base64.b64encode(lzma.compress(text)).decode()
    page.write_text(re.sub(r'(?<="frames":")[^"]*', lambda _: packed, page.read_text("utf-8")), "utf-8")


def _make_places(root: Path) -> Iterator[tuple[str, str, Path, Path]]:
    """Yield pages, folders of reports and stores: a name, what reads it, the hostile one, the ordinary one."""
    usual = _make_report(root / "usual")
    page = usual / "report.html"
    for name, text in (
        ("spaces", b" " * (200 * _MIB)),
        ("brackets", b'{"table": [' + b"[]," * 5_000_000 + b"[]]}"),
        ("numbers", b'{"table": {"a": ["object", [' + b"1," * 8_000_000 + b"1]]}}"),
        ("a wide type", b'{"table": {"text": ["S300000000", ["a"]]}}'),
        ("a type of pairs", b'{"table": {"text": ["U300000000", ["a"]]}}'),
    ):
        hostile = root / f"{name}.html"
        shutil.copy(page, hostile)
        _spoil_page(hostile, text)
        yield f"page of {name}", _PAGE, hostile, page
    folder = root / "folder"
    shutil.copytree(usual, folder)
    (folder / "results.parquet").write_bytes(_parquet("texts"))
    yield "report with a table of one text", "evaluate.Report.load(path)", folder, usual
    folder = root / "record"
    shutil.copytree(usual, folder)
    (folder / "record.json").write_bytes(b'{"fields":' + b"[" * 5_000_000)
    yield "report with a deep record", "evaluate.Report.load(path)", folder, usual
    for name, statements in _STORES.items():
        for kind in ("hostile", "plain"):
            store = root / f"{kind} {name}"
            subprocess.run(
                [sys.executable, "-c", f"import speechlab as sl; sl.Store({str(store)!r}).close()"],
                check=True,
            )
            with sqlite3.connect(store / "store.sqlite") as db:
                db.executescript(statements if kind == "hostile" else "")
            db.close()
        yield f"store with {name}", _STORE, root / f"hostile {name}", root / f"plain {name}"


_ROW_OF = "INSERT INTO results VALUES ('a', 'speech', '{{}}', {}, 1.0);"
_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
_COLUMNS = (
    "1.0 AS started, 1.0 AS latency_s, 'ok' AS status, 200 AS http_status, NULL AS error_type, NULL AS error"
)
_HUGE = "manifest TEXT AS (hex(zeroblob(400000000)))"
_STORES = {
    "a text of 500 MB": _ROW_OF.format("replace(hex(zeroblob(250000000)), '00', 'ab')"),
    "a reply of brackets": _ROW_OF.format("'{\"a\":[' || replace(hex(zeroblob(8000000)), '00', '[],') || '1]}'"),
    "a view": "DROP TABLE attempts; CREATE VIEW attempts AS "
    f"{_ENDLESS} SELECT i AS id, 'a' AS key, {_COLUMNS} FROM n;",
    "a column that computes": "DROP TABLE runs; CREATE TABLE runs (id TEXT PRIMARY KEY, operation TEXT, status TEXT, "
    f"started REAL, ended REAL, {_HUGE}); INSERT INTO runs(id, operation, status, started) VALUES ('a', 'b', '', 1);",
}  # fmt: skip


def _list_replies() -> dict[str, tuple[str, bytes, list[bytes], int]]:
    """Return the call, the head, the pieces, and how often they come, by the name of the case."""
    zeros = bytes(_MIB)
    replies: dict[str, tuple[str, bytes, list[bytes], int]] = {}
    for coding in ("gzip", "deflate"):
        packer = zlib.compressobj(9, wbits=31 if coding == "gzip" else 15)
        bomb = b"".join([*(packer.compress(zeros) for _ in range(1_000)), packer.flush()])
        for call in _CALLS:
            replies[f"{call}, {coding} of 1 GB"] = (
                call,
                f"Content-Encoding: {coding}\r\n".encode(),
                [bomb],
                1,
            )
    for coding in ("br", "zstd"):
        replies[f"catalogue, {coding}"] = (
            "catalogue",
            f"Content-Encoding: {coding}\r\n".encode(),
            [zeros],
            1_000,
        )
    for call in _CALLS:
        replies[f"{call}, no end"] = (call, b"", [b'["' + b"a" * 60_000 + b'",'], 100_000)
        replies[f"{call}, chunks of a byte"] = (
            call,
            b"Transfer-Encoding: chunked\r\n",
            [b"1\r\n \r\n" * 10_000],
            100_000,
        )
        replies[f"{call}, headers without end"] = (
            call,
            b"X-A: " + b"a" * 1_000,
            [b"\r\nX-A: " + b"a" * 1_000],
            100_000,
        )
        replies[f"{call}, a header without end"] = (call, b"X-A: ", [b"a" * 60_000], 10_000)
    replies["catalogue, brackets"] = ("catalogue", b"", [b'{"voices":[' + b"[]," * 2_600_000 + b"1]}"], 1)
    replies["transcript, brackets"] = (
        "transcript",
        b"",
        [b'{"text":"a","segments":[' + b"[]," * 1_300_000 + b"1]}"],
        1,
    )
    return replies


class _Server:
    """A server on a port of its own, which answers everything with one head and its pieces."""

    def __init__(self, head: bytes, pieces: list[bytes], times: int) -> None:
        self._reply = head, pieces, times
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=self.listener.accept()[:1], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        head, pieces, times = self._reply
        with suppress(OSError), connection:
            connection.recv(1 << 20)
            ends = b"" if b"X-A" in head else b"\r\n"
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n" + head + ends
            )
            for _ in range(times):
                for piece in pieces:
                    connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass


def _read_in_child(code: str, place: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _CHILD.format(code=code), place],
        check=False,
        capture_output=True,
        text=True,
        timeout=_MOST_S,
        cwd=folder,
    )


def _measure(code: str, place: str, folder: Path) -> _Found:
    """Return the peak in MiB, the seconds, and how the reading ended."""
    try:
        child = _read_in_child(code, place, folder)
    except subprocess.TimeoutExpired:
        return float("nan"), _MOST_S, "takes too long"
    if child.returncode:
        return float("nan"), 0.0, f"status {child.returncode}: {child.stderr[-200:]}"
    peak, seconds, end = child.stdout.split()[-3:]
    return float(peak), float(seconds), end


def _run_file_cases(root: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, _Found, _Found]]:
    plain: dict[tuple[str, bytes], _Found] = {}

    def measure(code: str, file: str, data: bytes) -> _Found:
        with tempfile.TemporaryDirectory(dir=root) as folder:
            (Path(folder) / file.rpartition("::")[2]).write_bytes(data)
            return _measure(code, file, Path(folder))

    for name, (code, file, make, make_usual) in _list_files().items():
        if is_wanted(name):
            hostile, usual = measure(code, file, make()), make_usual()
            if (code, usual) not in plain:
                plain[code, usual] = measure(code, file, usual)
            yield name, hostile, plain[code, usual]


def _run_cases(root: Path, wanted: list[str]) -> Iterator[tuple[str, _Found, _Found]]:
    def is_wanted(name: str) -> bool:
        return not wanted or any(word.lower() in name.lower() for word in wanted)

    yield from _run_file_cases(root, is_wanted)
    if not wanted or any(re.match("page|report|store", word) for word in wanted):
        for name, code, hostile, usual in _make_places(root):
            if is_wanted(name):
                yield name, _measure(code, str(hostile), root), _measure(code, str(usual), root)
    usual = {}
    for wire in (None, "aiohttp"):
        for name, (call, head, pieces, times) in _list_replies().items():
            shown = f"{name} ({wire or 'httpx2'})"
            if not is_wanted(shown):
                continue
            code = _CLIENT.format(wire=wire, call=_CALLS[call])
            if (call, wire) not in usual:
                usual[call, wire] = _measure(code, _Server(b"", [b"{}"], 1).address, root)
            server = _Server(head, pieces, times)
            yield shown, _measure(code, server.address, root), usual[call, wire]
            server.listener.close()


def main() -> int:
    """Print the table."""
    too_much = 0
    with tempfile.TemporaryDirectory() as place:
        for name, hostile, usual in _run_cases(Path(place), sys.argv[1:]):
            grown = hostile[0] - usual[0]
            too_much += not grown <= _MOST_MIB
            print(
                json.dumps(
                    {
                        "case": name,
                        "above": round(grown),
                        "seconds": hostile[1],
                        "end": hostile[2],
                        "usual": usual[2],
                    }
                ),
                flush=True,
            )
    print(f"{too_much} above {_MOST_MIB} MiB")
    return bool(too_much)


if __name__ == "__main__":
    sys.exit(main())
