"""POST /translate/. The engine echoes where the way counts, and is Gemma where words do."""

from __future__ import annotations

import json
import time

import pytest

from speechlab.contract import TranslationReply

PAIR = {"source_lang": "en", "target_lang": "ja"}


def events(reply) -> tuple[list[dict], int]:
    """The JSON events, and how many end marks there were."""
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["transfer-encoding"] == "chunked"
    text = reply.body.decode()
    assert text.endswith("\n\n")
    found, marks = [], 0
    for event in text[:-2].split("\n\n"):
        assert event.startswith("data: ")
        assert "\n" not in event
        if event == "data: [DONE]":
            marks += 1
        else:
            assert marks == 0
            found.append(json.loads(event[6:]))
    return found, marks


def test_s100_s101_s102_the_reply(staged):
    text = "Line one,\r\nline two 🙂 and  spaces "
    before = int(time.time())
    reply = staged.http.translate(text=text, **PAIR)
    body = reply.json()
    assert reply.status == 200
    assert list(body) == [
        "id", "object", "created", "model", "choices", "transcription", "source_lang", "target_lang", "usage",
    ]  # fmt: skip
    assert body["id"].startswith("trans_")
    assert body["object"] == "translation.completion"
    assert type(body["created"]) is int
    assert before <= body["created"] <= time.time() + 1
    assert body["model"] == "staged/echo"
    message = {"role": "assistant", "content": f"«{text}»"}
    assert body["choices"] == [{"index": 0, "message": message, "finish_reason": "stop"}]
    assert (body["transcription"], body["source_lang"], body["target_lang"]) == (text, "en", "ja")
    assert body["usage"] == {
        "prompt_tokens": len(text),
        "completion_tokens": 3,
        "total_tokens": len(text) + 3,
    }
    assert staged.http.translate(text=text, **PAIR).json()["id"] != body["id"]
    assert TranslationReply.parse(body).usage


def test_s103_to_s107_s110_the_stream(staged):
    text = "Line one\u2028still, \u0085 and\r\nline two"
    reply = staged.http.translate(text=text, stream="true", **PAIR)
    found, marks = events(reply)
    assert marks == 1
    assert len({event["id"] for event in found}) == 1
    assert found[0]["id"].startswith("trans_")
    for event in found:
        assert event["object"] == "translation.completion.chunk"
        assert [choice["index"] for choice in event["choices"]] == [0]
        assert set(event["choices"][0]) == {"index", "delta"}
    assert found[0]["transcription"] == text
    assert (found[0]["source_lang"], found[0]["target_lang"]) == ("en", "ja")
    assert all("transcription" not in event for event in found[1:])
    assert [event.get("usage") for event in found[:-1]] == [None] * (len(found) - 1)
    assert found[-1]["usage"]["total_tokens"] == len(text) + 3
    joined = "".join(event["choices"][0]["delta"]["content"] for event in found)
    assert joined == staged.http.translate(text=text, **PAIR).json()["choices"][0]["message"]["content"]


def test_s89_without_the_slash_as_well_and_no_redirect(staged):
    assert staged.http.translate(text="x", path="/translate", **PAIR).status == 200


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"text": "x", "source_lang": "en", "target_lang": "ja"}', "application/json"),
        (b"text=x&source_lang=en&target_lang=ja", "application/x-www-form-urlencoded"),
        (b"--b\r\n", "multipart/form-data"),
        (b"--b\r\n", "multipart/mixed; boundary=b"),
        (b"--b\r\n", 'multipart/form-data; boundary=""'),
        (b"--b\r\n", "multipart/form-data; boundary=" + "b" * 71),
        (b"--b\r\n", "multipart/form-data; boundary*" + "1" * 100 + "=b"),
        (b"x", None),
    ],
)
def test_s90_s113_other_content_types_are_400(live, error_body, body, kind):
    reply = live.request("POST", "/translate/", body, {"Content-Type": kind} if kind else {})
    assert "multipart/form-data" in error_body(reply, 400, "ErrInvalidRequest")["error"]


@pytest.mark.parametrize("parameter", ['a="' + ";" * 60_000, "boundary*" + "1" * 5_000 + "=b"])
def test_s90_a_content_type_that_takes_long_to_read_is_not_read(staged, error_body, parameter):
    reply = staged.http.request(
        "POST", "/translate/", b"x", {"Content-Type": f"multipart/form-data; {parameter}"}
    )
    assert "longer than 256 characters" in error_body(reply, 400, "ErrInvalidRequest")["error"]


