"""Server-sent events: any slicing gives the same, and an end that was not announced is no end."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.client import EventReader
from speechlab.errors import ConfigurationError, ContractError, StreamTruncatedError

CASES = {
    "LF": (b"data: a\n\ndata: b\n\n", ["a", "b"]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
    "CR": (b"data: a\r\rdata: b\r\r", ["a", "b"]),
    "mixed": (b"data: a\r\n\ndata: b\n\r", ["a", "b"]),
    "byte-order mark": (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
    "comments": (b": hello\n\n:\ndata: a\n: more\n\n", ["a"]),
    "other fields": (b"event: x\nid: 1\nretry: 5\nfield\ndata: a\n\nid: 2\n\n", ["a"]),
    "lines of one event": (b"data: a\ndata: b\ndata\n\n", ["a\nb\n"]),
    "no space": (b"data:a\n\ndata:  b\n\n", ["a", " b"]),
    "empty data": (b"data:\n\ndata: \n\n", []),
    "separators inside": ('data: "\u2028\u2029\x85\x0b\x0c"\n\n'.encode(), ['"\u2028\u2029\x85\x0b\x0c"']),
    "no blank line at the end": (b"data: a\n\ndata: b", ["a", "b"]),
    "no end of line at the end": (b"data: a\r", ["a"]),
    "half a character at the end": ("data: é".encode()[:-1], ["\ufffd"]),
    "invalid byte": (b"data: \xff\n\n", ["\ufffd"]),
    "beyond the basic plane": ("data: 𠮷野家\n\n".encode(), ["𠮷野家"]),
    "nothing": (b"", []),
}


def read(pieces):
    reader = EventReader()
    found = [data for piece in pieces for data in reader.feed(piece)]
    return [*found, *reader.close()]


@pytest.mark.parametrize("name", CASES)
def test_111_whole_and_byte_by_byte(name):
    stream, expected = CASES[name]
    assert read([stream]) == expected
    assert read([stream[i : i + 1] for i in range(len(stream))]) == expected


@given(st.lists(st.sampled_from(sorted(CASES)), max_size=4), st.lists(st.integers(0, 200), max_size=8))
def test_any_slicing_gives_the_same(names, cuts):
    stream = b"".join(CASES[name][0] for name in names)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert read(pieces) == read([stream])


@given(st.lists(st.text(max_size=30)), st.sampled_from(["\n", "\r", "\r\n"]), st.integers(1, 7))
def test_json_goes_through_unchanged(texts, newline, width):
    stream = "".join(f"data: {json.dumps(t, ensure_ascii=False)}{newline * 2}" for t in texts).encode(
        "utf-8", "replace"
    )
    found = read([stream[i : i + width] for i in range(0, len(stream), width)])
    assert [json.loads(data) for data in found] == [t.encode("utf-8", "replace").decode() for t in texts]


def test_an_event_without_end_is_given_up():
    with pytest.raises(ContractError, match="larger than"):
        read([b"x" * 4_000_000, b"x" * 400_000])


def stream_of(lab, server, http, body, **kwargs):
    pieces = body if isinstance(body, list) else [body]
    server.script(http.chunked(*pieces, content_type="text/event-stream; charset=utf-8", **kwargs))
    return lab.stream_translation("やあ", source_lang="ja", target_lang="en")


def test_a_translation_as_it_comes(server, lab, http):
    body = http.events(
        http.delta("He", transcription="やあ", source_lang="ja", target_lang="en"),
        http.delta(""),
        http.delta("llo", usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}),
    )
    with stream_of(lab, server, http, [body[:50], 0.05, body[50:]]) as stream:
        assert (stream.status, stream.headers["transfer-encoding"]) == (200, "chunked")
        with pytest.raises(ConfigurationError, match="not complete"):
            _ = stream.translation
        texts = [(chunk.text, stream.text) for chunk in stream]
    assert texts == [("He", "He"), ("", "He"), ("llo", "Hello")]
    whole = stream.translation
    assert (whole.text, whole.id, whole.transcription) == ("Hello", "trans_1", "やあ")
    assert whole.usage.total_tokens == 3
    assert b'name="stream"\r\n\r\ntrue' in server.requests[0].body
    assert lab.usage.completion_tokens == 2
    assert list(stream) == []


def test_107_108_both_announced_ends(server, lab, http):
    finish = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"total_tokens": 9}}\n\n'
    done = b"data: [DONE]\n\n"
    for end, reason in ((done, None), (done[:-2], None), (b"data: [DONE]\r\n\r\n", None), (finish, "stop")):
        body = http.events(http.delta("Hello"), end=end)
        with stream_of(lab, server, http, body) as stream:
            assert stream.collect().text == "Hello"
        assert stream.translation.finish_reason == reason
    assert not server.closed_early.is_set()  # the connection is used again
    body = http.events(http.delta("Hi"), end=finish + done)
    with stream_of(lab, server, http, [body, http.RESET], end=False) as stream:
        assert stream.collect().text == "Hi"  # a break after the end is no break
    server.script(http.reply(body={"choices": [{"message": {"content": "Hello"}}]}))
    with lab.stream_translation("a", source_lang="ja", target_lang="en") as stream:
        assert [chunk.text for chunk in stream] == ["Hello"]  # of a service that does not stream
    assert stream.translation.text == stream.text == "Hello"


def test_109_112_an_end_that_was_not_announced(server, lab, http):
    unexplained = b'data: {"error": [null]}\n\n'
    said = []
    fault = b'data: {"code": 108, "name": "ErrInternal", "error": "engine failed"}\n\n'
    for tail, whole in (
        (b"", True),
        (b"", False),
        (b'data: {"choices": [{"del', True),
        (b"data: [DO", True),
        (b'data: {"choices": [{"delta": {"content": "\xe3\x81', False),
        (unexplained, True),
        (fault, True),
    ):
        body = http.events(http.delta("He"), http.delta("l"), end=tail)
        stream = stream_of(lab, server, http, [body, 0.05, *([] if whole else [http.CLOSE])], end=whole)
        with stream, pytest.raises(StreamTruncatedError) as caught:
            list(stream)
        assert caught.value.partial == "Hel"
        assert caught.value.timing.attempts == 1
        said.append(str(caught.value))
    assert caught.value.__cause__.code == 108
    assert "engine failed" in said[-1]
    assert '{"error": [null]}' in said[-2]


def test_events_that_are_no_chunks(server, lab, http):
    for data in (b"not json", b"5", b'{"choices": 5}', b'{"choices": [{"delta": {"content": 5}}]}'):
        body = b"data: " + data + b"\n\n" + http.events(http.delta("a"))
        with stream_of(lab, server, http, body) as stream, pytest.raises(ContractError):
            list(stream)
    server.script(http.reply(body=b"<html>login</html>", content_type="text/html"))
    with pytest.raises(ContractError, match="text/html"):
        lab.stream_translation("a", source_lang="ja", target_lang="en").open()
    server.script(http.reply(body=b"?", X_Request_Id="req-9"))
    with pytest.raises(ContractError) as caught:
        lab.stream_translation("a", source_lang="ja", target_lang="en").collect()
    assert caught.value.request_id == "req-9"
