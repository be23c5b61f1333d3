"""Files where they lie: addresses, archives, credentials, and all readers of recordings."""

import base64
import io
import sys
import tarfile
import threading
import warnings
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import datasets, remote
from speechlab.audio import AudioClip, FileSegment, measure_length_s
from speechlab.errors import InvalidRequestError, MissingDependencyError

fsspec = pytest.importorskip("fsspec")
COPIES = remote._copies.COPIES
CLIP = AudioClip.from_bytes(AudioClip(np.sin(np.arange(4_000) / 9) / 3, 8_000).encode("wav"))
WAV = CLIP.encode("wav")


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    COPIES.renew()
    yield system
    system.store.clear()


@pytest.fixture(scope="module")
def server():
    """A server of /open/… for all, and of /closed/… for the login ``ada:pa55word`` and the signature ``g00d``."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            login = self.headers.get("Authorization") == "Basic " + base64.b64encode(b"ada:pa55word").decode()
            allowed = "/open/" in self.path or login or "X-Amz-Signature=g00d" in self.path
            name = self.path.partition("?")[0]
            body = b"audio,text\na%20b.wav,hello\n" if name.endswith(".csv") else WAV
            body = body if not name.endswith("none.wav") else b""
            self.send_response(200 if allowed and body else 404 if allowed else 403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if self.command == "GET" else b"")

        do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *_):
            pass

    COPIES.renew()
    served = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=served.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()
    thread.join()


def archive(path, files):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data in files.items():
                packed.writestr(name, data)
    else:
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as packed:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                packed.addfile(info, io.BytesIO(data))
    return path


def test_every_reader_of_recordings_takes_an_address(memory, tmp_path):
    memory.pipe("/set/a b.wav", WAV)
    address = "memory://set/a b.wav"
    assert AudioClip.from_file(address) == CLIP
    assert AudioClip.from_file(address).title == "a b.wav"
    assert AudioClip.from_file(address.replace("memory", "MEMORY")) == CLIP
    assert measure_length_s(address) == 0.5
    segment = FileSegment(address, 0.1, 0.3)
    assert (segment.duration_s, str(segment)) == (pytest.approx(0.2), f"{address}#t=0.1,0.3")
    lab = sl.system("length", transcribe=lambda clip, **_: f"{clip.duration_s}", version="1")
    assert lab.transcribe(address).text == "0.5"
    (tmp_path / "a.wav").write_bytes(WAV)
    rows = pd.DataFrame({"audio": [address, "memory://set/none.wav", segment]})
    table = sl.batch.transcribe(rows, lab, store=tmp_path / "store", progress=False)
    assert table["status"].tolist() == ["ok", "error", "ok"]
    assert table["error"].iloc[1] == "there is no file 'memory://set/none.wav'"
    local = pd.DataFrame({"audio": [str(tmp_path / "a.wav")]})
    again = sl.batch.transcribe(local, lab, store=tmp_path / "store", progress=False)
    assert again["status"].tolist() == ["cached"]  # the key is that of the bytes
    assert again["key"].tolist() == table["key"].tolist()[:1]
    assert "data:audio" in sl.show(rows[:1]).static_html()


def test_a_manifest_at_an_address_names_its_neighbors(memory):
    memory.pipe("/set/lists/train.csv", b"audio,text,offset,duration\n../a.wav,one,,\nb.wav,two,0.1,0.2\n")
    memory.pipe("/set/a.wav", WAV)
    table = datasets.read("memory://set/lists/train.csv")
    assert [str(cell) for cell in table["audio"]] == [
        "memory://set/a.wav",
        "memory://set/lists/b.wav#t=0.1,0.3",
    ]
    assert datasets.read("memory://set/lists")["text"].tolist() == ["one", "two"]
    with pytest.raises(InvalidRequestError, match=r"there is no file memory://set/none.csv; check"):
        datasets.read("memory://set/none.csv")


def test_a_strangers_manifest_reads_no_files_of_ours():
    here = "https://strangers.example"
    for cell, found in {
        "a.wav": f"{here}/set/a.wav",
        "/etc/hosts": f"{here}/etc/hosts",
        "../../../../etc/hosts": f"{here}/etc/hosts",
        "file:///etc/hosts": f"{here}/set/file:/etc/hosts",
        "https://other.example/a.wav#t=1,2": "https://other.example/a.wav#t=1,2",
        f"zip://a.wav::{here}/a.zip": f"zip://a.wav::{here}/a.zip",
        **dict.fromkeys((
            "zip://a.wav::/home/me/a.zip", "tar://a.wav::file:///home/me/a.tar", "simplecache::file:///home/me/a.wav",
            "a.wav::file:///home/me/a.wav", "s3://my-bucket/a.wav", "memory://a.wav", "http://localhost/a.wav",
            "http://127.0.0.1:8000/a.wav", "http://169.254.169.254/latest/a.wav", "http://0x7f000001/a.wav",
            "http://[::1]/a.wav", "http://10.0.0.7/a.wav#t=1", "http://printer.local/a.wav",
        )),
    }.items():  # fmt: skip
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (place,) = datasets._places.resolve_recordings([cell], f"{here}/set")
        assert (None if place is None else str(place)) == found
        assert bool(caught) is (found is None), cell


def test_archives_are_data_sets(tmp_path):
    shard = {
        "x/1.wav": WAV,
        "x/1.txt": b"one\n",
        "x/2.wav": WAV,
        "x/2.json": b'{"text": "two", "speaker": "b"}',
    }
    listed = {"lists/train.csv": b"audio,text\n../x/1.wav,uno\n", "x/1.wav": WAV}
    for name in ("set.zip", "set.tar", "set.tar.gz"):
        kind = "zip" if name.endswith("zip") else "tar"
        path = archive(tmp_path / name, shard)
        table = datasets.read(path, language="en")
        assert table["text"].tolist() == ["one", "two"]
        assert table["id"].tolist() == ["x/1", "x/2"]
        assert table["audio"].tolist() == [f"{kind}://x/{number}.wav::{path}" for number in (1, 2)]
        assert [AudioClip.from_file(cell) for cell in table["audio"]] == [CLIP, CLIP]
        path = archive(tmp_path / f"other-{name}", listed)
        table = datasets.read(path)
        assert table["audio"].tolist() == [f"{kind}://x/1.wav::{path}"]
        assert datasets.row_keys(table) == ["1.wav"]
        with pytest.raises(FileNotFoundError, match="the archive has no such file"):
            AudioClip.from_file(f"{kind}://none.wav::{path}")


def test_archives_of_strangers_have_limits(tmp_path):
    bomb = archive(tmp_path / "bomb.zip", {"a.wav": bytes(64 << 20)})
    (tmp_path / "no.zip").write_bytes(b"PK nothing")
    for address, error, told in (
        (f"zip://a.wav::{bomb}", InvalidRequestError, "unpacks to more than 17 MB"),
        ("https://strangers.example/a.wav#t=1,2", InvalidRequestError, r"give sl\.audio\.FileSegment"),
        ("zip://a.wav", InvalidRequestError, "names a file in no archive; give both"),
        (f"zip://a.wav::{tmp_path / 'no.zip'}", OSError, "the archive cannot be read"),
    ):
        with pytest.raises(error, match=told):
            AudioClip.from_file(address)
    odd = archive(tmp_path / "a.tar", {"1.wav": WAV, "1.json": b"[", "2.wav": WAV})
    with pytest.warns(UserWarning, match=r"left out: 1.json"):
        assert len(datasets.read(odd)) == 2


def test_copies_do_not_fill_the_disk_and_are_made_anew(memory, monkeypatch):
    monkeypatch.setattr("speechlab.remote._copies._MAX_BYTES", 3 * len(WAV))
    monkeypatch.setattr("speechlab.remote._copies._IDLE_S", 0.0)
    for number in range(8):
        memory.pipe(f"/{number}.wav", WAV)
        assert AudioClip.from_file(f"memory://{number}.wav") == CLIP
    folder = remote.locate_file("memory://7.wav").parents[1]
    assert len(list(folder.iterdir())) == 3
    with monkeypatch.context() as patch:
        patch.setattr("speechlab.remote._fetching._MAX_BYTES", 100)
        memory.pipe("/long.wav", WAV)
        with pytest.raises(InvalidRequestError, match=r"memory://long.wav has more than"):
            AudioClip.from_file("memory://long.wav")
    assert len(list(folder.iterdir())) == 3
    monkeypatch.setattr("speechlab.remote._copies._FRESH_S", 0.0)
    memory.pipe("/7.wav", CLIP.crop(0, 0.25).encode("wav"))
    assert AudioClip.from_file("memory://7.wav").duration_s == 0.25  # of a file that has changed


def test_addresses_are_shown_without_credentials():
    plain = "https://a.example/x.wav"
    for address, shown in {
        "https://ada:pw@a.example/x.wav": plain,
        f"{plain}?AWSAccessKeyId=A&Signature=0f&Expires=1": plain,
        "https://b.s3.example/x.wav?versionId=3&X-Amz-Credential=A&X-Amz-Signature=0f":
            "https://b.s3.example/x.wav?versionId=3",
        "https://c.blob.example/x.wav?sv=2024&se=2027&sr=b&sp=r&sig=0f%3D": "https://c.blob.example/x.wav",
        "zip://a.wav::https://ada:pw@a.example/x.zip": "zip://a.wav::https://a.example/x.zip",
        "https://ada:pw@a.example/x.wav#t=1,2": f"{plain}#t=1,2",
    }.items():  # fmt: skip
        assert remote.hide_secrets(address) == shown
    for open_to_all in (
        f"{plain}?id=5&part=2", f"{plain}?st=5&se=6&expires=7", "abfs://box@account.example/x.wav",
        "s3://box/a?token=1#2.wav", "/home/ada:pw@x/a.wav",
    ):  # fmt: skip
        assert remote.hide_secrets(open_to_all) == open_to_all
    one, other = (remote.hide_secrets(f"https://a.example/get?id=1&access_token={token}") for token in "ab")
    assert one != other  # which stay apart
    assert one.startswith("https://a.example/get?id=1&access_token=hidden-")


def test_a_strangers_manifest_sets_no_login(server):
    resolve = datasets._places.resolve_recordings
    mine = f"http://{server}/closed/own.wav"
    AudioClip.from_file(mine.replace("http://", "http://ada:pa55word@"))
    theirs = mine.replace("http://", "http://eve:eve@") + "#t=1"
    for cell, folder in (
        (theirs, "https://strangers.example/set"),
        ("hf://datasets/me/private/a.wav", "hf://datasets/eve/set"),
    ):
        with pytest.warns(UserWarning, match="1 of 1 recordings are left out"):
            assert resolve([cell], folder) == [None]
    assert AudioClip.from_file(mine.replace("own", "other")) == CLIP
    own = "hf://datasets/eve/set/b.wav"
    assert resolve([own], "hf://datasets/eve/set") == [own]
    refused = r"the server refuses the credentials, or wants some: 'http://localhost"
    with pytest.raises(PermissionError, match=refused):
        AudioClip.from_file(mine.replace("127.0.0.1", "localhost"))


@pytest.mark.slow
def test_credentials_are_in_no_file_and_no_error(server, tmp_path):
    table = datasets.read(f"http://ada:pa55word@{server}/closed/list.csv")
    assert table["audio"].tolist() == [f"http://{server}/closed/a%20b.wav"]
    signed = f"http://{server}/closed/signed.wav?X-Amz-Signature=g00d"
    rows = pd.DataFrame(
        {"audio": [table["audio"][0], signed, f"http://ada:pa55word@{server}/closed/none.wav"]}
    )
    lab = sl.system("length", transcribe=lambda clip, **_: f"{clip.duration_s}", version="1")
    done = sl.batch.transcribe(rows, lab, store=tmp_path / "store", progress=False)
    assert done["hypothesis"].tolist()[:2] == ["0.5", "0.5"]
    assert done["status"].iloc[2] == "error"
    rows = rows[:2].assign(text="0.5", language="en")
    sl.evaluate.recognition(lab, rows, store=tmp_path / "store", progress=False).save(tmp_path / "report")
    assert [copy.read_bytes() for copy in (tmp_path / "report" / "audio").iterdir()] == [WAV] * 2
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    said = "".join(done["error"].dropna())
    with pytest.raises(FileNotFoundError) as caught:
        AudioClip.from_file(rows["audio"][1].replace("signed", "none"))
    said += str(caught.value)
    for secret in ("pa55word", "g00d"):
        assert secret.encode() not in written
        assert secret not in said


def test_without_the_extra_one_sentence_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'speechlab\[remote\]'"):
        AudioClip.from_file("s3://bucket/none.wav")
