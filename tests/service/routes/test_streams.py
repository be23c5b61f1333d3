"""Streams, queues and failures, seen from the wire."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.clock import ends_within, eventually
from support.sockets import dechunked, read_all, read_until
from support.staged import CANARY

END = b"\r\n0\r\n\r\n"


def test_s44_the_first_bytes_precede_the_end_of_synthesis(staged):
    for kind in ("mp3", "ogg", "wav"):
        with staged.asking("endless", format=kind, stream=True) as connection:
            assert len(read_until(connection, b"never", limit=600)) >= 600
    assert eventually(lambda: staged.speaker.closed == 3)
    with staged.asking("gated", stream=True) as connection:
        start = read_until(connection, b"\r\n\r\n")
        assert b" 200 OK" in start
        while len(start) < 24_000:
            start += connection.recv(65_536)
        assert staged.speaker.closed == 3
        staged.speaker.gate.set()
        rest = read_all(connection)
    body = (start + rest).partition(b"\r\n\r\n")[2]
    assert body.endswith(END)
    assert len(dechunked(body)) == 2 * 24_000


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("voice", ["broken", "no-model"])
def test_a_fault_before_the_first_byte_is_a_500_that_says_why(staged, error_body, voice, stream):
    body = error_body(staged.speak(voice, stream=stream), 500, "ErrInternal")
    assert body["error"].startswith("speech synthesis failed: ")
    assert ("before its first sound" in body["error"]) == (voice == "broken")
    assert ("reinstall" in body["error"]) == (voice == "no-model")
    assert CANARY not in body["error"]
    assert "model.bin" in body["error"] or voice == "broken"
    assert staged.speak().status == 200


def test_s46_a_late_fault_ends_a_stream_without_the_final_chunk(staged, caplog):
    caplog.set_level("INFO", logger="speechlab")
    with staged.asking("breaks-later", stream=True) as connection:
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert b"200 OK" in head
    assert len(dechunked(body)) == 24_000
    assert not body.endswith(END)
    staged.translate("breaks later", stream="true")

    def requests() -> list[dict]:
        # The request before may be logged only now.
        lines = [record.fields for record in caplog.records if record.getMessage() == "request"]
        return [line for line in lines if "sent" in line]

    assert eventually(lambda: len(requests()) == 2)
    assert [(line["path"], line["status"], line["sent"], line["ended"]) for line in requests()] == [
        ("/tts", 500, 200, "speech synthesis failed: the engine failed after its first sound"),
        ("/translate/", 500, 200, "translation failed: the engine failed after its first word"),
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_s50_leaving_stops_the_synthesis_and_frees_the_place(stage, stream):
    with stage(queue_limit=1) as service:
        with service.asking("endless", stream=stream) as connection:
            assert eventually(lambda: service.speaker.calls)
            if stream:
                connection.recv(10_000)
            assert service.speak().status == 429
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        assert eventually(lambda: service.speaker.closed == 1)
        assert eventually(lambda: service.speak().status == 200)


def test_an_engine_is_free_when_its_thread_has_ended(staged):
    for engine, held, waiting, ask in (
        (staged.speaker, staged.asking("gated"), staged.asking("plain"), staged.speak),
        (staged.translator, staged.translating("gated"), staged.translating("Hi."), staged.translate),
    ):
        with held:
            assert eventually(lambda engine=engine: engine.begun == 1)
            with waiting:  # for its turn, and leaves
                time.sleep(0.1)
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(ask)
            time.sleep(0.2)
            assert engine.begun == 1
            engine.gate.set()
            assert other.result().status == 200


@pytest.mark.parametrize("piece_s", [0.5, 20.0])
def test_a_long_text_and_a_reader_that_stops_do_not_stop_others(stage, piece_s):
    with stage(tts_concurrency=1) as service:
        service.speaker.piece_s = piece_s
        with service.asking("endless", stream=True) as connection:
            assert eventually(lambda: service.speaker.calls)
            with ends_within(30):  # of sixty
                assert service.speak().status == 200
            assert service.speaker.closed == 1  # only the one that was read
            connection.recv(1000)


def test_replies_belong_to_their_requests(staged):
    texts = [f"text {number}" for number in range(24)]

    def translate(text: str) -> str:
        return staged.translate(text).json()["choices"][0]["message"]["content"]

    with ThreadPoolExecutor(len(texts)) as pool:
        assert list(pool.map(translate, texts)) == [f"«{text}»" for text in texts]


def test_s103_s107_events_leave_one_by_one(staged):
    with staged.translating("gated", stream="true") as connection:
        start = read_until(connection, b"\n\n")
        assert "«".encode() in start
        assert b"DONE" not in start
        staged.translator.gate.set()
        rest = read_all(connection)
    headers, _, body = (start + rest).partition(b"\r\n\r\n")
    assert b"text/event-stream" in headers
    assert body.endswith(END)
    assert dechunked(body).endswith(b"\n\ndata: [DONE]\n\n")
