"""Checks of translation as one JSON response (sections 2.5, 2.6 and 4.5)."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from speechlab.conform._model import build_decorators
from speechlab.conform._probe.target import (
    Target,
    build_refusal_step,
    insist_json_object,
    parse_error_body,
    require_refusal,
)
from speechlab.contract import COMPLETION_OBJECT, LIMITS, TRANSLATION_ID_PREFIX, TRANSLATION_PATH, encode_form

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange

_COUNTERS = ("prompt_tokens", "completion_tokens", "total_tokens")
_SOURCE = "Good morning.\r\nSee you \U0001f600 tomorrow."
_CONTENT_TYPE = "multipart/form-data; boundary=b"

check, advice = build_decorators(__name__, Target.skip_without_translation)
_build_translation_refusal_step = partial(build_refusal_step, Target.translate)


def translate_source_once(t: Target) -> Exchange:
    """Translate a text; one call in a run."""
    return t.get_or_make("translated", lambda: t.translate(text=_SOURCE))


def is_valid_usage(usage: object) -> bool:
    """Whether usage has three counters that add up."""
    if not isinstance(usage, dict) or any(type(usage.get(name)) is not int for name in _COUNTERS):
        return False
    return bool(usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"])


def get_first_choice(body: dict[str, Any], part: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the first choice and its ``message`` or ``delta``; each is empty if it is missing."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    value = choice.get(part)
    return choice, value if isinstance(value, dict) else {}


def require_echo(t: Target, body: dict[str, Any], text: str, reply: Exchange) -> None:
    """Record a finding unless the reply has the source text and both languages unchanged."""
    t.require_that(body.get("transcription") == text, f"transcription is {text!r}", reply)
    t.require_that(body.get("source_lang") == "en", "source_lang is en", reply)
    t.require_that(body.get("target_lang") == "ja", "target_lang is ja", reply)


@check("100-form", "id, object, created, model and choices are as described", metered=1)
def _check_reply_form(t: Target) -> None:
    reply = translate_source_once(t)
    body = insist_json_object(t, reply)
    identity = body.get("id")
    right = isinstance(identity, str) and identity.startswith(TRANSLATION_ID_PREFIX)
    t.require_that(right, f"id begins with {TRANSLATION_ID_PREFIX}", reply)
    t.require_that(body.get("object") == COMPLETION_OBJECT, f"object is {COMPLETION_OBJECT}", reply)
    created = body.get("created")
    near = type(created) is int and abs(float(created) - time.time()) < 86_400
    t.require_that(near, "created is a Unix time in seconds", reply)
    t.require_that(isinstance(body.get("model"), str), "model is a string", reply)
    choice, message = get_first_choice(body, "message")
    t.require_that(choice.get("index") == 0, "choices[0].index is 0", reply)
    t.require_that(isinstance(message.get("content"), str), "choices[0].message.content is a string", reply)


@advice("100-role", "role is assistant, finish_reason is stop", metered=1)
def _check_role_and_finish(t: Target) -> None:
    choice, message = get_first_choice(insist_json_object(t, translate_source_once(t)), "message")
    t.require_that(message.get("role") == "assistant", "role is assistant", translate_source_once(t))
    t.require_that(choice.get("finish_reason") == "stop", "finish_reason is stop", translate_source_once(t))


@check("100-unique", "each reply has a different id; stream=false is the default", also=(93,), metered=2)
def _check_unique_ids(t: Target) -> None:
    first, second = translate_source_once(t), t.translate(stream="false")
    t.require_that(
        insist_json_object(t, first).get("id") != insist_json_object(t, second).get("id"),
        "another id",
        second,
    )


@check("101-source", "transcription is the source text unchanged; languages are echoed", metered=1)
def _check_source_echo(t: Target) -> None:
    reply = translate_source_once(t)
    require_echo(t, insist_json_object(t, reply), _SOURCE, reply)


@check("102-usage", "usage has three integers that add up; balance, if any, has integers", metered=1)
def _check_usage(t: Target) -> None:
    reply = translate_source_once(t)
    body = insist_json_object(t, reply)
    t.require_that(
        is_valid_usage(body.get("usage")), "usage has three integers, and total is their sum", reply
    )
    balance = body.get("balance")
    if balance is not None:
        right = isinstance(balance, dict) and all(type(each) is int for each in balance.values())
        t.require_that(right, "balance has integers", reply)


@check("89-slash", "the path with the slash works without a redirect")
def _check_trailing_slash(t: Target) -> None:
    t.require_status(t.post_form([("text", "a")]), 400, "400 for an incomplete form, and no redirect")


@advice("89-no-slash", "the path without the slash works too")
def _check_missing_slash(t: Target) -> None:
    t.require_status(
        t.post_form([("text", "a")], path=TRANSLATION_PATH.rstrip("/")), 400, "the same as with the slash"
    )


@advice("90-multipart", "JSON, urlencoded forms and forms without a boundary are 400", metered=4)
def _check_other_content_types(t: Target) -> None:
    fields = {"text": "Hello.", "source_lang": "en", "target_lang": "ja"}
    body, _ = encode_form(fields.items(), "b")
    for kind, data in (
        ("application/json", json.dumps(fields).encode()),
        ("application/x-www-form-urlencoded", urlencode(fields).encode()),
        ("multipart/form-data", body),
    ):
        require_refusal(
            t, t.post_json(TRANSLATION_PATH, data, headers=(("Content-Type", kind),)), "multipart only"
        )


check("91-text", "text is required, and has at most 10,000 code points")(
    _build_translation_refusal_step("text is missing", text=(None,)),
    _build_translation_refusal_step("text is empty", text=("",)),
    _build_translation_refusal_step(
        "text has 10,001 code points", text=("a" * (LIMITS.translation_text_chars + 1),)
    ),
)
check("92-languages", "source_lang and target_lang are required")(
    _build_translation_refusal_step("source_lang is missing", source_lang=(None,)),
    _build_translation_refusal_step("target_lang is missing", target_lang=(None,)),
)
advice("92-odd-languages", "unsupported languages are 400", metered=2)(
    _build_translation_refusal_step("an unsupported language", source_lang=("tlh",), target_lang=("tlh",))
)
advice("93-stream-value", "stream is false or true only", metered=3)(
    _build_translation_refusal_step("stream is neither false nor true", stream=("1", "True", "yes"))
)


@check("94-keywords", "21 keywords, or a keyword of 102 bytes, are 400", also=(95,))
def _check_keyword_limits(t: Target) -> None:
    many = [("keywords", f"k{number}") for number in range(LIMITS.translation_keywords + 1)]
    require_refusal(t, t.translate(*many), "21 keywords")
    require_refusal(t, t.translate(("keywords", "あ" * 34)), "a keyword of 102 bytes in UTF-8")


@check("94-keywords-fit", "20 keywords, one of 99 bytes, are accepted", also=(95,), metered=1, quick=False)
def _check_keywords_at_limit(t: Target) -> None:
    terms = ["あ" * 33, ",".join(["term"] * 20), *(f"k{number}" for number in range(18))]
    reply = t.translate(*[("keywords", term) for term in terms])
    t.require_status(reply, 200, "20 keywords of at most 100 bytes each")


check("96-context", "context has at most 2,000 code points")(
    _build_translation_refusal_step(
        "context has 2,001 code points", context=("a" * (LIMITS.translation_context_chars + 1),)
    )
)


@check(
    "96-context-fits",
    "context is counted in code points, and is not part of transcription",
    metered=1,
    quick=False,
)
def _check_context_at_limit(t: Target) -> None:
    reply = t.translate(context="\U0001f600" * LIMITS.translation_context_chars)
    right = insist_json_object(t, reply).get("transcription") == "Hello."
    t.require_that(right, "transcription is the text alone", reply)


advice("98-model", "an unknown model is 400", metered=1)(
    _build_translation_refusal_step("an unknown model", model=("no-such-vendor/no-such-model",))
)


@advice("99-broken-form", "repeated fields, files, invalid UTF-8 and truncated forms are 400", metered=4)
def _check_invalid_forms(t: Target) -> None:
    form, _ = encode_form([("source_lang", "en"), ("target_lang", "ja"), ("text", "Hello.")], "b")
    file = form.replace(b'name="text"', b'name="text"; filename="a.txt"')
    require_refusal(t, t.translate(("text", "Again.")), "text is given twice")
    for data in (file, form.replace(b"Hello.", b"\xc3\x28"), form[: -len(b"--b--\r\n")]):
        require_refusal(
            t,
            t.post_json(TRANSLATION_PATH, data, headers=(("Content-Type", _CONTENT_TYPE),)),
            "an invalid form",
        )


@advice("113-errors", "errors of translation have the same body as other errors")
def _check_error_body(t: Target) -> None:
    reply = t.translate(text=None)
    t.require_that(parse_error_body(reply), "context, code, name and error", reply)
