"""Bytes that are held for clients, in one budget by key and on disk; and the pace of senders and readers."""

import asyncio
import contextlib
import json
import socket
import sys
import threading

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.service import (
    ClientGone,
    Database,
    KeyStore,
    Pace,
    ServiceConfig,
    Shares,
    create_app,
    run_service,
)
from support.clients import KEY, Http
from support.clock import eventually
from support.sockets import read_all
from support.staged import NO_ENGINES

MIB = 2**20


@given(
    limit=st.integers(1, 50),
    steps=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 30), st.booleans()), max_size=40),
)
def test_shares_keep_the_limit_and_the_share_of_each_key(limit, steps):
    shares, used = Shares(limit), dict.fromkeys("abcd", 0)
    for owner, amount, back in steps:
        if back and used[owner]:
            shares.give_back(owner, used[owner])
            used[owner] = 0
        else:
            total, inside = sum(used.values()), {key for key in used if used[key]} | {owner}
            admitted = shares.try_take(owner, amount)
            used[owner] += amount * admitted
            if total + amount <= limit:
                assert admitted
            if admitted:
                share = max(1, limit // len(inside))
                assert used[owner] <= limit
                assert total + amount <= limit or (len(inside) > 1 and used[owner] <= share)
        assert shares.total == sum(used.values())


@pytest.fixture(scope="module")
def budget():
    return create_app(ServiceConfig(api_keys=(KEY,), held_bytes=2**30)).state.service.budget


@given(pieces=st.lists(st.binary(max_size=300).map(lambda piece: piece * 4_000), max_size=6))
def test_what_is_held_comes_back_from_memory_and_from_disk(budget, pieces):
    held = budget.open_held_bytes("key", "tts")
    for piece in pieces:
        held.write(piece)
    whole = b"".join(pieces)
    assert held.size == len(whole) == budget.held
    assert held.read() == whole
    assert held.read(5, 10) == whole[5:15]
    assert bytes(held.view()) == whole
    held.close()
    held.close()
    assert budget.held == 0
    with pytest.raises(ClientGone):
        held.write(b"x")


def test_a_disk_that_is_full_is_503(stage, tmp_path, error_body):
    folder = tmp_path / "data"
    with stage(data_dir=folder) as service:
        folder.rename(tmp_path / "away")
        error_body(service.http.recognize(bytes(3 * MIB)), 503, "ErrOverloaded")
        (tmp_path / "away").rename(folder)


@contextlib.contextmanager
def uploading(http: Http, declared: int, sent: int):
    """A recording of which a part has come."""
    with socket.create_connection(http.address, timeout=30) as connection:
        head = f"POST /asr/srt/audio_llm HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {http.key}\r\n"
        connection.sendall(f"{head}Content-Length: {declared}\r\n\r\n".encode() + b'{"audio": "')
        connection.sendall(b"A" * (sent - 11))
        yield connection


def held_bytes(http: Http) -> float:
    text = http.request("GET", "/metrics").body.decode()
    return next(
        float(line.split()[1]) for line in text.splitlines() if line.startswith("speechlab_held_bytes ")
    )


def test_a_key_that_holds_too_much_is_429_and_others_go_on(stage, tmp_path, error_body):
    with contextlib.closing(Database(tmp_path)) as database:
        _, other_key = KeyStore(database).create_key("other")
    with stage(held_bytes=3 * MIB, data_dir=tmp_path) as service:
        other = Http(service.http.base_url, other_key)
        with uploading(service.http, 2 * MIB, 1000):
            assert eventually(lambda: held_bytes(service.http) == 2 * MIB)
            refused = service.http.recognize(bytes(MIB))
            assert "held_bytes" in error_body(refused, 429, "ErrRateLimited")["error"]
            assert int(refused.headers["retry-after"]) > 0
            # Bodies that do not say how long they are are counted as they come.
            body = iter([b'{"audio": "', *[b"A" * 65_536] * 24])
            reply = service.http.request("POST", "/asr/srt/audio_llm", body)
            assert reply.status == 429
            assert other.recognize(bytes(900_000)).status == 400  # it was read: no recording
        assert eventually(lambda: held_bytes(service.http) == 0)
        assert service.http.recognize(bytes(MIB)).status == 400
        # What can never fit is not told to come back.
        assert service.http.recognize(bytes(4 * MIB)).status == 413
    assert not [path for path in tmp_path.iterdir() if path.stat().st_size > MIB]


def test_a_whole_reply_counts_until_it_is_read(stage):
    with stage(held_bytes=10 * MIB) as service:
        service.speaker.piece_s = 30.0
        whole = service.speak().body
        with service.asking("plain") as connection:
            assert eventually(lambda: 0 <= held_bytes(service.http) - len(whole) < 1000)
            read = b"".join(iter(lambda: connection.recv(65_536), b""))
            assert read.endswith(whole)
        assert eventually(lambda: held_bytes(service.http) == 0)
        service.speaker.piece_s = 60.0  # 11 MB of samples
        assert service.speak().status == 429
        assert held_bytes(service.http) == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux counts it")
def test_uploads_under_way_cost_disk_and_not_memory(tmp_path):
    config = ServiceConfig(
        port=0, api_keys=(KEY,), operator_keys=(KEY,), data_dir=tmp_path, translator="", engines=NO_ENGINES
    )
    config = config.model_copy(update={"recognizer_url": "http://127.0.0.1:9"})
    with run_service(config, process=True) as service, contextlib.ExitStack() as stack:
        http, process = Http(service.base_url), psutil.Process(service.pid)
        before = process.memory_info().rss
        for _ in range(2):
            stack.enter_context(uploading(http, 40 * MIB, 39 * MIB))
        assert held_bytes(http) == 80 * MIB
        assert process.memory_info().rss - before < 20 * MIB
        stack.close()
        assert eventually(lambda: held_bytes(http) == 0)


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        alive = [handle.when() for handle in self._scheduled if not handle.cancelled()]
        if alive and not self._ready:
            self.now = max(self.now, min(alive))
        super()._run_once()


def ended_after(steps: list[tuple[float, int]], window_s: float, least: int) -> float | None:
    """After how many seconds of waiting a peer is let go that moves bytes after each pause."""

    async def run() -> float | None:
        pace, waited = Pace(window_s, least), 0.0
        for pause, count in steps:
            try:
                await pace.wait_within_pace(asyncio.sleep(pause))
            except TimeoutError:
                return asyncio.get_running_loop().time()
            waited += pause
            pace.count_bytes(count)
        return None

    with asyncio.Runner(loop_factory=Clock) as runner:
        return runner.run(run())


@given(pauses=st.lists(st.floats(0.01, 2.0), min_size=1, max_size=60), least=st.integers(100, 10_000))
def test_a_steady_peer_stays(pauses, least):
    steps = [(pause, round(pause * least * 1.5) + 1) for pause in pauses]
    assert ended_after(steps, 10.0, least) is None


@given(fast=st.integers(0, 10**9), pause=st.floats(0.05, 3.0), window_s=st.floats(4.0, 30.0))
def test_a_fast_start_is_no_credit(fast, pause, window_s):
    trickle = [(0.0, fast)] + [(pause, 1)] * round(3 * window_s / pause)
    ended = ended_after(trickle, window_s, 1000)
    assert ended is not None
    assert ended <= window_s * 1.01


@given(burst=st.integers(10_000, 10**6), window_s=st.floats(1.0, 30.0))
def test_a_window_without_a_byte_ends_it_and_less_does_not(burst, window_s):
    assert ended_after([(0.1, burst), (window_s * 0.95, burst), (window_s * 0.95, 1)], window_s, 100) is None
    assert ended_after([(0.1, 10**9), (window_s * 1.05, 1)], window_s, 100) is not None


def trickle(connection: socket.socket, stop: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while not stop.wait(0.1):
            connection.sendall(b"A")


@pytest.mark.slow
def test_an_upload_that_trickles_after_a_fast_start_is_408(stage):
    stop = threading.Event()
    head = "POST /asr/srt/audio_llm HTTP/1.1\nHost: localhost\nAuthorization: Bearer {key}\nContent-Length: 9000000\n"
    with stage(body_timeout_s=1.0) as service, service.http.raw(head, b"A" * 8_000_000) as connection:
        sending = threading.Thread(target=trickle, args=(connection, stop))
        sending.start()
        came = connection.recv(1000)
        stop.set()
        sending.join()
    assert came.startswith(b"HTTP/1.1 408 ")


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_s163_a_reader_that_trickles_is_let_go(stage, stream, caplog):
    caplog.set_level("INFO", logger="speechlab")
    with stage(send_timeout_s=1.0) as service, socket.socket() as connection:
        service.speaker.piece_s = 60.0
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(service.http.address)
        fields = json.dumps(
            {"voice_id": service.voice("plain"), "text": "x", "format": "pcm", "stream": stream}
        )
        head = f"POST /tts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.http.key}\r\n"
        connection.sendall(f"{head}Content-Length: {len(fields)}\r\n\r\n{fields}".encode())
        count = 0

        def reads_on() -> bool:
            nonlocal count
            with contextlib.suppress(OSError):
                count += len(connection.recv(10))
            return any(record.getMessage() == "request" for record in caplog.records)

        assert eventually(reads_on, 20)
        assert count < 10_000
        with contextlib.suppress(OSError):
            assert len(read_all(connection)) < 5_000_000
        metrics = service.http.request("GET", "/metrics").body.decode()
    assert 'method="POST",route="/tts",status="499"' in metrics
    assert service.speaker.closed == 1
    (logged,) = [record.fields for record in caplog.records if record.getMessage() == "request"]
    assert (logged["status"], logged["sent"], logged["ended"]) == (499, 200, "the reader was too slow")
