"""The list of all checks, their selection, and their run, one after the other."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache

from speechlab.conform._http_checks import (
    access,
    recognition,
    segments,
    sound,
    speech,
    sse,
    translation,
    voices,
)
from speechlab.conform._model import DECLARED, Check, CheckOutcome, ConformReport, Verdict
from speechlab.conform._probe.findings import ProbeOptions, Unmet, Untried
from speechlab.conform._probe.http import ENDED, Exchange, NotHTTP
from speechlab.conform._probe.socket import Closed
from speechlab.conform._probe.target import Target
from speechlab.conform._realtime_checks import frames, handshake, session, speaking
from speechlab.contract import RECOGNITION_PATH, TRANSLATION_PATH, VOICES_PATH, realtime_base
from speechlab.errors import APIConnectionError, ConfigurationError

_AREAS = (
    *(access, voices, speech, sound, recognition, segments, translation, sse),
    *(handshake, session, speaking, frames),
)
_PLACES = {area.__name__.rpartition(".")[2]: place for place, area in enumerate(_AREAS)}

_LOAD = "needs a very high load, which this tool never makes"
_FAULT = "needs the failure of a backend at a certain moment, which cannot be chosen from outside"
_INSIDE = "visible only inside the service"
_SETTINGS = "needs a service with other settings"

OUT_OF_REACH: dict[int, str] = {
    16: _LOAD,
    17: f"the metered amounts are {_INSIDE}",
    26: "needs a voice that is switched off during the run",
    46: _FAULT,
    53: _SETTINGS,
    63: "needs a service without its models",
    72: f"the options of an engine are {_INSIDE}",
    86: f"{_SETTINGS}, and {_FAULT}",
    87: "needs a harmful recording, which this tool never sends",
    97: "the preservation of terms is a question of quality, for a study",
    122: _LOAD,
    123: "needs a stop of the service",
    147: _FAULT,
    148: _FAULT,
    152: f"{_LOAD}; {_FAULT}",
    153: f"cancellation and metering after a client has left are {_INSIDE}",
    163: "needs a connection that is not read for minutes",
}
"""Statements that cannot be checked from outside without harm, and the reasons."""


@cache
def checks() -> tuple[Check, ...]:
    """Return every check, in the order of the first statement of each."""
    return tuple(sorted(DECLARED.values(), key=lambda each: (each.statements[0], _PLACES[each.area])))


def chosen(only: str | None = None, *, quick: bool = False) -> tuple[Check, ...]:
    """Return checks by number or id.

    Args:
        only: Numbers, ranges and ids with commas, such as ``"20-46,115,43-framing"``; None for all.
        quick: Leave out checks that are slow or need many calls.

    Raises:
        ValueError: An item is neither a number, nor a range, nor an id.

    Example:
        >>> sorted({check.area for check in chosen("103-107")})
        ['sse']
        >>> len(chosen(quick=True)) < len(chosen())
        True
    """
    candidates = [each for each in checks() if each.quick or not quick]
    if only is None:
        return tuple(candidates)
    spans: list[range] = []
    names: set[str] = set()
    ids = {each.id for each in checks()}
    for item in filter(None, (text.strip() for text in only.split(","))):
        low, dash, high = item.partition("-")
        if low.isdecimal() and (not dash or high.isdecimal()):
            spans.append(range(int(low), int(high if dash else low) + 1))
        elif item in ids:
            names.add(item)
        else:
            raise ValueError(f"{item!r} is neither a number, nor a range like 20-46, nor the id of a check")

    def is_meant(check: Check) -> bool:
        return check.id in names or any(number in span for span in spans for number in check.statements)

    return tuple(filter(is_meant, candidates))


_OF_PROXIES = frozenset({502, 503, 504, *range(520, 531)})
"""Statuses of a proxy that cannot reach its service; those from 520 on are Cloudflare's."""


def run(
    options: ProbeOptions,
    selected: Sequence[Check] | None = None,
    *,
    told: Callable[[Check, int, int], None] | None = None,
) -> ConformReport:
    """Check a deployment.

    Args:
        options: Address, keys and other facts of the deployment.
        selected: Checks to run; default all.
        told: Called before each check, with its position and the number of checks.

    Returns:
        The outcome of each check.

    Raises:
        APIConnectionError: No such service replies at the base URL.
        ConfigurationError: The key is not accepted.
        ValueError: A voice of the options is not in the catalogue.
    """
    target = Target(options)
    try:
        target.http.connect(min(options.timeout_s, 20.0)).close()
    except ssl.SSLCertVerificationError as error:
        reason = error.verify_message
        raise APIConnectionError(f"the certificate of {options.base_url} is not trusted: {reason}") from error
    except ssl.SSLError as error:
        message = (
            f"TLS with {options.base_url} failed: {error.reason}; does the service use plain HTTP (http://)?"
        )
        raise APIConnectionError(message) from error
    except OSError as error:
        raise APIConnectionError(f"there is no reply from {options.base_url}: {error}") from error
    _see_that_it_is_one(target)
    _find_voices(target)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    selection = chosen() if selected is None else selected
    outcomes = []
    for number, check in enumerate(selection):
        if told is not None:
            told(check, number, len(selection))
        outcomes.append(_tried(target, check))
    ws_base_url = options.ws_base_url or realtime_base(options.base_url)
    return ConformReport(options.base_url, ws_base_url, started, tuple(outcomes))


