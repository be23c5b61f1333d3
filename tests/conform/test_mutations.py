"""Every field and every status of the replies, changed one at a time: the checks have to notice each."""

import json

import pytest

from speechlab.conform import Verdict
from support.proxy import TEXT, Fault

CHANGES = {
    "gone": lambda fields, name: fields.pop(name),
    "null": lambda fields, name: fields.update({name: None}),
    "of another type": lambda fields, name: fields.update(
        {name: ["odd"] if not isinstance(fields[name], list) else 5}
    ),
}


def changed(value, path, change):
    """Change one field of a JSON value in place; a list means its first item. Whether it was there."""
    for step in path[:-1]:
        value = value[0] if step == "*" and value else value.get(step) if isinstance(value, dict) else None
        if value is None:
            return False
    if not isinstance(value, dict) or path[-1] not in value:
        return False
    CHANGES[change](value, path[-1])
    return True


def noticed(outcomes) -> bool:
    return any(each.verdict in {Verdict.FAILS, Verdict.ADVISORY} for each in outcomes.values())


def list_fields(names, within=""):
    return [within + name for name in names.split()]


ERROR = list_fields("context code name error")
HTTP = {  # what is changed: path, status, fields, and the checks that notice
    "voices": (
        "/tts/voices", 200, list_fields("id description language gender formats streaming", "voices.*."),
        "22-fields,23-values",
    ),
    "refusal": ("/tts/voices", 401, ERROR, "3-401-body"),
    "speech error": ("/tts", 400, ERROR, "9-body"),
    "recognition error": ("/asr/srt/audio_llm", 400, ["code", "error"], "10-asr-body"),
    "heard": ("/asr/srt/audio_llm", 200, ["text", "language", "confidence"], "54-happy"),
    "segments": (
        "/asr/srt/audio_llm", 200,
        [*list_fields("segments language confidence"), *list_fields("start end text", "segments.*.")],
        "78-form",
    ),
    "translation": (
        "/translate/", 200,
        [
            *list_fields("id object created model choices transcription source_lang target_lang"),
            *list_fields("index message finish_reason message.role message.content", "choices.*."),
            *list_fields("prompt_tokens completion_tokens total_tokens", "usage."),
        ],
        "100-form,100-role,101-source,102-usage",
    ),
    "translation error": ("/translate/", 400, ERROR, "113-errors"),
}  # fmt: skip


class HttpField(Fault):
    """One field of the replies of a path with a status."""

    def __init__(self, path, status, field, change):
        self.path, self.status, self.field, self.change = path, status, field, change
        self.done = 0

    def answered(self, request, reply):
        if request.path == self.path and reply.status == self.status:
            body = reply.json()
            if changed(body, self.field, self.change):
                reply.set(body)
                self.done += 1


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("what", "field"), [(what, field) for what, of in HTTP.items() for field in of[2]])
def test_a_field_of_a_reply(spoiled, what, field, change):
    path, status, _, names = HTTP[what]
    fault = HttpField(path, status, field.split("."), change)
    outcomes, _ = spoiled(fault, *names.split(","))
    assert fault.done
    assert noticed(outcomes), {name: each.verdict for name, each in outcomes.items()}


class Status(Fault):
    """Another status for the replies of a path that have one."""

    def __init__(self, path, status, other):
        self.path, self.status, self.other, self.done = path, status, other, 0

    def answered(self, request, reply):
        if request.path == self.path and reply.status == self.status:
            reply.status = self.other
            self.done += 1


STATUSES = [
    ("/tts/voices", 200, 202, "20-catalogue"),
    ("/tts/voices", 401, 403, "3-401-body,1-key-needed"),
    ("/tts", 200, 202, "42-type,43-whole"),
    ("/tts", 400, 422, "28-text,31-format"),
    ("/asr/srt/audio_llm", 200, 202, "54-happy"),
    ("/asr/srt/audio_llm", 400, 422, "55-no-audio,64-invalid"),
    ("/translate/", 200, 202, "100-form"),
    ("/translate/", 400, 422, "91-text,92-languages"),
]


@pytest.mark.parametrize(("path", "status", "other", "names"), STATUSES)
def test_a_status(spoiled, path, status, other, names):
    fault = Status(path, status, other)
    outcomes, _ = spoiled(fault, *names.split(","))
    assert fault.done
    assert noticed(outcomes)


class RealtimeField(Fault):
    """One field of the messages of a type."""

    def __init__(self, kind, field, change):
        self.kind, self.field, self.change, self.done = kind, field, change, 0

    def down(self, kind, data):
        message = json.loads(data) if kind == TEXT else {}
        if message.get("type") == self.kind and changed(message, self.field, self.change):
            self.done += 1
            return [(kind, json.dumps(message).encode())]
        return [(kind, data)]


REALTIME = {  # of each message the fields, and the checks that notice
    "session.created": (
        ["type", *list_fields("id service voice_id format sample_rate model", "session.")],
        "126-created,114-open",
    ),
    "tts.audio.start": (
        list_fields("type id request_id content_type format sample_rate voice_id"), "141-start,140-sequence,146-ids",
    ),
    "tts.audio.done": (list_fields("type id request_id audio_bytes chunks"), "144-done,146-ids,140-sequence"),
    "tts.usage": (
        [
            *list_fields("type client_id request_id session_id"),
            *list_fields("input_chars input_bytes audio_bytes status final", "usage."),
        ],
        "145-usage,146-ids,140-sequence",
    ),
    "tts.error": (["type", "code", "message"], "130-voice,131-format,139-early-speak,127-id-on-errors"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, of in REALTIME.items() for field in of[0]]
)
def test_a_field_of_a_message(spoiled, kind, field, change):
    fault = RealtimeField(kind, field.split("."), change)
    outcomes, _ = spoiled(fault, *REALTIME[kind][1].split(","), timeout_s=2.0)
    assert fault.done, f"{kind} has no {field}"
    assert noticed(outcomes), {name: each.verdict for name, each in outcomes.items()}
