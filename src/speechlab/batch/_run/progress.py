"""Progress of a run: counts, shown by a bar, a function or a watcher."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from speechlab._hooks import make_notebook_display
from speechlab._platform import find_marimo, is_in_notebook
from speechlab.notebook import open_bar

if TYPE_CHECKING:
    from speechlab.batch._outcome import Outcome

# Width of a terminal, in columns, at which the bar has room for more than the count of errors.
_MIN_WIDE_COLUMNS = 100
# Maximum number of outcomes kept for a watcher between two updates; all are counted.
_MAX_RECENT = 100


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a run so far."""

    done: int  # calls that ended
    total: int  # calls to make for the part of the table that has been read
    errors: int  # calls that failed
    cached: int  # calls that the store answered, in neither of the first two
    elapsed_s: float
    invalid: int = 0  # rows that became error rows without a call
    waiting: str = ""  # why the whole run waits, with the time if it is known; empty while calls are made
    unit: str = "call"  # what is counted
    left_s: float | None = None  # time that the calls to make will take, by the sizes of those that ended


@runtime_checkable
class Watcher(Protocol):
    """An object that shows a run. Only the thread of the user's output calls it."""

    def begin(self, operation: str) -> None:
        """Begin a run of an operation: synthesize, transcribe or translate."""

    def update(self, outcomes: Sequence[Outcome], counts: Counts) -> None:
        """Show the calls that ended since the last update, possibly none. Called several times a second.

        ``outcomes`` has at most the last 100 of them; ``counts`` includes all.
        """

    def end(self) -> None:
        """End the display. Called once for every run, whether it finished or stopped."""


# True for a bar or, in a notebook, the preview of its cell; False for none; a function of (calls done, calls in all);
# or a watcher.
Progress = bool | Callable[[int, int], None] | Watcher


def choose_progress(progress: Progress) -> Progress:
    """Return what shows a run: in a notebook, for True, the display that is registered."""
    display: Progress | None = make_notebook_display() if progress is True and is_in_notebook() else None
    return progress if display is None else display


class Tally:
    """Counts of a run, written by the loop that makes the calls and read by the thread that shows them."""

    def __init__(self, unit: str = "call") -> None:
        self.unit = unit
        self.started = False
        self.pauses: list[Callable[[], tuple[str, float] | None]] = []
        self.total = 0
        self.done = 0
        self.invalid = 0
        self.statuses: Counter[str] = Counter()
        self.audio_s = 0.0
        self.characters = 0
        self.tokens = 0
        self._recent: deque[Outcome] = deque(maxlen=_MAX_RECENT)
        self._began = time.perf_counter()
        self._calls_began = self._began
        self._planned_size = self._done_size = 0.0

    def add_planned(self, calls: int, cached: int, invalid: int = 0, size: float = 0.0) -> None:
        """Add the calls of a piece of the table, and their size in characters or seconds."""
        if not self.total:
            self._calls_began = time.perf_counter()
        self.total += calls
        self._planned_size += size
        self.invalid += invalid
        self.statuses["cached"] += cached
        self.started = True

    def add_outcome(self, outcome: Outcome) -> None:
        """Count a call."""
        self.statuses[outcome.status] += 1
        self.audio_s += outcome.audio_s
        self.characters += outcome.characters
        self.tokens += outcome.tokens
        self._done_size += outcome.characters or outcome.audio_s or self._planned_size / max(self.total, 1)
        self._recent.append(outcome)
        self.done += 1

    def to_counts(self) -> Counts:
        """Return the counts so far."""
        elapsed_s = time.perf_counter() - self._began
        statuses = self.statuses
        counted = statuses["error"], statuses["cached"]
        waiting, left_s = self.describe_wait(), self.estimate_left_s()
        return Counts(self.done, self.total, *counted, elapsed_s, self.invalid, waiting, self.unit, left_s)

    def estimate_left_s(self) -> float | None:
        """Return the seconds that the calls to make will take, if time goes with size; None before the first end."""
        sizes = (self._done_size, self._planned_size) if self._planned_size else (self.done, self.total)
        if not self.done or not sizes[0]:
            return None
        return (time.perf_counter() - self._calls_began) * max(sizes[1] / sizes[0] - 1, 0.0)

    def describe_wait(self) -> str:
        """Reason for which the whole run waits, and the time left; empty while calls are made."""
        pauses = [pause for find_pause in self.pauses if (pause := find_pause()) is not None]
        if not pauses:
            return ""
        what, left_s = max(pauses, key=lambda pause: pause[1])
        seconds = math.ceil(left_s)
        time_left = f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"
        return f"waiting for {what}, {time_left}" if seconds > 0 else f"waiting for {what}"

    def take_outcomes(self) -> list[Outcome]:
        """Return the calls that ended since the last :meth:`take`."""
        outcomes: list[Outcome] = []
        while self._recent:  # the loop may append at the same time; only this thread removes
            outcomes.append(self._recent.popleft())
            if len(outcomes) == _MAX_RECENT:
                break
        return outcomes

    def format_figures(self, *, narrow: bool) -> dict[str, str]:
        """Return the figures that follow a bar, in addition to those of tqdm; fewer on a narrow screen."""
        elapsed = time.perf_counter() - self._began
        labels = {"failed": f"{self.statuses['error'] + self.invalid}"}
        if self.statuses["cached"]:
            labels["cached"] = f"{self.statuses['cached']}"
        if narrow:
            return labels
        if self.audio_s:
            labels["rtf"] = f"{elapsed / self.audio_s:.2f}"
            labels["audio"] = f"{self.audio_s:.0f}s"
        if self.characters:
            labels["chars"] = f"{self.characters}"
        if self.tokens:
            labels["tokens"] = f"{self.tokens}"
        return labels


