"""A lease: some calls that a worker of a cluster makes as a batch in one process does, into a part of the store."""

from __future__ import annotations

import atexit
import pickle
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple, dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from speechlab._untrusted import is_digest, is_suffix
from speechlab.batch._outcome import CallResult, Outcome, PlannedCall
from speechlab.batch._run.progress import Tally
from speechlab.batch._run.rules import RunRules, Spending, StopSignal
from speechlab.batch._run.window import GRACE_S, CallWindow, ResultEntry, ResultWriter
from speechlab.client import AsyncClient, Timing, copy_with_group, start_work
from speechlab.errors import SpeechLabError
from speechlab.store import Attempt, Blob, BlobFolder, Claims, Store, StoredResult

# The folder in a store with a folder for each run on a cluster.
PARTS_FOLDER = "parts"
# Seconds that a worker whose driver or scheduler was lost has to end.
_MAX_END_S = 2 * GRACE_S
# Interval in seconds at which a part that another process writes is tried again.
_RETRY_S = 0.1


class PartWriter(ResultWriter):
    """The writer of a part. While it is open, other processes see that it is in use."""

    def __init__(self, file: Path, blobs: BlobFolder) -> None:
        self._blobs, self._waiting = blobs, []
        self.failures: list[Attempt] = []
        self._claims = Claims(file.parent / "claims")
        self._claims.claim_key(file.name)
        self._file = file.open("ab", buffering=0)

    def write_results(self, made: Sequence[ResultEntry]) -> Sequence[StoredResult | None]:
        """Append results to the file."""
        for key, result, attempt in made:
            files = {
                role: astuple(file if isinstance(file, Blob) else self._blobs.add_bytes(*file))
                for role, file in result.files.items()
            }
            facts = {"key": key, "timing": asdict(result.timing), "files": files, "attempt": astuple(attempt)}
            facts |= {name: getattr(result, name) for name in ("request", "response", "audio_s", "tokens")}
            self._file.write(orjson.dumps(facts, option=orjson.OPT_APPEND_NEWLINE))
        return [None] * len(made)

    def record_failure(self, attempt: Attempt) -> None:
        """Hold a failed attempt for the driver."""
        self.failures.append(attempt)

    def close(self) -> None:
        """Close the file, and say that it is complete."""
        self._file.close()
        self._claims.release_keys(list(self._claims.keys))


# SQLite and JSON have integers of 64 bits; a longer one of a stranger is an error of both.
_Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]


@dataclass(frozen=True)
class _Line:
    """A result in a part."""

    key: str
    timing: Timing
    files: dict[str, tuple[str, str, _Integer]]
    attempt: tuple[str, float, float | None, str, _Integer | None, str | None, str | None]
    request: dict[str, Any]
    response: dict[str, Any]
    audio_s: float
    tokens: _Integer


_LINE = TypeAdapter(_Line)


def parse_part(data: bytes) -> list[ResultEntry]:
    """Return the results of a part; a line that a kill cut off, or that a stranger wrote, is left out."""
    results = []
    for line in data.splitlines():
        try:
            fields = vars(_LINE.validate_python(orjson.loads(line)))
        except (ValidationError, orjson.JSONDecodeError):
            continue
        key, attempt = fields.pop("key"), Attempt(*fields.pop("attempt"))
        files = {role: Blob(*file) for role, file in fields.pop("files").items()}
        if all(is_digest(file.sha256) and is_suffix(file.suffix) for file in files.values()):
            results.append((key, CallResult(files=files, **fields), attempt))
    return results


def wait_for_and_read_parts(folder: Path, name: str) -> bytes:
    """Return the parts whose names begin so, once their writers have ended."""
    writers, until = Claims(folder / "claims"), time.monotonic() + _MAX_END_S
    contents = []
    for file in sorted(folder.glob(f"{name}-*.jsonl")):
        while not writers.claim_key(file.name) and time.monotonic() < until:
            time.sleep(_RETRY_S)
        if file.is_file() and not file.is_symlink():
            contents.append(file.read_bytes())
        writers.release_keys([file.name])
    return b"\n".join(contents)