def _see_that_it_is_one(target: Target) -> None:
    """Check address and key before all checks: a wrong key or path would fail most of them."""
    url = target.options.base_url
    paths = (("GET", VOICES_PATH), ("POST", RECOGNITION_PATH), ("POST", TRANSLATION_PATH))
    try:
        replies = [_first_reply(target, method, path) for method, path in paths]
    except Untried:
        return  # reported by the checks
    statuses = [reply.status for reply in replies]
    if not any(statuses):
        raise APIConnectionError(_other_protocol(target, replies[0].body))
    if statuses == [401, 401, 401]:
        raise ConfigurationError(f"the key is not accepted at {url}; give another with --api-key")
    if statuses == [403, 403, 403]:
        message = f"the key has no access to any operation at {url}; give another with --api-key"
        raise ConfigurationError(message)
    codes = ", ".join(map(str, statuses))
    if any(_is_json(reply) for reply in replies) and not all(status in {404, 405} for status in statuses):
        return
    if all(status in _OF_PROXIES for status in statuses):
        raise APIConnectionError(
            f"a proxy replies at {url} instead of the service, with {codes}; is the service behind it running?"
        )
    if all(reply.status == 400 and b"https" in reply.body.lower() for reply in replies):
        raise APIConnectionError(f"the service at {url} requires TLS; write https://")
    raise APIConnectionError(
        f"there is no speech service at {url}: the reply to its paths is {codes}; a base URL may need a path, such "
        f"as https://host/speech"
    )


def _first_reply(target: Target, method: str, path: str) -> Exchange:
    """The reply to a request without a body; if it is not HTTP, the status is 0 and the body its start."""
    try:
        return target.request(method, path)
    except NotHTTP as other:
        return other.exchange
    except TimeoutError:
        patience = f"{target.options.timeout_s:g} s"
        message = f"{target.options.base_url} accepts connections, but sends no reply within {patience}"
        raise APIConnectionError(message) from None


def _other_protocol(target: Target, came: bytes) -> str:
    url = target.options.base_url
    if came.startswith(b"\x15\x03"):  # an alert of TLS
        return f"the service at {url} requires TLS; write https://"
    if came == ENDED:
        return (
            f"{url} accepts connections, and closes them without a reply; is the service behind it running?"
        )
    beginning = ascii(target.redacted(came.decode("latin-1"))[:60])
    return f"the program at {url} does not speak HTTP; its reply begins with {beginning}; is the port right?"


def _is_json(reply: Exchange) -> bool:
    try:
        return isinstance(reply.json(), (dict, list))
    except Unmet:
        return False


def _find_voices(target: Target) -> None:
    """Raise for a voice that is not in the catalogue: hardly any check could run with it, and none would fail."""
    voices = [voice for voice in (target.options.voice, target.options.q_voice) if voice is not None]
    if not voices:
        return
    try:
        listed = {each["id"].lower() for each in target.voices}
    except (Unmet, Untried, OSError, ValueError):
        return  # reported by the checks of the catalogue
    for voice in voices:
        if voice.lower() not in listed:
            raise ValueError(f"the catalogue has no voice {voice!r}")


def _tried(target: Target, check: Check) -> CheckOutcome:
    started, before, reason = time.monotonic(), target.metered, ""
    target.findings = []
    try:
        for step in check.steps:
            step(target)
    except Unmet as unmet:
        target.note(unmet)
    except Untried as untried:
        reason = target.redacted(str(untried))
    except Closed:
        target.note(Unmet("the connection stays open"))
    except TimeoutError:
        target.note(Unmet(f"a reply within {target.options.timeout_s:g} s"))
    except OSError as error:
        target.note(Unmet(f"the connection stays open; it broke: {error}"))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # One reply of an unexpected form must not end the whole run.
        expected = f"replies have the form that the contract describes ({type(error).__name__}: {error})"
        target.note(Unmet(target.redacted(expected)))
    findings = tuple(target.findings)
    if findings:
        verdict = Verdict.FAILS if check.binding else Verdict.ADVISORY
    else:
        verdict = Verdict.UNTRIED if reason else Verdict.HOLDS
    seconds = round(time.monotonic() - started, 3)
    return CheckOutcome(check, verdict, findings, reason, seconds, target.metered - before)
