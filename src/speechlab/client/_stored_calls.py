"""The store of a client: it answers calls and keeps results; a replay uses nothing else.

A kept call has the key and the values of a batch's row, and the facts of its reply. A replay therefore returns the
same values to the last bit, the measured times included.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from speechlab.client._events import Timing
from speechlab.client._operations.operation import Operation, compute_key
from speechlab.client._settings.settings import EMBEDDED_PREFIX, FUNCTIONS_PREFIX, REPLAY_ADVICE, Settings
from speechlab.client._transport.http import ReplyBody
from speechlab.errors import ReplayMiss, StoreError

if TYPE_CHECKING:
    from speechlab.client._clock import Clock
    from speechlab.client._operations.call import RawResponse, Reply
    from speechlab.store import Store, StoredResult

R = TypeVar("R")

# Prefixes of names that stand for no other service.
_LOCAL_PREFIXES = (EMBEDDED_PREFIX, FUNCTIONS_PREFIX)
_HEADERS = ("content-type", "x-speechlab-service")


def load_timing(facts: Mapping[str, Any]) -> Timing:
    """Return the timing as measured."""
    return Timing(**facts["timing"]) if "timing" in facts else Timing()


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call and its store."""

    memory: Memory
    operation: str
    parameters: dict[str, Any]
    service: str

    @property
    def key(self) -> str:
        """Key of the call, the same as in a batch."""
        return compute_key(self.operation, self.parameters, self.service)

    def load(self) -> tuple[StoredResult, dict[str, Any]] | None:
        """Return the kept result and the facts of its reply; None if the call has to be made."""
        store = self.memory.store
        stored = store.get(self.key) if self.memory.asks else None
        if stored is None and self.memory.replaying:
            raise build_replay_miss(store, self.operation, self.parameters, self.service)
        if stored is None and store.read_only:
            raise StoreError(
                f"the store {store.path} can only be read, so that a new result could not be kept in it"
            )
        return None if stored is None else (stored, store.facts(stored.key))

    def save(
        self,
        response: Mapping[str, Any],
        facts: Mapping[str, Any],
        files: Mapping[str, tuple[bytes, str]] | None = None,
    ) -> None:
        """Keep the call."""
        store = self.memory.store
        with store.transaction():
            stored = store.put(
                self.key, operation=self.operation, request=self.parameters, response=response, files=files
            )
            names = {role: path.name for role, path in stored.files.items()}
            record = {**facts, "response": dict(response), "files": names, "service": self.service}
            store.keep_facts(self.key, record)

    def load_reply(self, operation: Operation[Any]) -> RawResponse | None:
        """Return the kept reply of an operation; None if the call has to be made."""
        recalled = self.load()
        if recalled is None:
            return None
        stored, facts = recalled
        files = {role: path.name for role, path in stored.files.items()}
        if facts.get("response") != stored.response or facts.get("files") != files:
            facts = {}  # the result was replaced by that of another kind of call, or comes from a batch
        timing = load_timing(facts) if facts else Timing(processing_s=stored.response.get("processing_s"))
        return replace(operation.restore_reply(stored, facts), timing=timing)

    def save_result(self, operation: Operation[R], reply: Reply | RawResponse, result: R) -> None:
        """Keep a result after its reply was checked."""
        headers = {name: reply.headers[name] for name in _HEADERS if name in reply.headers}
        facts: dict[str, Any] = {"headers": headers, "timing": asdict(reply.timing)}
        files = operation.collect_files(result)
        if not files:
            facts["body"] = reply.fields
        self.save(operation.build_record(result), facts, files)


class Memory:
    """The store of a client, and its mode: whether calls are looked up first (``asks``), and whether any is sent."""

    def __init__(self, store: Store, mode: str, pace: str) -> None:
        self.store = store
        self.replaying = mode == "replay"
        self.paced = pace == "as recorded"
        self.asks = mode != "live"

    @classmethod
    def from_settings(cls, settings: Settings) -> Memory | None:
        """Return the store of a client and its mode; None without a store."""
        if settings.store is None:
            return None
        return cls(settings.store, settings.mode, settings.pace)

    def save_identity_and_catalogue(self, base_url: str, service: str, body: Any) -> None:
        """Keep a service's identity and the body of its catalogue, or None if it has no catalogue."""
        if self.store.read_only:
            return
        StoredCall(self, "voices", {"base_url": base_url}, service).save({"service": service}, {"body": body})

    def load_identity_and_catalogue(self, base_url: str) -> tuple[str, Any]:
        """The service to be replayed: that of this address, or else the one kept last that has no name of its own."""
        match = self.find_identity_and_catalogue(base_url)
        if match is None:
            catalogues = self.store.newest("voices", 100)
            keys = [
                key
                for key, request in catalogues
                if not str(request.get("base_url")).startswith(_LOCAL_PREFIXES)
            ]
            if not keys or base_url.startswith(_LOCAL_PREFIXES):
                raise build_replay_miss(self.store, "voices", {"base_url": base_url}, "")
            match = self._load_service_and_body(keys[0])
        return match

    def find_identity_and_catalogue(self, base_url: str) -> tuple[str, Any] | None:
        """Return the last known identity of the service at an address, and the body of its catalogue."""
        catalogues = self.store.newest("voices", 100)
        keys = [key for key, request in catalogues if request.get("base_url") == base_url]
        return self._load_service_and_body(keys[0]) if keys else None

    def _load_service_and_body(self, key: str) -> tuple[str, Any]:
        facts = self.store.facts(key)
        return facts["service"], facts["body"]


