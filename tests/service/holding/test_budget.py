"""Bytes that are held for clients: one budget, shares by key, disk instead of memory, and memory given back."""

from __future__ import annotations

import contextlib
import socket
import sys

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.service import Database, KeyStore, ServiceConfig, run_service
from speechlab.service._faults import ClientGone, Fault
from speechlab.service._held_bytes import BLOCK_BYTES, BytesBudget, Shares
from support.clients import KEY, Http
from support.clock import eventually
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


@given(pieces=st.lists(st.binary(max_size=300).map(lambda piece: piece * 4_000), max_size=6))
def test_what_is_held_comes_back_from_memory_and_from_disk(pieces):
    budget = BytesBudget(2**30)
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


def test_a_disk_that_is_full_is_503(tmp_path):
    held = BytesBudget(2**30, tmp_path / "no such folder").open_held_bytes("key", "tts")
    held.write(bytes(BLOCK_BYTES))
    with pytest.raises(Fault) as caught:
        held.write(b"x")
    assert caught.value.status == 503


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
        fields = {"voice_id": service.voice("plain"), "text": "Hello.", "format": "wav"}
        whole = service.http.speak(**fields).body
        with service.http.raw_json("/tts", fields) as connection:
            assert eventually(lambda: 0 <= held_bytes(service.http) - len(whole) < 1000)
            read = b"".join(iter(lambda: connection.recv(65_536), b""))
            assert read.endswith(whole)
        assert eventually(lambda: held_bytes(service.http) == 0)
        service.speaker.piece_s = 60.0  # 11 MB of samples
        assert service.http.speak(**fields).status == 429
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
        for _ in range(4):
            stack.enter_context(uploading(http, 40 * MIB, 39 * MIB))
        assert held_bytes(http) == 160 * MIB
        assert process.memory_info().rss - before < 40 * MIB
        stack.close()
        assert eventually(lambda: held_bytes(http) == 0)