REFUSED = {
    "s91 no text": [("source_lang", "en"), ("target_lang", "ja")],
    "s91 empty text": [("text", ""), *PAIR.items()],
    "s91 blank text": [("text", " \u3000\n"), *PAIR.items()],
    "s91 long text": [("text", "\U00020bb7" * 10_001), *PAIR.items()],
    "s92 no source": [("text", "x"), ("target_lang", "ja")],
    "s92 no target": [("text", "x"), ("source_lang", "ja")],
    "s92 unsupported": [("text", "x"), ("source_lang", "tlh"), ("target_lang", "ja")],
    "s92 empty": [("text", "x"), ("source_lang", ""), ("target_lang", "ja")],
    "s93 stream 1": [("text", "x"), ("stream", "1"), *PAIR.items()],
    "s93 stream True": [("text", "x"), ("stream", "True"), *PAIR.items()],
    "s93 stream empty": [("text", "x"), ("stream", ""), *PAIR.items()],
    "s94 21 keywords": [("text", "x"), *PAIR.items(), *[("keywords", "k")] * 21],
    "s95 102 bytes": [("text", "x"), ("keywords", "あ" * 34), *PAIR.items()],
    "s96 long context": [("text", "x"), ("context", "\U00020bb7" * 2_001), *PAIR.items()],
    "s98 unknown model": [("text", "x"), ("model", "other/model"), *PAIR.items()],
    "s99 text twice": [("text", "x"), ("text", "y"), *PAIR.items()],
    "s99 model twice": [("text", "x"), ("model", "echo"), ("model", "echo"), *PAIR.items()],
}


@pytest.mark.parametrize("pairs", REFUSED.values(), ids=list(REFUSED))
@pytest.mark.parametrize("stream", [False, True])
def test_s91_to_s99_s112_s113_refusals_are_400_before_any_stream(staged, error_body, pairs, stream):
    if stream and not any(name == "stream" for name, _ in pairs):
        pairs = [*pairs, ("stream", "true")]
    body = error_body(staged.http.form(pairs), 400, "ErrInvalidRequest")
    assert body["context"][0] == "translate"
    assert staged.translator.jobs == []


def test_s91_s94_s95_s96_limits_are_inclusive(staged):
    text, context = "\U00020bb7" * 10_000, "\U00020bb7" * 2_000
    keywords = [("keywords", "あ" * 33), ("keywords", "a, b, c"), *[("keywords", str(n)) for n in range(18)]]
    reply = staged.http.form([("text", text), ("context", context), *keywords, *PAIR.items()])
    assert reply.status == 200
    job = staged.translator.jobs[-1]
    assert (job.text, job.context) == (text, context)
    assert job.keywords == tuple(value for _, value in keywords)
    assert reply.json()["transcription"] == text


@pytest.mark.parametrize("model", ["", "echo", "staged/echo"])
def test_s98_models(staged, model):
    assert staged.http.translate(text="x", model=model, **PAIR).json()["model"] == "staged/echo"


def test_s92_codes_are_normalized_for_the_engine_and_echoed_as_sent(staged):
    body = staged.http.translate(text="x", source_lang="EN-us", target_lang="zh_CN").json()
    assert (body["source_lang"], body["target_lang"]) == ("EN-us", "zh_CN")
    assert (staged.translator.jobs[-1].source, staged.translator.jobs[-1].target) == ("en", "zh")


def multipart(*parts: bytes, end: bytes = b"--b--\r\n") -> bytes:
    return b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + end


def part(name: str, value: bytes, more: str = "", header: str = "Content-Disposition") -> bytes:
    return f'{header}: form-data; name="{name}"{more}\r\n\r\n'.encode() + value


