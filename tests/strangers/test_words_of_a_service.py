"""What a service says about a failure: no character steers the terminal, no part of the key is shown."""

import orjson
import pytest
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


@pytest.mark.parametrize("where", ["error", "message", "detail", "name"])
def test_no_word_of_a_service_steers_the_terminal(where):
    error = build_error_from_reply(400, {}, orjson.dumps({"error": "no", where: f"a {NASTY} b"}))
    assert str(error).isprintable()


@pytest.mark.parametrize("kind", [sl.ContractError, sl.EngineError, sl.RealtimeError, sl.SpeechLabError])
def test_no_error_steers_the_terminal(kind):
    assert (
        str(kind(f"it said {NASTY}, tabs\tand\nlines stay")).replace("\t", "").replace("\n", "").isprintable()
    )


@pytest.mark.parametrize("console", [console, errors])
def test_no_cell_of_a_table_steers_the_terminal(console):
    assert console.render_str(f"[bold]a[/] {NASTY}").plain.isprintable()
    assert isinstance(console.render_str("a"), Text)


@pytest.mark.parametrize(
    "echo",
    [
        KEY,
        KEY.removeprefix("sl:"),
        KEY[:14] + "…",
        "…" + KEY[-10:],
        KEY.upper(),
        f"Bearer%20{KEY.replace(':', '%3A')}",
        f"{KEY[:12]}***{KEY[-9:]}",
    ],
)
def test_a_part_of_the_key_is_not_shown(echo):
    key = Secret(KEY)
    body = orjson.dumps({"error": f"unknown key {echo}", "context": [echo]})
    error = build_error_from_reply(401, {"x-echo": echo}, body)
    shown = f"{error} {error.body} {error.context} {error.headers}".lower()
    folded = key.reveal().partition(":")[2].lower()
    assert not any(folded[at : at + 8] in shown for at in range(len(folded) - 7))


def test_numbers_of_5000_digits_are_no_numbers():
    assert parse_concurrency_header(f"tts={DIGITS}, asr=3") == {"asr": 3}
    assert build_error_from_reply(429, {"retry-after": DIGITS}, b"").retry_after_s == 86_400.0
    assert parse_pcm_rate(f"audio/L16; rate={DIGITS}", 24_000) == 24_000
