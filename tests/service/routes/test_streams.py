"""Streams, queues and failures, seen from the wire."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from speechlab.errors import EngineError
from support.clients import form_body
from support.clock import ends_within, eventually
from support.sockets import read_all, read_until
from support.staged import CANARY


def chunks_of(raw: bytes) -> tuple[str, list[bytes], bool]:
    """Head, chunks, and whether the final chunk was there."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    chunks = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            return head.decode(), chunks, True
        chunks.append(rest[:count])
        rest = rest[count + 2 :]
    return head.decode(), chunks, False


def test_s44_the_first_bytes_precede_the_end_of_synthesis(staged):
    fields = {"voice_id": staged.voice("gated"), "text": "x", "format": "pcm", "stream": True}
    with staged.http.raw_json("/tts", fields) as connection:
        start = read_until(connection, b"\r\n\r\n")
        assert b" 200 OK" in start
        while len(start) < 24_000:
            start += connection.recv(65_536)
        assert staged.speaker.closed == 0
        staged.speaker.gate.set()
        rest = read_all(connection)
    _, chunks, ended = chunks_of(start + rest)
    assert ended
    assert len(b"".join(chunks)) == 2 * 24_000


@pytest.mark.parametrize("kind", ["mp3", "ogg", "wav"])
def test_s44_each_format_streams_before_the_end(staged, kind):
    fields = {"voice_id": staged.voice("gated"), "text": "x", "format": kind, "stream": True}
    with staged.http.raw_json("/tts", fields) as connection:
        data = b""
        while len(data) < 600:
            data += connection.recv(65_536)
        assert not staged.speaker.gate.is_set()


def test_s45_refusals_never_reach_the_engine(staged):
    voice = staged.voice("plain")
    for fields in (
        {"voice_id": voice, "text": "", "format": "wav"},
        {"voice_id": voice, "text": "x", "format": "wav", "sample_rate": 1, "stream": True},
        {"voice_id": voice, "text": "x", "format": "flac", "stream": True},
    ):
        assert staged.http.speak(**fields).status == 400
    assert staged.speaker.calls == []


def test_s46_a_late_fault_ends_without_the_final_chunk(staged):
    fields = {"voice_id": staged.voice("breaks-later"), "text": "x", "format": "pcm", "stream": True}
    with staged.http.raw_json("/tts", fields) as connection:
        head, chunks, ended = chunks_of(read_all(connection))
    assert "200 OK" in head
    assert len(b"".join(chunks)) == 24_000
    assert not ended
    assert b"{" not in b"".join(chunks)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("voice", ["broken", "no-model"])
def test_a_fault_before_the_first_byte_is_a_500_that_says_why(staged, error_body, voice, stream):
    fields = {"voice_id": staged.voice(voice), "text": "x", "format": "wav", "stream": stream}
    body = error_body(staged.http.speak(**fields), 500, "ErrInternal")
    assert body["error"].startswith("speech synthesis failed: ")
    assert ("before its first sound" in body["error"]) == (voice == "broken")
    assert ("reinstall" in body["error"]) == (voice == "no-model")
    assert CANARY not in body["error"]
    assert "model.bin" in body["error"] or voice == "broken"
    assert staged.http.speak(voice_id=staged.voice("plain"), text="x", format="wav").status == 200


def test_a_stream_that_fails_midway_is_logged_as_500(staged, caplog):
    caplog.set_level("INFO", logger="speechlab")
    fields = {"voice_id": staged.voice("breaks-later"), "text": "x", "format": "pcm", "stream": True}
    with staged.http.raw_json("/tts", fields) as connection:
        read_all(connection)
    pair = {"source_lang": "en", "target_lang": "ja", "stream": "true"}
    translated = staged.http.translate(text="breaks later", **pair)
    assert (translated.status, b'"error"' in translated.body) == (200, True)

    def requests() -> list[dict]:
        # The request before may be logged only now.
        lines = [record.fields for record in caplog.records if record.getMessage() == "request"]
        return [line for line in lines if "sent" in line]

    assert eventually(lambda: len(requests()) == 2)
    assert [(line["path"], line["status"], line["sent"], line["ended"]) for line in requests()] == [
        ("/tts", 500, 200, "speech synthesis failed: the engine failed after its first sound"),
        ("/translate/", 500, 200, "translation failed: the engine failed after its first word"),
    ]


def test_a_fault_in_the_middle_of_whole_audio_is_a_500(staged, error_body):
    reply = staged.http.speak(voice_id=staged.voice("breaks-later"), text="x", format="wav")
    error_body(reply, 500, "ErrInternal")


@pytest.mark.parametrize("stream", [False, True])
def test_s50_leaving_stops_the_synthesis_and_frees_the_place(stage, stream):
    with stage(queue_limit=1) as service:
        fields = {"voice_id": service.voice("endless"), "text": "x", "format": "wav", "stream": stream}
        with service.http.raw_json("/tts", fields) as connection:
            assert eventually(lambda: service.speaker.calls)
            if stream:
                connection.recv(10_000)
            busy = service.http.speak(voice_id=service.voice("plain"), text="x", format="wav")
            assert busy.status == 429
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        assert eventually(lambda: service.speaker.closed == 1)
        plain = {"voice_id": service.voice("plain"), "text": "x", "format": "wav"}
        assert eventually(lambda: service.http.speak(**plain).status == 200)