GOOD = (part("source_lang", b"en"), part("target_lang", b"ja"))
DAMAGED = {
    "cut before the closing boundary": multipart(*GOOD, part("text", b"x"), end=b""),
    "cut within the last field": multipart(*GOOD, part("text", b"x"))[:-12],
    "cut closing mark": multipart(*GOOD, part("text", b"x"), end=b"--b-"),
    "file part": multipart(*GOOD, part("text", b"x", '; filename="x.txt"')),
    "file part 5987": multipart(*GOOD, part("text", b"x", "; filename*=UTF-8''x.txt")),
    "bad utf-8": multipart(*GOOD, part("text", b"\xe3\x81")),
    "no name": multipart(*GOOD, b"Content-Disposition: form-data\r\n\r\nx"),
    "no disposition": multipart(*GOOD, b"X-Other: a\r\n\r\nx"),
    "no blank line": multipart(*GOOD, b'Content-Disposition: form-data; name="text"\r\nx'),
    "attachment": multipart(*GOOD, b'Content-Disposition: attachment; name="text"\r\n\r\nx'),
    "base64 part": multipart(
        *GOOD, b'Content-Transfer-Encoding: base64\r\nContent-Disposition: form-data; name="text"\r\n\r\neA=='
    ),
    "other boundary": multipart(*GOOD, part("text", b"x")).replace(b"--b", b"--c"),
    "junk after a boundary": multipart(*GOOD, part("text", b"x")).replace(b"--b\r\n", b"--bjunk\r\n", 1),
    "empty": b"",
    "only the end": b"--b--\r\n",
    "65 parts": multipart(*GOOD, *[part("keywords", b"k")] * 65, part("text", b"x")),
    "two dispositions": multipart(
        *GOOD, b'Content-Disposition: form-data; name="a"\r\n' + part("text", b"x")
    ),
    "long disposition": multipart(*GOOD, part("text", b"x", '; a="' + ";" * 300)),
    "huge headers": multipart(*GOOD, part("text", b"x", "; x=" + "y" * 5_000)),
}


@pytest.mark.parametrize("body", DAMAGED.values(), ids=list(DAMAGED))
def test_s99_damaged_forms_are_400_and_nothing_is_dropped(staged, error_body, body):
    reply = staged.http.request(
        "POST", "/translate/", body, {"Content-Type": "multipart/form-data; boundary=b"}
    )
    error_body(reply, 400, "ErrInvalidRequest")
    assert staged.translator.jobs == []


def test_s90_forms_as_other_clients_write_them(staged):
    body = b"preamble\r\n" + multipart(
        part("source_lang", b"en", header="content-disposition"),
        part("target_lang", b"ja"),
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Disposition: form-data; name=text\r\n\r\nx--b--\n--b\r\n",
        part("unknown", b"ignored"),
        end=b"--b--\r\nepilogue",
    )
    kind = 'Multipart/Form-Data; charset=utf-8; boundary="b"'
    reply = staged.http.request("POST", "/translate/", body, {"Content-Type": kind})
    assert reply.status == 200, reply.body
    assert staged.translator.jobs[-1].text == "x--b--\n--b\r\n"


@pytest.mark.parametrize("stream", ["false", "true"])
def test_s112_faults_before_the_first_word_are_500(staged, error_body, stream):
    reply = staged.http.translate(text="broken", stream=stream, **PAIR)
    body = error_body(reply, 500, "ErrInternal")
    assert body["error"] == "translation failed: the engine failed before its first word"


def test_s112_a_fault_in_the_stream_is_an_event_without_the_end_mark(staged):
    found, marks = events(staged.http.translate(text="breaks later", stream="true", **PAIR))
    assert marks == 0
    assert found[0]["choices"][0]["delta"]["content"] == "«"
    assert "failed after its first word" in found[-1]["error"]["message"]


def test_s87_large_forms_are_413(live, error_body):
    error_body(live.translate(text="x" * 300_000, **PAIR), 413, "ErrTooLarge")


@pytest.mark.engines
def test_s100_s110_real_translation(live):
    text = "今日は天気がいいです。"
    whole = live.translate(text=text, source_lang="ja", target_lang="en")
    assert whole.status == 200
    content = whole.json()["choices"][0]["message"]["content"]
    assert content
    assert content.isascii()
    assert whole.json()["usage"]["completion_tokens"] > 0
    assert whole.headers["x-speechlab-model"] == whole.json()["model"]
    found, marks = events(live.translate(text=text, source_lang="ja", target_lang="en", stream="true"))
    assert marks == 1
    assert "".join(event["choices"][0]["delta"]["content"] for event in found) == content