def adopt_results_of_lost_runs(store: Store) -> None:
    """Take the results of runs whose driver was lost into the store."""
    parts = store.path / PARTS_FOLDER
    for folder in sorted(parts.glob("*")) if not store.read_only and not parts.is_symlink() else ():
        drivers = store.claims()
        if folder.is_symlink() or not folder.is_dir():  # what is elsewhere is neither read nor removed
            continue
        if not drivers.claim_key(folder.name):  # its driver lives
            continue
        try:
            for operation in sorted({file.name.partition("-")[0] for file in folder.glob("*.jsonl")}):
                ResultWriter(store, operation).write_results(
                    parse_part(wait_for_and_read_parts(folder, operation))
                )
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            drivers.release_keys([folder.name])


# Interval in seconds at which a lease checks whether it is still wanted.
_POLL_S = 0.25


@dataclass(frozen=True)
class CallLease:
    """Some calls, with a share of the rate and of the budget."""

    run: str
    name: str  # begins with its operation
    folder: Path
    means: bytes  # the client without its key, the step and the options, pickled
    calls: list[PlannedCall]
    rate: float | None  # of this worker
    spending: Spending


@dataclass
class LeaseResult:
    """A lease that came back."""

    part: bytes
    files: dict[str, bytes] = field(default_factory=dict)  # where the folder is not shared
    outcomes: dict[str, Outcome] = field(default_factory=dict)  # those without a result
    failures: list[Attempt] = field(default_factory=list)
    reason: str | None = None  # of the rule that stopped it
    fault: SpeechLabError | None = None
    lost: int = 0  # workers that were lost with it: only their parts came back


class LeaseTask:
    """A lease that unpickles to what came of it, so that the scheduler needs no library."""

    def __init__(self, lease: CallLease) -> None:
        self._lease = lease

    def __reduce__(self) -> tuple[Callable[[CallLease], LeaseResult], tuple[CallLease]]:
        return run_lease, (self._lease,)


def can_access_folder(folder: Path) -> bool:
    """Return whether this machine has the folder of a run, as on a disk that the cluster shares."""
    return folder.is_dir()


def run_lease(lease: CallLease) -> LeaseResult:
    """Make the calls of a lease, in a task of a worker."""
    from distributed import get_worker, secede

    worker = get_worker()
    task = worker.get_current_task()
    secede()  # type: ignore[no-untyped-call]  # so that the next lease begins before the last calls of this one end

    def is_wanted() -> bool:
        state = worker.state.tasks.get(task)  # the scheduler lost its driver, or the driver gave the lease up
        return state is not None and state.state not in ("cancelled", "released")

    def log_pause(paused: tuple[str, float] | None) -> None:
        worker.log_event(lease.run, [worker.address, paused])

    shared = can_access_folder(lease.folder)
    folder = lease.folder if shared else Path(tempfile.gettempdir(), f"{lease.run}-{lease.name}")
    if earlier := wait_for_and_read_parts(folder, lease.name):
        returned = LeaseResult(earlier, lost=1)
    else:
        folder.mkdir(mode=0o700, exist_ok=True)
        blobs = BlobFolder((folder.parent.parent if shared else folder) / "blobs")
        file = folder / f"{lease.name}-{token_hex(4)}.jsonl"
        with closing(PartWriter(file, blobs)) as writer, _open_worker_run(lease) as station:
            returned = station.make_calls(lease, writer, is_wanted, log_pause)
        returned.part = file.read_bytes()
    if not shared:
        returned.files = {file.name: file.read_bytes() for file in folder.glob("blobs/*/*")}
        shutil.rmtree(folder, ignore_errors=True)
    return returned


