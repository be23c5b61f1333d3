"""POST /translate/. The engine echoes where the way counts."""

import json

PAIR = {"source_lang": "en", "target_lang": "ja"}


def test_s90_s113_other_content_types_are_400(staged, error_body):
    for kind in ({"Content-Type": "multipart/mixed; boundary=b"}, {}):
        reply = staged.http.request("POST", "/translate/", b"--b\r\n", kind)
        assert "multipart/form-data" in error_body(reply, 400, "ErrInvalidRequest")["error"]
    for slow in ('a="' + ";" * 60_000, "boundary*" + "1" * 5_000 + "=b"):
        kind = {"Content-Type": f"multipart/form-data; {slow}"}
        reply = staged.http.request("POST", "/translate/", b"x", kind)
        assert "longer than 256 characters" in error_body(reply, 400, "ErrInvalidRequest")["error"]


def test_s91_s94_s95_s96_limits_are_inclusive(staged):
    text, context = "\U00020bb7" * 10_000, "\U00020bb7" * 2_000
    keywords = [("keywords", "あ" * 33), ("keywords", "a, b, c"), *[("keywords", str(n)) for n in range(18)]]
    reply = staged.http.form([("text", text), ("context", context), *keywords, *PAIR.items()])
    assert reply.status == 200
    job = staged.translator.jobs[-1]
    assert (job.text, job.context) == (text, context)
    assert job.keywords == tuple(value for _, value in keywords)


def test_s92_codes_are_normalized_and_echoed_as_sent(staged):
    fields = {"text": "x", "model": "echo", "source_lang": "EN-us", "target_lang": "zh_CN"}
    body = staged.http.translate(**fields).json()
    assert body["model"] == "staged/echo"
    assert (body["source_lang"], body["target_lang"]) == ("EN-us", "zh_CN")
    assert (staged.translator.jobs[-1].source, staged.translator.jobs[-1].target) == ("en", "zh")


def multipart(*parts: bytes, end: bytes = b"--b--\r\n") -> bytes:
    return b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + end


def part(name: str, value: bytes, more: str = "", header: str = "Content-Disposition") -> bytes:
    return f'{header}: form-data; name="{name}"{more}\r\n\r\n'.encode() + value


GOOD = (part("source_lang", b"en"), part("target_lang", b"ja"))
DAMAGED = {
    "cut closing mark": multipart(*GOOD, part("text", b"x"), end=b"--b-"),
    "file part 5987": multipart(*GOOD, part("text", b"x", "; filename*=UTF-8''x.txt")),
    "no name": multipart(*GOOD, b"Content-Disposition: form-data\r\n\r\nx"),
    "base64 part": multipart(
        *GOOD, b'Content-Transfer-Encoding: base64\r\nContent-Disposition: form-data; name="text"\r\n\r\neA=='
    ),
    "junk after a boundary": multipart(*GOOD, part("text", b"x")).replace(b"--b\r\n", b"--bjunk\r\n", 1),
    "65 parts": multipart(*GOOD, *[part("keywords", b"k")] * 65, part("text", b"x")),
    "two dispositions": multipart(
        *GOOD, b'Content-Disposition: form-data; name="a"\r\n' + part("text", b"x")
    ),
    "huge headers": multipart(*GOOD, part("text", b"x", "; x=" + "y" * 5_000)),
}


def test_s99_damaged_forms_are_400_and_nothing_is_dropped(staged, error_body):
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    for what, body in DAMAGED.items():
        reply = staged.http.request("POST", "/translate/", body, kind)
        assert reply.status == 400, what
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


def test_s112_faults_before_the_first_word_are_500(staged, error_body):
    for stream in ("false", "true"):
        error_body(staged.http.translate(text="broken", stream=stream, **PAIR), 500, "ErrInternal")


def test_s112_a_fault_in_the_stream_is_its_last_event(staged):
    reply = staged.http.translate(text="breaks later", stream="true", **PAIR)
    found = [json.loads(event.removeprefix("data: ")) for event in reply.body.decode()[:-2].split("\n\n")]
    assert found[0]["choices"][0]["delta"]["content"] == "«"
    assert "failed after its first word" in found[-1]["error"]["message"]


def test_s87_large_forms_are_413(staged, error_body):
    error_body(staged.http.translate(text="x" * 300_000, **PAIR), 413, "ErrTooLarge")
