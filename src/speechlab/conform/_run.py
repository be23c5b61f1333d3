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
from speechlab.conform._model import CHECKS, Check, CheckOutcome, ConformReport, Verdict
from speechlab.conform._probe.findings import CheckSkipped, ExpectationUnmet, ProbeOptions
from speechlab.conform._probe.http import EMPTY_REPLY, Exchange, NotHTTP
from speechlab.conform._probe.socket import TalkClosed
from speechlab.conform._probe.target import Target
from speechlab.conform._realtime_checks import frames, handshake, session, speaking
from speechlab.contract import RECOGNITION_PATH, TRANSLATION_PATH, VOICES_PATH, to_realtime_url
from speechlab.errors import APIConnectionError, ConfigurationError

_AREAS = (
    *(access, voices, speech, sound, recognition, segments, translation, sse),
    *(handshake, session, speaking, frames),
)
_AREA_ORDER = {area.__name__.rpartition(".")[2]: place for place, area in enumerate(_AREAS)}

_NEEDS_LOAD = "needs a very high load, which this tool never makes"
_NEEDS_FAULT = "needs the failure of a backend at a certain moment, which cannot be chosen from outside"
_INSIDE_ONLY = "visible only inside the service"
_NEEDS_SETTINGS = "needs a service with other settings"

# Statements that cannot be checked from outside without harm, and the reasons.
OUT_OF_REACH: dict[int, str] = {
    16: _NEEDS_LOAD,
    17: f"the metered amounts are {_INSIDE_ONLY}",
    26: "needs a voice that is switched off during the run",
    46: _NEEDS_FAULT,
    53: _NEEDS_SETTINGS,
    63: "needs a service without its models",
    72: f"the options of an engine are {_INSIDE_ONLY}",
    86: f"{_NEEDS_SETTINGS}, and {_NEEDS_FAULT}",
    87: "needs a harmful recording, which this tool never sends",
    97: "the preservation of terms is a question of quality, for a study",
    122: _NEEDS_LOAD,
    123: "needs a stop of the service",
    147: _NEEDS_FAULT,
    148: _NEEDS_FAULT,
    152: f"{_NEEDS_LOAD}; {_NEEDS_FAULT}",
    153: f"cancellation and metering after a client has left are {_INSIDE_ONLY}",
    163: "needs a connection that is not read for minutes",
}


@cache
def list_checks() -> tuple[Check, ...]:
    """Return every check, in the order of the first statement of each."""
    return tuple(sorted(CHECKS.values(), key=lambda each: (each.statements[0], _AREA_ORDER[each.area])))


def select_checks(only: str | None = None, *, quick: bool = False) -> tuple[Check, ...]:
    """Return checks by number or id.

    Args:
        only: Numbers, ranges and ids with commas, such as ``"20-46,115,43-framing"``; None for all.
        quick: Leave out checks that are slow or need many calls.

    Raises:
        ValueError: An item is neither a number, nor a range, nor an id.

    Example:
        >>> sorted({check.area for check in select_checks("103-107")})
        ['sse']
        >>> len(select_checks(quick=True)) < len(select_checks())
        True
    """
    candidates = [each for each in list_checks() if each.quick or not quick]
    if only is None:
        return tuple(candidates)
    spans: list[range] = []
    names: set[str] = set()
    ids = {each.id for each in list_checks()}
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


# Statuses of a proxy that cannot reach its service; those from 520 on are Cloudflare's.
_PROXY_STATUSES = frozenset({502, 503, 504, *range(520, 531)})


def run(
    options: ProbeOptions,
    selected: Sequence[Check] | None = None,
    *,
    on_check: Callable[[Check, int, int], None] | None = None,
) -> ConformReport:
    """Check a deployment.

    Args:
        options: Address, keys and other facts of the deployment.
        selected: Checks to run; default all.
        on_check: Called before each check, with its position and the number of checks.

    Returns:
        The outcome of each check.

    Raises:
        APIConnectionError: No such service replies at the base URL.
        ConfigurationError: The key is not accepted.
        ValueError: A voice of the options is not in the catalogue.
    """
    target = Target(options)
    try:
        target.http.open_socket(min(options.timeout_s, 20.0)).close()
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
    _check_address_and_key(target)
    _check_voices_listed(target)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    selection = select_checks() if selected is None else selected
    outcomes = []
    for number, check in enumerate(selection):
        if on_check is not None:
            on_check(check, number, len(selection))
        outcomes.append(_run_check(target, check))
    ws_base_url = options.ws_base_url or to_realtime_url(options.base_url)
    return ConformReport(options.base_url, ws_base_url, started, tuple(outcomes))


