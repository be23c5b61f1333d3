"""Servers and archives of strangers: redirects, pages without end, names that would be addresses, locks that stay."""

import asyncio
import base64
import io
import tarfile
import tempfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from speechlab import datasets
from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError
from speechlab.remote import _copies, _web
from support.memory import grown_mib

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
WAV = AudioClip(np.zeros(800), 8_000).encode("wav")
LOGIN = "Basic " + base64.b64encode(b"ada:pa55word").decode()


class Server(BaseHTTPRequestHandler):
    """Answers each path as a test wants it: with bytes, a redirect, or pieces without end."""

    answers, seen = {}, []

    def do_GET(self):
        self.seen.append((self.path, self.headers.get("Host"), self.headers.get("Authorization")))
        answer = self.answers.get(self.path)
        self.send_response(404 if answer is None else 302 if isinstance(answer, str) else 200)
        if isinstance(answer, str):
            self.send_header("Location", answer)
            answer = b""
        if isinstance(answer, bytes | None):
            self.send_header("Content-Length", str(len(answer or b"")))
        self.end_headers()
        if self.command == "GET":
            for piece in [answer or b""] if isinstance(answer, bytes | None) else answer():
                self.wfile.write(piece)
        self.close_connection = True

    do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server that is public as ``localhost``, and of a private network as 127.0.0.1; both names reach it."""

    async def find_kinds(host):
        return {host == "localhost"}

    monkeypatch.setattr(_web, "_find_kinds", find_kinds)
    monkeypatch.setattr(Server, "answers", {"/private.wav": WAV, "/open.wav": WAV})
    monkeypatch.setattr(Server, "seen", [])
    _copies.COPIES.renew()
    served = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=served.serve_forever, args=(0.01,))
    thread.start()
    yield served.server_port
    served.shutdown()
    served.server_close()
    thread.join()


def test_a_public_server_sends_nobody_into_a_private_network(server):
    for first in (f"http://127.0.0.1:{server}/private.wav", f"http://localhost:{server}/b.wav"):
        Server.answers["/a.wav"] = first
        Server.answers["/b.wav"] = f"//127.0.0.1:{server}/private.wav"
        with pytest.raises(
            InvalidRequestError, match=r"localhost sends its readers on to a server in a priv"
        ):
            AudioClip.from_file(f"http://localhost:{server}/a.wav")
    assert not [path for path, host, _ in Server.seen if "127" in host]


def test_a_redirect_leads_to_web_servers_alone(server):
    for target in ("file:///etc/hosts", "ftp://localhost/a.wav", "data:audio/wav;base64,UklGRg=="):
        Server.answers["/a.wav"] = target
        with pytest.raises((OSError, InvalidRequestError)):
            AudioClip.from_file(f"http://localhost:{server}/a.wav")


def test_a_server_of_a_private_network_may_name_its_neighbors(server):
    Server.answers["/a.wav"] = f"http://localhost:{server}/b.wav"
    Server.answers["/b.wav"] = "/open.wav"
    assert AudioClip.from_file(f"http://127.0.0.1:{server}/a.wav").encode("wav") == WAV


def test_a_login_is_not_sent_on_to_another_server(server):
    Server.answers["/a.wav"] = f"http://localhost:{server}/open.wav"
    AudioClip.from_file(f"http://ada:pa55word@127.0.0.1:{server}/a.wav")
    logins = {path: login for path, _, login in Server.seen}
    assert (logins["/a.wav"], logins["/open.wav"]) == (LOGIN, None)


def test_addresses_are_public_or_not():
    for host in ("10.0.0.7", "169.254.169.254", "::1", "localhost"):
        assert asyncio.run(_web._find_kinds(host)) == {False}, host
    assert asyncio.run(_web._find_kinds("9.9.9.9")) == {True}


def test_a_page_without_end_is_refused(server):
    Server.answers["/set/"] = lambda: iter(lambda: b"<a href='a.wav'>" * 4_000, None)
    with grown_mib() as grown, pytest.raises(InvalidRequestError, match="the page has more than 34 MB"):
        datasets.read(f"http://127.0.0.1:{server}/set")
    assert grown() < 150


def test_a_page_names_the_files_of_its_folder(server):
    links = ["list.csv", "../other.csv", "http://localhost/set/b.csv", "//[x", "?C=N;O=D", "javascript:x"]
    Server.answers["/set/"] = "".join(f'<a class="x" href="{link}">x</a>' for link in links).encode()
    Server.answers["/set/list.csv"] = b"audio,text\na.wav,hello\n"
    assert datasets.read(f"http://127.0.0.1:{server}/set")["text"].tolist() == ["hello"]


def write_tar(path, names):
    with tarfile.open(path, "w") as packed:
        for name, data in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    return path


def test_names_in_an_archive_are_no_addresses(tmp_path, server):
    name = f"x.wav::http://127.0.0.1:{server}/?a.wav"
    path = write_tar(tmp_path / "evil.tar", {"1.wav": WAV, "1.txt": b"one", name: WAV})
    with pytest.warns(UserWarning, match=r"left out: x\.wav::http.*a name with ::"):
        table = datasets.read(path)
    assert table["id"].tolist() == ["1"]
    write_tar(path, {"lists/a.csv": f"audio,text\n{name},one\nzip://x.wav::{name},two\n".encode()})
    with (
        pytest.warns(UserWarning, match="2 of 2 rows have no recording"),
        pytest.warns(UserWarning, match="left out"),
    ):
        assert datasets.read(path)["audio"].isna().all()
    assert not Server.seen


def test_archives_are_unpacked_into_the_copies_folder_alone(tmp_path, monkeypatch):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a" / "b" / "c"))
    _copies.COPIES.renew()
    for name in ("../../../x/1.wav", "/x/1.wav", "C:\\x\\1.wav", "a" * 300 + "/1.wav", "\x1b[31m/1.wav"):
        with zipfile.ZipFile(tmp_path / "set.zip", "w") as packed:
            packed.writestr(name, WAV)
        for path in (write_tar(tmp_path / "set.tar", {name: WAV}), tmp_path / "set.zip"):
            assert AudioClip.from_file(datasets.read(path)["audio"][0]).encode("wav") == WAV
    (copies,) = (tmp_path / "a" / "b" / "c").iterdir()
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and copies not in path.parents]
    assert sorted(path.name for path in outside) == ["set.tar", "set.zip"]
    _copies.COPIES.renew()


def test_links_and_devices_of_a_tar_are_no_files(tmp_path):
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        for target in ("/etc/hosts", "2.wav", "1.wav"):
            link = tarfile.TarInfo("1.wav")
            link.type, link.linkname = kind, target
            with tarfile.open(tmp_path / "set.tar", "w") as packed:
                packed.addfile(link)
            with pytest.raises(InvalidRequestError, match="neither one manifest nor recordings"):
                datasets.read(tmp_path / "set.tar")


def test_an_archive_has_a_limited_number_of_files(tmp_path):
    entry = b"PK\x01\x02" + bytes(24) + b"\x01" + bytes(17) + b"a"
    data = entry * 300_000
    end = b"PK\x05\x06" + bytes(8) + len(data).to_bytes(4, "little") + bytes(4) + bytes(2)
    (tmp_path / "a.zip").write_bytes(data + end)
    with grown_mib() as grown, pytest.raises(InvalidRequestError, match="more than 250,000 files"):
        datasets.read(tmp_path / "a.zip")
    assert grown() < 100


def test_texts_of_an_archive_have_a_limit_together(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for number in range(20):
            packed.writestr(f"{number}.wav", WAV)
            packed.writestr(f"{number}.txt", b"a" * (1 << 20))
    with pytest.raises(InvalidRequestError, match="unpacks to more than"):
        datasets.read(tmp_path / "a.zip")