class ProgressDisplay:
    """The display of a tally, used only by the thread of the user's output."""

    def __init__(self, tally: Tally, progress: Callable[[], Progress], label: str) -> None:
        self._tally, self._progress, self._label = tally, progress, label
        self._told, self._told_total = -1, 0
        self._waiting = ""
        self._bar: Any = None
        self._watched = False

    def show(self) -> None:
        """Update the display; nothing is shown before the run begins or waits for its service."""
        begun = self._tally.started or self._watched or self._bar is not None
        if not (begun or self._tally.describe_wait()) or (progress := self._progress()) is False:
            return
        if isinstance(progress, Watcher):
            if not self._watched:
                self._watched = True
                progress.begin(self._label)
            progress.update(self._tally.take_outcomes(), self._tally.to_counts())
        elif callable(progress):
            if not self._tally.started:
                return
            total, ended = self._tally.total, self._tally.done
            while self._told < ended:
                self._told, self._told_total = self._told + 1, total
                progress(self._told, total)
        elif self._tally.total or not self._tally.started:
            self._update_bar()

    def _update_bar(self) -> None:
        if self._bar is None:
            self._bar = open_bar(self._tally.total, self._label, self._tally.unit)
        if self._bar.disable:
            return
        self._bar.total = self._tally.total
        narrow = isinstance(self._bar.ncols, int) and self._bar.ncols < _MIN_WIDE_COLUMNS
        waiting = self._tally.describe_wait()
        if self._tally.done > self._bar.n:
            self._bar.set_postfix(self._tally.format_figures(narrow=narrow), refresh=False)
            if not narrow and not waiting:
                self._bar.bar_format = self._build_bar_format()
            self._bar.update(self._tally.done - self._bar.n)
        if waiting != self._waiting:
            self._waiting = waiting
            # the reason of the wait replaces the rate and the time left, which mean nothing now
            suffix = f", {waiting}" if narrow else f" [{{elapsed}}, {waiting}{{postfix}}]"
            waits = f"{{l_bar}}{{bar}}| {{n_fmt}}/{{total_fmt}}{suffix}"
            self._bar.bar_format = waits if waiting else None if narrow else self._build_bar_format()
            if not self._tally.started:  # the client requests the identity of the service
                self._bar.bar_format = f"{{desc}}: {waiting or 'waited for the service, {elapsed}'}"
            self._bar.refresh()

    def _build_bar_format(self) -> str:
        """Return the format of the bar with the time left by the sizes of calls, where tqdm goes by their number."""
        left_s = self._tally.estimate_left_s()
        left = "?" if left_s is None else self._bar.format_interval(left_s)
        return f"{{l_bar}}{{bar}}| {{n_fmt}}/{{total_fmt}} [{{elapsed}}<{left}, {{rate_fmt}}{{postfix}}]"

    def close(self) -> None:
        """Show the last state, and end the display."""
        try:
            self.show()
            progress = self._progress() if self._told >= 0 else False
            if callable(progress) and self._told_total > self._tally.total >= self._told:
                progress(self._told, self._tally.total)  # others have made calls that were planned here
        finally:
            if self._bar is not None:
                self._bar.close()
            if self._watched and isinstance(progress := self._progress(), Watcher):
                progress.end()


@contextmanager
def show_progress(
    progress: Progress, total: int, label: str, *, unit: str = "call", delay_s: float = 0.0
) -> Iterator[Callable[..., object]]:
    """Show a count of work that is no run, if it takes longer than a delay."""
    if progress is False or not total:
        yield lambda _=1: None
        return
    if progress is True and not is_in_notebook():
        with open_bar(total, label, unit, delay=delay_s, leave=not delay_s) as bar:
            yield bar.update
        return
    tally = Tally(unit)
    tally.add_planned(total, 0)
    display = ProgressDisplay(tally, cache(partial(choose_progress, progress)), label)
    due = time.perf_counter() + delay_s

    def count_more(more: int = 1) -> None:
        tally.done += more
        if time.perf_counter() >= due:
            display.show()

    count_more(0)
    try:
        yield count_more
    finally:
        if time.perf_counter() >= due:
            display.close()


def announce(progress: Progress, words: str) -> None:
    """Show a sentence before the bars, where there are bars and somebody sees them."""
    if progress is not True:
        return
    if marimo := find_marimo():
        marimo.output.append(marimo.plain_text(words))
    elif is_in_notebook():
        from IPython.display import display

        display({"text/plain": words}, raw=True)  # type: ignore[no-untyped-call]  # IPython's display has no types
    elif sys.stderr.isatty():
        sys.stderr.write(f"{words}\n")