@pytest.mark.slow
def test_a_slow_reader_slows_the_synthesis_and_is_let_go(stage):
    with stage(send_timeout_s=1.0) as service:
        service.speaker.piece_s = 20.0
        fields = {"voice_id": service.voice("endless"), "text": "x", "format": "pcm", "stream": True}
        with service.http.raw_json("/tts", fields) as connection:
            assert eventually(lambda: service.speaker.calls)
            assert eventually(lambda: service.speaker.closed == 1, 20)
            data = read_all(connection)
        assert len(data) < 40_000_000
        assert not data.endswith(b"0\r\n\r\n")


def test_a_reader_that_stops_does_not_stop_others(stage):
    with stage(tts_concurrency=1) as service:
        service.speaker.piece_s = 20.0
        fields = {"voice_id": service.voice("endless"), "text": "x", "format": "pcm", "stream": True}
        with service.http.raw_json("/tts", fields) as connection:
            assert eventually(lambda: service.speaker.calls)
            plain = {"voice_id": service.voice("plain"), "text": "x", "format": "pcm"}
            assert service.http.speak(**plain).status == 200
            assert service.speaker.closed == 1  # only the one that was read
            connection.recv(1000)


def test_a_short_text_does_not_wait_for_a_long_one(staged):
    fields = {"voice_id": staged.voice("endless"), "text": "x", "format": "pcm", "stream": True}
    with staged.http.raw_json("/tts", fields) as connection:
        connection.recv(1000)
        with ends_within(30):  # of sixty
            assert staged.http.speak(voice_id=staged.voice("plain"), text="x", format="pcm").status == 200


def test_s16_s86_more_than_the_queue_holds_is_429_at_once(stage, error_body):
    with stage(queue_limit=2, tts_concurrency=1) as service:
        gated = {"voice_id": service.voice("gated"), "text": "x", "format": "pcm"}
        replies = []
        threads = [
            threading.Thread(target=lambda: replies.append(service.http.speak(**gated).status))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        both = b'speechlab_engine_requests{engine="staged"} 2.0\n'
        assert eventually(lambda: both in service.http.request("GET", "/metrics").body)
        reply = service.http.speak(voice_id=service.voice("plain"), text="x", format="pcm")
        error_body(reply, 429, "ErrRateLimited")
        assert int(reply.headers["retry-after"]) >= 1
        service.speaker.gate.set()
        for thread in threads:
            thread.join(20)
        assert replies == [200, 200]


def test_replies_belong_to_their_requests(staged):
    texts = [f"text {number}" for number in range(24)]
    found: dict[str, str] = {}

    def translate(text: str) -> None:
        reply = staged.http.translate(text=text, source_lang="en", target_lang="ja").json()
        found[text] = reply["choices"][0]["message"]["content"]

    threads = [threading.Thread(target=translate, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == {text: f"«{text}»" for text in texts}


def test_s103_s107_events_leave_one_by_one(staged):
    body, kind = form_body(
        [("text", "gated"), ("source_lang", "en"), ("target_lang", "ja"), ("stream", "true")]
    )
    head = (
        "POST /translate/ HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {key}\n"
        f"Content-Type: {kind}\nContent-Length: {len(body)}\nConnection: close\n"
    )
    with staged.http.raw(head, body) as connection:
        start = read_until(connection, b"\n\n")
        assert "«".encode() in start
        assert b"DONE" not in start
        staged.translator.gate.set()
        rest = read_all(connection)
    headers, chunks, ended = chunks_of(start + rest)
    assert "text/event-stream" in headers
    assert ended
    assert b"".join(chunks).endswith(b"\n\ndata: [DONE]\n\n")


def test_leaving_a_translation_stops_it(staged):
    body, kind = form_body([("text", "gated"), ("source_lang", "en"), ("target_lang", "ja")])
    head = (
        "POST /translate/ HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {key}\n"
        f"Content-Type: {kind}\nContent-Length: {len(body)}\n"
    )
    with staged.http.raw(head, body):
        assert eventually(lambda: staged.translator.jobs)
    time.sleep(0.2)
    staged.translator.gate.set()
    assert eventually(lambda: staged.translator.closed == 1)
    assert staged.http.translate(text="x", source_lang="en", target_lang="ja").status == 200


def test_bodies_that_stop_half_way_leave_nothing_behind(staged):
    head = "POST /tts HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {key}\nContent-Length: 1000\n"
    with staged.http.raw(head, b'{"text":'):
        pass
    assert staged.http.request("GET", "/tts/voices").status == 200


@pytest.mark.slow
def test_engine_errors_do_not_name_texts_in_the_reply(staged):
    staged.ears.fault = EngineError("/var/cache/models/whisper/model.bin: read error")
    reply = staged.http.recognize(_tone())
    assert json.loads(reply.body)["error"] == "Transcription failed: model.bin: read error"


def _tone() -> bytes:
    import numpy as np

    from speechlab.audio import encode

    return encode(np.full(8_000, 0.2, dtype=np.float32), "wav", 16_000)
