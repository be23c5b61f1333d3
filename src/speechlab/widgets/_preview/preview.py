"""The preview of a batch: its last rows, and its progress."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traitlets

from speechlab._arguments import build_argument_error, is_whole_number
from speechlab._platform import find_marimo
from speechlab.display import Html, element, notebook_output, table
from speechlab.widgets._shared.browser import bundle_module, read_colors_and_style_sheets
from speechlab.widgets._shared.live import RefreshableWidget

if TYPE_CHECKING:
    from speechlab.batch import Counts, Outcome

_HERE = Path(__file__).parent
_UPDATE_S = 0.2
_REFRESH_S = 5.0
_MAX_ROWS = 50
_MAX_CHARACTERS = 300
_MAX_EARLIER = 20
_MAX_REASON = 100
_BOX = "max-width:760px;margin:4px 0;font-size:13px"
_SOFT = "opacity:.74"
_TITLES = {"synthesize": "Synthesis", "transcribe": "Recognition", "translate": "Translation"}


class BatchPreview(RefreshableWidget):
    """A preview of a running batch: its last finished rows, and a line with its progress.

    Display the preview first, then pass it to a batch as ``progress``::

        preview = sl.widgets.BatchPreview(rows=5)
        display(preview)
        table = sl.batch.transcribe(frame, lab, progress=preview)

    A row has its status, its text (the synthesized text, the hypothesis, the translation or the error) and its
    latency. Stored results and invalid rows are counted, but not shown. The same preview can be passed to several
    batches in turn, and a study passes it to each of its stages; each finished batch keeps a line.

    A saved or exported notebook still shows the final state.

    Args:
        rows: Maximum number of rows shown, 1 to 50.

    Raises:
        InvalidRequestError: ``rows`` is not allowed.
    """

    _esm = bundle_module(_HERE / "preview.js")
    _css = read_colors_and_style_sheets(_HERE / "preview.css")

    title = traitlets.Unicode("Batch").tag(sync=True)
    summary = traitlets.Unicode("not begun").tag(sync=True)
    running = traitlets.Bool(default_value=False).tag(sync=True)
    done = traitlets.Int(0).tag(sync=True)
    total = traitlets.Int(0).tag(sync=True)
    recent = traitlets.List(traitlets.Dict()).tag(sync=True)
    earlier = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(self, rows: int = 5) -> None:
        if not is_whole_number(rows) or not 1 <= rows <= _MAX_ROWS:
            raise build_argument_error("rows", rows, f"a whole number from 1 to {_MAX_ROWS}")
        super().__init__()
        self._last: deque[dict[str, str]] = deque(maxlen=rows)
        self._counts: Counts | None = None
        self._reasons: Counter[str] = Counter()
        self._pushed = -math.inf
        self._kept = 0.0  # when the HTML in the notebook was made anew

    def __repr__(self) -> str:
        return f"BatchPreview({self.title!r}, {self.summary!r})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if self._counts is not None and not self.running:
            # Nothing will change any more, so no live view is needed.
            return {"text/html": str(notebook_output(self.static_html())), "text/plain": repr(self)}
        return super()._repr_mimebundle_(**kwargs)

    def static_html(self) -> Html:
        """Return the progress and the last rows."""
        lines = [*self.earlier, {"title": self.title, "summary": self.summary}]
        heads = [
            element(
                "div", element("strong", line["title"]), " ", element("span", line["summary"], style=_SOFT)
            )
            for line in lines
        ]
        rows = [
            (
                element("span" if row["status"] == "ok" else "strong", row["status"]),
                element(
                    "span", row["text"], lang=row["lang"] or None, dir="auto", style="overflow-wrap:anywhere"
                ),
                element("span", row["latency"], style="white-space:nowrap"),
            )
            for row in self.recent
        ]
        body = table(("Status", "Text", "Latency"), rows, right=(2,))
        return element("div", *heads, body if self.recent else None, style=_BOX)

    def begin(self, operation: str) -> None:
        """Note the start of a run; called by the batch."""
        ended = self._counts is not None
        if ended:
            self.earlier = [*self.earlier, {"title": self.title, "summary": self.summary}][-_MAX_EARLIER:]
        self._last.clear()
        self._counts = None
        self._reasons.clear()
        self.title = _TITLES.get(operation, operation[:1].upper() + operation[1:])
        self._update_traits(running=True)
        self._pushed = -math.inf  # the first rows need not wait
        self._kept = time.monotonic()
        if ended:
            self._refresh_output(with_view=True)

    def update(self, outcomes: Sequence[Outcome], counts: Counts) -> None:
        """Show the calls that ended; called by the batch. The browser is updated at most five times a second."""
        self._last.extend(_outcome_to_entry(outcome) for outcome in outcomes)
        self._counts = counts
        self._reasons.update(
            _outcome_to_entry(outcome)["text"] for outcome in outcomes if outcome.status == "error"
        )
        if time.monotonic() - self._pushed >= _UPDATE_S:
            self._update_traits(running=True)
            if self._pushed - self._kept >= _REFRESH_S:  # a kernel may die before the end
                self._kept = self._pushed
                self._refresh_output()

    def end(self) -> None:
        """Note the end of a run; called by the batch."""
        self._update_traits(running=False)
        self._refresh_output(with_view=True)

    def _update_traits(self, *, running: bool) -> None:
        counts = self._counts
        with self.hold_sync():
            self.running = running
            self.recent = list(self._last)
            self.done, self.total = (counts.done, counts.total) if counts else (0, 0)
            text = _format_summary(counts, running=running) if counts else "begins"
            if reason := next(iter(self._reasons.most_common(1)), None):
                more = "…" if len(reason[0]) > _MAX_REASON else ""
                text = f"{text} · most often: {reason[0][:_MAX_REASON]}{more}"
            self.summary = text
        self._pushed = time.monotonic()


def _outcome_to_entry(outcome: Outcome) -> dict[str, str]:
    """Return a call for the page: short plain texts, without audio."""
    text, lang = outcome.error_text or "", ""
    if outcome.error is not None:
        text = str(outcome.error)
    elif outcome.stored is not None:
        request, response = outcome.stored.request, outcome.stored.response
        # the reply of a synthesis has no text, so the row shows the synthesized text
        text = str(response.get("text", request.get("text")) or "(no text)")
        lang = str(response.get("language") or request.get("target_lang") or "")
    if len(text) > _MAX_CHARACTERS:
        text = text[: _MAX_CHARACTERS - 1] + "…"
    latency = "" if outcome.latency_s is None else f"{outcome.latency_s:.2f} s"
    if outcome.attempts > 1:
        latency += f", {outcome.attempts} tries"
    return {"status": outcome.status, "text": text, "lang": lang, "latency": latency}


def _format_summary(counts: Counts, *, running: bool) -> str:
    units = f"{counts.unit}s"
    facts = [f"{counts.done:,} of {counts.total:,} {units}" if counts.total else f"no {units} to make"]
    if counts.unit == "call":
        facts += [f"{counts.errors + counts.invalid:,} failed", f"{counts.cached:,} cached"]
    rate = counts.done / counts.elapsed_s if counts.elapsed_s > 0 else 0.0
    if running and counts.waiting:
        return " · ".join([*facts, counts.waiting])
    if rate:
        facts.append(f"{rate:.1f} {units}/s")
    if not running:
        facts.append(
            f"{'ended' if counts.done >= counts.total else 'stopped'} after {_format_duration(counts.elapsed_s)}"
        )
    elif rate:
        left_s = (counts.total - counts.done) / rate if counts.left_s is None else counts.left_s
        facts.append(f"{_format_duration(left_s)} left")
    return " · ".join(facts)


def _format_duration(seconds: float) -> str:
    rounded = round(max(seconds, 0.0))
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"


_displayed: list[tuple[str, BatchPreview]] = []  # the last one, with the execution of a cell that shows it


def display_preview() -> BatchPreview:
    """Return the preview that the running cell shows: one for all batches that it makes one after the other."""
    if marimo := find_marimo():
        preview = BatchPreview()
        marimo.output.append(preview)
        return preview
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    message: dict[str, Any] = getattr(get_ipython(), "get_parent", dict)()
    execution = message.get("header", {}).get("msg_id", "")
    for shown_by, preview in _displayed:
        if shown_by == execution != "" and not preview.running:
            return preview
    preview = BatchPreview()
    display(preview)  # type: ignore[no-untyped-call]
    _displayed[:] = [(execution, preview)]
    return preview
