"""Checks of translation as one JSON response (sections 2.5, 2.6 and 4.5)."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from speechlab.conform._model import checks_of
from speechlab.conform._probe.target import Target, full_body, json_object, refused, refuses
from speechlab.contract import COMPLETION_OBJECT, LIMITS, TRANSLATION_ID_PREFIX, TRANSLATION_PATH, form_body

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

_COUNTERS = ("prompt_tokens", "completion_tokens", "total_tokens")
_SOURCE = "Good morning.\r\nSee you \U0001f600 tomorrow."
_KIND = "multipart/form-data; boundary=b"

check, advice = checks_of(__name__, Target.need_translation)
_refuses = partial(refuses, Target.translate)


def translated(t: Target) -> Exchange:
    """Translate a text; one call in a run."""
    return t.kept("translated", lambda: t.translate(text=_SOURCE))


def right_usage(usage: object) -> bool:
    """Whether usage has three counters that add up."""
    if not isinstance(usage, dict) or any(type(usage.get(name)) is not int for name in _COUNTERS):
        return False
    return bool(usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"])


def first_choice(body: dict[str, Any], part: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the first choice and its ``message`` or ``delta``; each is empty if it is missing."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    value = choice.get(part)
    return choice, value if isinstance(value, dict) else {}


def echoed(t: Target, body: dict[str, Any], text: str, reply: Exchange) -> None:
    """Record a finding unless the reply has the source text and both languages unchanged."""
    t.require(body.get("transcription") == text, f"transcription is {text!r}", reply)
    t.require(body.get("source_lang") == "en", "source_lang is en", reply)
    t.require(body.get("target_lang") == "ja", "target_lang is ja", reply)


@check("100-form", "id, object, created, model and choices are as described", metered=1)
def _form(t: Target) -> None:
    reply = translated(t)
    body = json_object(t, reply)
    identity = body.get("id")
    right = isinstance(identity, str) and identity.startswith(TRANSLATION_ID_PREFIX)
    t.require(right, f"id begins with {TRANSLATION_ID_PREFIX}", reply)
    t.require(body.get("object") == COMPLETION_OBJECT, f"object is {COMPLETION_OBJECT}", reply)
    created = body.get("created")
    near = type(created) is int and abs(float(created) - time.time()) < 86_400
    t.require(near, "created is a Unix time in seconds", reply)
    t.require(isinstance(body.get("model"), str), "model is a string", reply)
    choice, message = first_choice(body, "message")
    t.require(choice.get("index") == 0, "choices[0].index is 0", reply)
    t.require(isinstance(message.get("content"), str), "choices[0].message.content is a string", reply)


@advice("100-role", "role is assistant, finish_reason is stop", metered=1)
def _role(t: Target) -> None:
    choice, message = first_choice(json_object(t, translated(t)), "message")
    t.require(message.get("role") == "assistant", "role is assistant", translated(t))
    t.require(choice.get("finish_reason") == "stop", "finish_reason is stop", translated(t))


@check("100-unique", "each reply has a different id; stream=false is the default", also=(93,), metered=2)
def _unique(t: Target) -> None:
    first, second = translated(t), t.translate(stream="false")
    t.require(json_object(t, first).get("id") != json_object(t, second).get("id"), "another id", second)


@check("101-source", "transcription is the source text unchanged; languages are echoed", metered=1)
def _source(t: Target) -> None:
    reply = translated(t)
    echoed(t, json_object(t, reply), _SOURCE, reply)


@check("102-usage", "usage has three integers that add up; balance, if any, has integers", metered=1)
def _usage(t: Target) -> None:
    reply = translated(t)
    body = json_object(t, reply)
    t.require(right_usage(body.get("usage")), "usage has three integers, and total is their sum", reply)
    balance = body.get("balance")
    if balance is not None:
        right = isinstance(balance, dict) and all(type(each) is int for each in balance.values())
        t.require(right, "balance has integers", reply)


@check("89-slash", "the path with the slash works without a redirect")
def _slash(t: Target) -> None:
    t.answers(t.form([("text", "a")]), 400, "400 for an incomplete form, and no redirect")


@advice("89-no-slash", "the path without the slash works too")
def _no_slash(t: Target) -> None:
    t.answers(t.form([("text", "a")], path=TRANSLATION_PATH.rstrip("/")), 400, "the same as with the slash")


@advice("90-multipart", "JSON, urlencoded forms and forms without a boundary are 400", metered=4)
def _multipart(t: Target) -> None:
    fields = {"text": "Hello.", "source_lang": "en", "target_lang": "ja"}
    body, _ = form_body(fields.items(), "b")
    for kind, data in (
        ("application/json", json.dumps(fields).encode()),
        ("application/x-www-form-urlencoded", urlencode(fields).encode()),
        ("multipart/form-data", body),
    ):
        refused(t, t.post(TRANSLATION_PATH, data, headers=(("Content-Type", kind),)), "multipart only")


check("91-text", "text is required, and has at most 10,000 code points")(
    _refuses("text is missing", text=(None,)),
    _refuses("text is empty", text=("",)),
    _refuses("text has 10,001 code points", text=("a" * (LIMITS.translation_text_chars + 1),)),
)
check("92-languages", "source_lang and target_lang are required")(
    _refuses("source_lang is missing", source_lang=(None,)),
    _refuses("target_lang is missing", target_lang=(None,)),
)
advice("92-odd-languages", "unsupported languages are 400", metered=2)(
    _refuses("an unsupported language", source_lang=("tlh",), target_lang=("tlh",))
)
advice("93-stream-value", "stream is false or true only", metered=3)(
    _refuses("stream is neither false nor true", stream=("1", "True", "yes"))
)


@check("94-keywords", "21 keywords, or a keyword of 102 bytes, are 400", also=(95,))
def _keywords(t: Target) -> None:
    many = [("keywords", f"k{number}") for number in range(LIMITS.translation_keywords + 1)]
    refused(t, t.translate(*many), "21 keywords")
    refused(t, t.translate(("keywords", "あ" * 34)), "a keyword of 102 bytes in UTF-8")


@check("94-keywords-fit", "20 keywords, one of 99 bytes, are accepted", also=(95,), metered=1, quick=False)
def _keywords_fit(t: Target) -> None:
    terms = ["あ" * 33, ",".join(["term"] * 20), *(f"k{number}" for number in range(18))]
    reply = t.translate(*[("keywords", term) for term in terms])
    t.answers(reply, 200, "20 keywords of at most 100 bytes each")


check("96-context", "context has at most 2,000 code points")(
    _refuses("context has 2,001 code points", context=("a" * (LIMITS.translation_context_chars + 1),))
)


@check(
    "96-context-fits",
    "context is counted in code points, and is not part of transcription",
    metered=1,
    quick=False,
)
def _context_fits(t: Target) -> None:
    reply = t.translate(context="\U0001f600" * LIMITS.translation_context_chars)
    right = json_object(t, reply).get("transcription") == "Hello."
    t.require(right, "transcription is the text alone", reply)


advice("98-model", "an unknown model is 400", metered=1)(
    _refuses("an unknown model", model=("no-such-vendor/no-such-model",))
)


@advice("99-broken-form", "repeated fields, files, invalid UTF-8 and truncated forms are 400", metered=4)
def _broken_form(t: Target) -> None:
    form, _ = form_body([("source_lang", "en"), ("target_lang", "ja"), ("text", "Hello.")], "b")
    file = form.replace(b'name="text"', b'name="text"; filename="a.txt"')
    refused(t, t.translate(("text", "Again.")), "text is given twice")
    for data in (file, form.replace(b"Hello.", b"\xc3\x28"), form[: -len(b"--b--\r\n")]):
        refused(t, t.post(TRANSLATION_PATH, data, headers=(("Content-Type", _KIND),)), "an invalid form")


@advice("113-errors", "errors of translation have the same body as other errors")
def _errors(t: Target) -> None:
    reply = t.translate(text=None)
    t.require(full_body(reply), "context, code, name and error", reply)