def notify_worker(
    run: str, stops: Mapping[str, Any] | None = None, *, hurry: bool = False, rate: float | None = None
) -> None:
    """Inform a worker that a run stops, or of its new share of the rate."""
    station = _worker_runs.get(run)
    if station is None:
        return
    if rate is not None and station.group is not None:
        station.group.limit_rate(rate)
    for stop in tuple(station.stops):
        if stops is not None:
            stop.set(**stops)
        if hurry:
            stop.hurry()


class _WorkerRun:
    """What a worker has of a run: its own client, the group of its calls, and the leases under way."""

    def __init__(self, means: bytes) -> None:
        self._lab, self._step, self._options = pickle.loads(means)  # noqa: S301 - from the run that this belongs to
        self.group: Any = None
        self.leases = 0
        self._mine: Any = None
        self.stops: set[StopSignal] = set()

    def make_calls(
        self,
        lease: CallLease,
        writer: PartWriter,
        wanted: Callable[[], bool],
        show: Callable[[tuple[str, float] | None], object],
    ) -> LeaseResult:
        """Make the calls of a lease."""
        stop, reported = StopSignal(), None
        self.stops.add(stop)
        future = start_work(self._lab, lambda lab: self._make_lease_calls(lab, lease, writer, stop))
        try:
            while wait([future], _POLL_S).not_done:
                if not wanted():
                    stop.set("nobody waits for it any more", "interrupted")
                paused = self.group.find_pause() if self.group is not None else None
                if paused != reported:
                    show(paused)
                    reported = paused
            return future.result()
        finally:
            self.stops.discard(stop)
            if reported is not None:
                show(None)

    async def _make_lease_calls(
        self, lab: AsyncClient, lease: CallLease, writer: PartWriter, stop: StopSignal
    ) -> LeaseResult:
        options = self._options
        if self.group is None:
            shares = {"concurrency": options["concurrency"], "give_up_after_s": options["give_up_after_s"]}
            self._mine, self.group = copy_with_group(lab, rate=lease.rate, **shares)
        self.group.limit_rate(lease.rate)
        rules = RunRules(lease.spending, options["max_error_share"], stop)
        window = CallWindow(partial(self._step.send, lab=self._mine), writer, Tally(), self.group, rules)
        returned = LeaseResult(b"", failures=writer.failures)
        try:
            await window.run(lease.calls)
        except SpeechLabError as error:
            returned.fault = error
        except Exception as error:  # noqa: BLE001 - it goes to the driver, which may not know its class
            returned.fault = SpeechLabError(f"{type(error).__name__}: {error}")
        returned.outcomes = {
            key: outcome for key, outcome in window.outcomes.items() if outcome.status != "ok"
        }
        returned.reason = None if stop.gently else stop.reason
        return returned

    def close(self) -> None:
        """Close the client."""
        if self.group is not None:
            self.group.end()
        self._lab.close()


_worker_runs: dict[str, _WorkerRun] = {}
_lock = threading.Lock()


@contextmanager
def _open_worker_run(lease: CallLease) -> Iterator[_WorkerRun]:
    """The station of a run, which lasts as long as it has a lease."""
    with _lock:
        station = _worker_runs.get(lease.run)
        if station is None:
            station = _worker_runs[lease.run] = _WorkerRun(lease.means)
        station.leases += 1
    try:
        yield station
    finally:
        with _lock:
            station.leases -= 1
            if not station.leases:
                del _worker_runs[lease.run]
        if not station.leases:
            station.close()


@atexit.register
def _interrupt_leases() -> None:
    """Let the calls under way end, which are paid for, where a worker ends in order, as without its scheduler."""
    until = time.monotonic() + GRACE_S
    while _worker_runs and time.monotonic() < until:
        for run in tuple(_worker_runs):
            notify_worker(run, {"reason": "the worker ends", "status": "interrupted"})
        time.sleep(_POLL_S / 5)
