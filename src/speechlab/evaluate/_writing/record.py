"""The run of a study: an estimate, its stages, the rows that failed, and its record of versions and batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._platform import get_package_version, get_text_dtype
from speechlab._traces import warn_user
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError, SpeechLabError, StoreError
from speechlab.evaluate._writing.sentences import quote_name

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.batch import Progress
    from speechlab.store import Store

# True for bars, False for none, a function of (stage, calls done, calls in all), or a watcher of one stage
# after the other.
StageProgress = bool | Callable[[str, int, int], None] | batch.Watcher


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a study makes its calls, keeps their results and shows them; the same for all studies."""

    title: str
    store: Store | str | None
    concurrency: int
    executor: Any
    give_up_after_s: float | None
    progress: StageProgress

    def to_batch_arguments(self, stage: str, detail: str = "") -> dict[str, Any]:
        """Return the arguments of the batch that is one stage of the study."""
        return {
            "store": self.store,
            "concurrency": self.concurrency,
            "executor": self.executor,
            "give_up_after_s": self.give_up_after_s,
            "progress": build_stage_progress(self.progress, f"{stage}, {detail}" if detail else stage),
        }


# How the estimate begins, which a function of progress gets as its first stage.
ESTIMATE = "estimate: "


def announce_estimate(
    progress: object,
    action: str,
    plans: Iterable[Callable[[], batch.Plan]] = (),
    *,
    next_action: str = "",
    recordings: Sequence[float] = (),
) -> None:
    """Say before a study starts how much it will ask for, as far as its rows and its store show.

    A function of progress gets the sentence as a stage of 0 calls. A plan whose service cannot be asked is left out.
    The lengths of recordings (s) stand in place of plans.
    """
    plans = list(plans)
    if progress is False or isinstance(progress, batch.Watcher) or not (plans or len(recordings)):
        return
    if len(recordings):
        lengths = [seconds for seconds in recordings if seconds == seconds]
        amount = (
            f"at most {format_count(len(recordings), 'recording')} to {action}, {_format_sound(sum(lengths))}"
        )
    else:
        totals: Counter[str] = Counter()
        for plan in plans:
            with suppress(SpeechLabError):
                totals.update(plan().summary())
        amount = f"{format_count(int(totals['calls']), 'text')} to {action}, {totals['characters']:,.0f} characters"
        if totals["cached"]:
            amount += f" ({totals['cached']:,.0f} more are in the store)"
        if next_action and totals["characters"]:
            amount += (
                f"; up to {_format_sound(batch.S_PER_CHARACTER * totals['characters'])} to {next_action}"
            )
    words = f"{ESTIMATE}{amount}"
    if callable(progress):
        progress(words, 0, 0)
    else:
        batch.announce(True, words)


def _format_sound(seconds: float) -> str:
    """Return a length of sound, which is not the time that it takes."""
    return f"{seconds / 60:,.0f} minutes of sound" if seconds >= 90 else f"{seconds:.0f} seconds of sound"


def build_stage_progress(progress: object, stage: str) -> Progress:
    """Return the progress of one stage of a study, in the form for a batch."""
    if isinstance(progress, bool | batch.Watcher):
        return progress
    if not callable(progress):
        message = (
            f"progress is {progress!r}; it must be True, False, a function of (stage, calls done, calls in all), "
            "or a watcher such as BatchPreview()"
        )
        raise InvalidRequestError(message, parameter="progress")
    return lambda done, total: progress(stage, done, total)


# Maximum number of reasons in a description.
_MAX_REASONS = 3
_MAX_ERROR_LENGTH = 200


def warn_failures(table: pd.DataFrame, see: str = "report.failures() has them") -> None:
    """Warn of failed rows, with the commonest reasons, at the line that called the study."""
    errors = table.loc[table["status"] == "error", "error"]
    if words := describe_failures(errors, len(table)):
        warn_user(f"{words} {see}", stacklevel=5)


def describe_failures(errors: pd.Series[str], rows: int, system: str = "") -> str:
    """Return a sentence with the number of failed rows and the commonest reasons; empty if none failed."""
    if not len(errors):
        return ""
    counts = errors.astype(get_text_dtype()).value_counts()
    reasons = [
        f"{count:,} like {_shorten_error(str(error))!r}" for error, count in counts.head(_MAX_REASONS).items()
    ]
    more = int(counts.iloc[_MAX_REASONS:].sum())
    words = "; ".join([*reasons, *([f"{more:,} for other reasons"] if more else [])])
    of = f" of {quote_name(system)}" if system else ""
    return f"{len(errors):,} of {rows:,} rows{of} failed: {words}."


def _shorten_error(error: str) -> str:
    return error if len(error) <= _MAX_ERROR_LENGTH else error[: _MAX_ERROR_LENGTH - 1] + "…"


def build_record(
    study: str, store: Store | str | None, *tables: pd.DataFrame, **settings: Any
) -> dict[str, Any]:
    """Return the record of a study.

    Returns:
        ``study``, ``made`` (UTC), ``speechlab``, ``settings``, and ``runs``: id, operation, status and manifest of
        each batch (versions, service, parameters, counts, usage, digests; never a credential).
    """
    runs = []
    for table in tables:
        with suppress(StoreError, InvalidRequestError):  # no calls, or no recorded run
            run = batch.load(table, store)
            facts = {"id": run.id, "operation": run.record.operation, "status": run.status}
            runs.append({**facts, **run.manifest})
    return {
        "study": study,
        "made": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "speechlab": get_package_version(),
        "settings": settings,
        "runs": runs,
    }


def join_service_names(record: dict[str, Any]) -> str:
    """Return the service of a record; empty if it has none."""
    names = [str(run["service"]) for run in record.get("runs", ()) if run.get("service")]
    return ", ".join(dict.fromkeys(names))
