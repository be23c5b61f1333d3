"""What a service says about a failure: no character steers the terminal, no part of the key is shown."""

import orjson
from rich.text import Text

import speechlab as sl
from speechlab.cli._console import console, errors
from speechlab.client._operations.failures import build_error_from_reply
from speechlab.client._operations.speech import parse_pcm_rate
from speechlab.client._secret import Secret
from speechlab.contract import parse_concurrency_header

NASTY = "\x1b]0;owned\x07 \x9b2J \x00 \r \x7f \u202e"
KEY = "sl:q7Jm2xVd90Rb4TzKc81Wn5Lf"
DIGITS = "9" * 5_000


def test_no_word_of_a_service_steers_the_terminal():
    for where in ("error", "message", "detail", "name"):
        error = build_error_from_reply(400, {}, orjson.dumps({"error": "no", where: f"a {NASTY} b"}))
        assert str(error).isprintable()
    for kind in (sl.ContractError, sl.EngineError, sl.RealtimeError, sl.SpeechLabError):
        said = str(kind(f"it said {NASTY}, tabs\tand\nlines stay"))
        assert said.replace("\t", "").replace("\n", "").isprintable()
    for shown in (console, errors):
        assert shown.render_str(f"[bold]a[/] {NASTY}").plain.isprintable()
        assert isinstance(shown.render_str("a"), Text)


def test_a_part_of_the_key_is_not_shown():
    key = Secret(KEY)
    folded = key.reveal().partition(":")[2].lower()
    escaped = f"Bearer%20{KEY.replace(':', '%3A')}"
    parts = (KEY[:14] + "…", "…" + KEY[-10:], f"{KEY[:12]}***{KEY[-9:]}")
    for echo in (KEY, KEY.removeprefix("sl:"), KEY.upper(), escaped, *parts):
        body = orjson.dumps({"error": f"unknown key {echo}", "context": [echo]})
        error = build_error_from_reply(401, {"x-echo": echo}, body)
        shown = f"{error} {error.body} {error.context} {error.headers}".lower()
        assert not any(folded[at : at + 8] in shown for at in range(len(folded) - 7)), echo


def test_numbers_of_5000_digits_are_no_numbers():
    assert parse_concurrency_header(f"tts={DIGITS}, asr=3") == {"asr": 3}
    assert build_error_from_reply(429, {"retry-after": DIGITS}, b"").retry_after_s == 86_400.0
    assert parse_pcm_rate(f"audio/L16; rate={DIGITS}", 24_000) == 24_000