def _check_address_and_key(target: Target) -> None:
    """Check address and key before all checks: a wrong key or path would fail most of them."""
    url = target.options.base_url
    paths = (("GET", VOICES_PATH), ("POST", RECOGNITION_PATH), ("POST", TRANSLATION_PATH))
    try:
        replies = [_send_bodyless_request(target, method, path) for method, path in paths]
    except CheckSkipped:
        return  # reported by the checks
    statuses = [reply.status for reply in replies]
    if not any(statuses):
        raise APIConnectionError(_describe_other_protocol(target, replies[0].body))
    if statuses == [401, 401, 401]:
        raise ConfigurationError(f"the key is not accepted at {url}; give another with --api-key")
    if statuses == [403, 403, 403]:
        message = f"the key has no access to any operation at {url}; give another with --api-key"
        raise ConfigurationError(message)
    codes = ", ".join(map(str, statuses))
    if any(_has_json_body(reply) for reply in replies) and not all(
        status in {404, 405} for status in statuses
    ):
        return
    if all(status in _PROXY_STATUSES for status in statuses):
        raise APIConnectionError(
            f"a proxy replies at {url} instead of the service, with {codes}; is the service behind it running?"
        )
    if all(reply.status == 400 and b"https" in reply.body.lower() for reply in replies):
        raise APIConnectionError(f"the service at {url} requires TLS; write https://")
    raise APIConnectionError(
        f"there is no speech service at {url}: the reply to its paths is {codes}; a base URL may need a path, such "
        f"as https://host/speech"
    )


def _send_bodyless_request(target: Target, method: str, path: str) -> Exchange:
    """The reply to a request without a body; if it is not HTTP, the status is 0 and the body its start."""
    try:
        return target.send_request(method, path)
    except NotHTTP as other:
        return other.exchange
    except TimeoutError:
        patience = f"{target.options.timeout_s:g} s"
        message = f"{target.options.base_url} accepts connections, but sends no reply within {patience}"
        raise APIConnectionError(message) from None


def _describe_other_protocol(target: Target, came: bytes) -> str:
    url = target.options.base_url
    if came.startswith(b"\x15\x03"):  # an alert of TLS
        return f"the service at {url} requires TLS; write https://"
    if came == EMPTY_REPLY:
        return (
            f"{url} accepts connections, and closes them without a reply; is the service behind it running?"
        )
    beginning = ascii(target.redact_keys(came.decode("latin-1"))[:60])
    return f"the program at {url} does not speak HTTP; its reply begins with {beginning}; is the port right?"


def _has_json_body(reply: Exchange) -> bool:
    try:
        return isinstance(reply.parse_json(), (dict, list))
    except ExpectationUnmet:
        return False


def _check_voices_listed(target: Target) -> None:
    """Raise for a voice that is not in the catalogue: hardly any check could run with it, and none would fail."""
    voices = [voice for voice in (target.options.voice, target.options.q_voice) if voice is not None]
    if not voices:
        return
    try:
        listed = {each["id"].lower() for each in target.voices}
    except (ExpectationUnmet, CheckSkipped, OSError, ValueError):
        return  # reported by the checks of the catalogue
    for voice in voices:
        if voice.lower() not in listed:
            raise ValueError(f"the catalogue has no voice {voice!r}")


def _run_check(target: Target, check: Check) -> CheckOutcome:
    started, before, reason = time.monotonic(), target.metered, ""
    target.findings = []
    try:
        for step in check.steps:
            step(target)
    except ExpectationUnmet as unmet:
        target.record_finding(unmet)
    except CheckSkipped as untried:
        reason = target.redact_keys(str(untried))
    except TalkClosed:
        target.record_finding(ExpectationUnmet("the connection stays open"))
    except TimeoutError:
        target.record_finding(ExpectationUnmet(f"a reply within {target.options.timeout_s:g} s"))
    except OSError as error:
        target.record_finding(ExpectationUnmet(f"the connection stays open; it broke: {error}"))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # One reply of an unexpected form must not end the whole run.
        expected = f"replies have the form that the contract describes ({type(error).__name__}: {error})"
        target.record_finding(ExpectationUnmet(target.redact_keys(expected)))
    findings = tuple(target.findings)
    if findings:
        verdict = Verdict.FAILS if check.binding else Verdict.ADVISORY
    else:
        verdict = Verdict.UNTRIED if reason else Verdict.HOLDS
    seconds = round(time.monotonic() - started, 3)
    return CheckOutcome(check, verdict, findings, reason, seconds, target.metered - before)