async def wait_until_recorded_time(clock: Clock, began: float, at_s: float) -> None:
    """Wait until a recorded time."""
    wait = began + at_s - clock.monotonic()
    if wait > 0:
        await clock.sleep(wait)


class Tape:
    """Records a body while it arrives."""

    def __init__(self, clock: Clock, call: StoredCall) -> None:
        self._clock, self._call = clock, call
        self._began = clock.monotonic()
        self._pieces: list[bytes] = []
        self._frames: list[tuple[float, int]] = []

    def add(self, piece: bytes) -> None:
        """Record the next bytes."""
        self._frames.append((round(self._clock.monotonic() - self._began, 6), len(piece)))
        self._pieces.append(piece)

    def save(self, content_type: str, timing: Timing) -> None:
        """Keep the body after it was checked to be complete."""
        body = b"".join(self._pieces)
        facts: dict[str, Any] = {
            "headers": {"content-type": content_type},
            "timing": asdict(timing),
            "frames": self._frames,
        }
        self._call.save({"bytes": len(body)}, facts, {"body": (body, ".bin")})


class TapedBody(ReplyBody):
    """A recorded body, replayed at once or at the recorded times."""

    def __init__(self, body: Path, facts: Mapping[str, Any], clock: Clock, *, at_pace: bool) -> None:
        super().__init__()
        self.status = 200
        self.headers = facts["headers"]
        self.timing = load_timing(facts)
        self._frames = iter(facts["frames"])
        self._body, self._clock, self._at_pace = BytesIO(body.read_bytes()), clock, at_pace
        self._began = clock.monotonic()

    async def _read_next_piece(self) -> bytes | None:
        at_s, size = next(self._frames, (0.0, None))
        if size is not None and self._at_pace:
            await wait_until_recorded_time(self._clock, self._began, at_s)
        return None if size is None else self._body.read(size)

    async def close(self) -> None:
        """Do nothing: a recorded body has no connection."""


_MAX_EARLIER = 2_000
_MAX_CHARS = 60
_CHARS_BEFORE = 20
_ABSENT: Final = object()
_DIGEST = re.compile("[0-9a-f]{64}")  # parameters contain recordings as digests


def build_replay_miss(store: Store, operation: str, parameters: dict[str, Any], service: str) -> ReplayMiss:
    """Return the error for a call that is not in the store; it names the parameter that differs."""
    earlier = store.newest(operation, _MAX_EARLIER)
    head = f"this {operation} call is not in {store.path}"
    if not earlier:
        return ReplayMiss(
            f"{head}, which holds no {operation} call at all; {REPLAY_ADVICE}", operation=operation
        )
    key, nearest = min(earlier, key=lambda item: _compute_distance(parameters, item[1]))
    differing = _list_different_parameters(parameters, nearest)
    if not differing:
        # A key also contains the service and the number of a repetition.
        asked = store.facts(key).get("service")
        of = "another service, or as a repetition" if asked is None else repr(asked)
        parameter: str | None = "service"
        if not service:
            text = f"{head}: the same is stored, but without the service that was asked; {REPLAY_ADVICE}"
        elif asked == service:
            text = f"{head}: the same is stored as a repetition, or from another version of the contract; "
            text += REPLAY_ADVICE
            parameter = None
        else:
            text = f"{head}: the same was asked of {of}, and this is {service!r}; {REPLAY_ADVICE}"
        return ReplayMiss(text, operation=operation, parameter=parameter)
    name = differing[0]
    more = f" (and in {', '.join(differing[1:])})" if len(differing) > 1 else ""
    sought, stored = _format_contrast(parameters.get(name, _ABSENT), nearest.get(name, _ABSENT))
    text = f"{head}: the nearest one there differs in {name}: {sought} here, {stored} there{more}; {REPLAY_ADVICE}"
    return ReplayMiss(text, operation=operation, parameter=name)


def _list_different_parameters(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Names of the parameters that differ in keys: first different values, then different spellings (1 and 1.0)."""
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in one.items()}
    names = [*values, *(name for name in other if name not in values)]
    differing = [
        name for name in names if not _is_same_value(values.get(name, _ABSENT), other.get(name, _ABSENT))
    ]
    return sorted(differing, key=lambda name: values.get(name) == other.get(name))


def _is_same_value(one: object, other: object) -> bool:
    if one is other or isinstance(one, str) or _ABSENT in (one, other):
        return one == other
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


def _compute_distance(one: dict[str, Any], other: dict[str, Any]) -> tuple[int, float, int]:
    names = _list_different_parameters(one, other)
    unlike = 0.0
    if "text" in names:
        matcher = SequenceMatcher(None, str(one.get("text"))[:200], str(other.get("text"))[:200])
        unlike = 1.0 - matcher.quick_ratio()
    of_value = sum(one.get(name) != other.get(name) for name in names)
    return of_value, unlike, len(names)  # another spelling is nearer than another value


def _format_contrast(one: object, other: object) -> tuple[str, str]:
    """Two values, shortened for display so that the difference is visible."""
    first, second = _format_value(one), _format_value(other)
    if _normalize_text(first) != _normalize_text(second):
        return first, second
    show = ascii if _normalize_text(repr(one)) == _normalize_text(repr(other)) else repr
    texts = show(one), show(other)
    parting = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
    start = max(0, parting - _CHARS_BEFORE)
    first, second = (_shorten_text(f"{'…' if start else ''}{text[start:]}") for text in texts)
    return first, second


def _normalize_text(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _format_value(value: object) -> str:
    if value is _ABSENT:
        return "not given"
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return f"{value[:12]}…"
    return _shorten_text(repr(value))


def _shorten_text(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
