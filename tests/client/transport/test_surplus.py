"""Bytes behind a reply, or in place of one: no call takes them for its own, and none is paid twice."""

import json
import ssl
import time
from contextlib import closing

import pytest

from speechlab.client import Client
from speechlab.errors import APIConnectionError
from support.sockets import Listener


def build_body(text):
    return {"choices": [{"message": {"content": text}}]}


def translate(lab, text="a"):
    return lab.translate(text, source_lang="ja", target_lang="en").text


def build_deliveries(http, surplus):
    """The bytes and pauses of a reply, with a surplus behind it, in the packets in which they may come."""
    reply = http.reply(body=build_body("right"))
    head, _, body = reply.partition(b"\r\n\r\n")
    head += b"\r\n\r\n"
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nLink: a\r\n\r\n"
    chunks = http.chunked(json.dumps(build_body("right")).encode(), content_type="application/json")
    return {
        "in one packet": [reply + surplus],
        "behind interim replies": [interim + reply + surplus],
        "behind lines that end in LF": [head.replace(b"\r\n", b"\n") + body + surplus],
        "behind chunks": [b"".join(chunks) + surplus],
        "with the body": [head, 0.005, body + surplus],
        "with the last chunk": [*chunks[:-1], 0.005, chunks[-1] + surplus],
        "with half of the body": [head + body[:9], 0.005, body[9:] + surplus],
        "in part": [reply + surplus[:20]],
        "just behind": [reply, surplus],
        "later": [reply, 0.005, surplus],
    }


SURPLUS = {
    "a reply": lambda http: http.reply(body=build_body("wrong")),
    "a refusal": lambda http: http.reply(400, {"error": "wrong"}),
    "junk": lambda http: b"junk junk junk junk junk junk\r\n\r\n",
    "line ends": lambda http: b"\r\n" * 20,
}


@pytest.mark.parametrize("kind", SURPLUS)
def test_a_surplus_is_no_reply(server, http, wire, kind):
    surplus = SURPLUS[kind](http)
    with Client(server.base_url, api_key=http.KEY, transport=wire, max_retries=0) as lab:
        for name, steps in build_deliveries(http, surplus).items():
            server.script(steps)
            for _ in range(2):
                assert translate(lab) == "right", name
                # It has to come before the next request: after that nobody can tell them apart.
                while server.active:
                    time.sleep(0.001)
            assert len(server.requests) == 2


def test_a_malformed_reply_is_not_paid_for_twice(server, lab, http):
    for reply in (
        b"junk junk\r\n\r\n",
        b"HTTP/1.1 200 X\r\nbad header\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 X\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\n{}",
        b"HTTP/1.1 200 X\r\nContent-Length: -2\r\n\r\n{}",
        b"HTTP/1.1 200 X\r\nContent-Le",
    ):
        server.script([reply, http.CLOSE])
        with pytest.raises(APIConnectionError) as caught:
            translate(lab)
        assert len(server.requests) == 1
        assert caught.value.possibly_metered


def test_a_connection_without_a_surplus_is_used_again(server, lab, http):
    server.script(
        [b"\r\n", 0.005, b"\r\n" + http.reply(body=build_body("right"))]
    )  # line ends that come late
    for _ in range(4):
        assert translate(lab) == "right"
    assert server.connections == 1


class TwoRecords(Listener):
    """Sends a reply and a surplus as two records of TLS in one packet."""

    def __init__(self, folder, first, second):
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self._records = first, second
        self.listen()

    def serve(self, connection):
        comes, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(comes, goes, server_side=True)

        def attempt(step, *arguments):
            while True:
                try:
                    return step(*arguments)
                except ssl.SSLWantReadError:
                    connection.sendall(goes.read())
                    if not comes.write(connection.recv(65_536)):
                        return b""  # the other side has closed the connection

        attempt(tls.do_handshake)
        while True:
            request = b""
            while not request.endswith(b"--\r\n"):
                if not (piece := attempt(tls.read, 65_536)):
                    return
                request += piece
            for record in self._records:
                tls.write(record)
            connection.sendall(goes.read())


def test_a_surplus_in_a_record_of_its_own_is_no_reply(certificate, http, wire, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    replies = [http.reply(body=build_body(text)) for text in ("right", "wrong")]
    server = TwoRecords(certificate, *replies)
    with (
        closing(server),
        Client(f"https://{server.place}", api_key=http.KEY, transport=wire, max_retries=0) as lab,
    ):
        assert [translate(lab) for _ in range(3)] == ["right"] * 3
