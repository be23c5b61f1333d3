"""Widgets whose notebook output is plain HTML, which the live view replaces."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from base64 import b64encode
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from speechlab.display import Html, notebook_output
from speechlab.errors import AudioError, InvalidRequestError
from speechlab.widgets._shared.sounds import describe_error

# Connections of notebooks close without an error above ten million, some hosts at five.
_MAX_MESSAGE_BYTES = 4_000_000
# Time without changes after which the HTML in the notebook is made anew.
_QUIET_S = 1.5


class LiveWidget(anywidget.AnyWidget):
    """A widget whose output in the notebook is plain HTML.

    The script in the browser finds that HTML by a class name and shows the live view in its place. A saved notebook
    is therefore readable without a kernel, and never shows a widget whose model is missing.
    """

    _place = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        # in the first message, because the script in the browser looks for its place at once
        super().__init__(_place=f"speechlab-place-{uuid4().hex}", **traits)
        self.on_msg(self._answer_message)

    def _answer_message(self, _widget: object, content: Any, buffers: Any) -> None:
        """Answer a message of the browser by the method ``_on_`` and its type. An invalid one is dropped.

        A method gets the message, with its ``buffers``. It returns None, the facts of an answer, or facts and bytes.
        """
        kind = content.get("type") if isinstance(content, dict) else None
        method = getattr(self, f"_on_{kind}", None)
        if method is None:
            return
        try:
            facts = method({**content, "buffers": buffers})
        except (AudioError, OSError) as error:
            facts = {"error": describe_error(error)}
        except (KeyError, IndexError, TypeError, ValueError, InvalidRequestError) as error:
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
            if any(frame.f_globals.get("__name__", "").startswith("traitlets.") for frame in frames):
                raise  # it is the error of a function that observes the widget
            return
        facts, data = facts if isinstance(facts, tuple) else (facts, None)
        if facts is None:
            return
        answer = {"ask": content.get("ask"), **facts}
        if data is None:
            self.send(answer)
            return
        starts = range(0, max(len(data), 1), _MAX_MESSAGE_BYTES)
        for number, start in enumerate(starts):
            part = {"part": number, "parts": len(starts)} if len(starts) > 1 else {}
            self.send({**answer, **part}, [data[start : start + _MAX_MESSAGE_BYTES]])

    def static_html(self) -> Html:
        """Return the HTML for the saved notebook."""
        raise NotImplementedError("a live widget must define static_html()")

    def _repr_png_(self) -> bytes | None:
        """Return a picture for hosts and converters that keep no HTML; None for none."""
        return None

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        form = _choose_output_form()
        html = notebook_output(self.static_html(), class_="" if form == "still" else self._place)
        bundle = {"text/html": str(html), "text/plain": repr(self)}
        if (picture := self._repr_png_()) is not None:
            bundle["image/png"] = b64encode(picture).decode("ascii")
        if form != "live":
            return bundle
        live: Any = super()._repr_mimebundle_(**kwargs)
        # the metadata names the widget manager that Colab has to load
        return ({**live[0], **bundle}, live[1]) if isinstance(live, tuple) else {**live, **bundle}


class RefreshableWidget(LiveWidget):
    """A live widget whose HTML in the notebook is updated when its content changes."""

    _shown: Any = None
    """The display handle of all outputs; None before the first display."""
    _later: threading.Timer | None = None
    _due = 0.0

    def _ipython_display_(self) -> None:
        from IPython.display import display

        # one display id for all outputs: a notebook updates every output with this id
        bundle, metadata = self._build_output()
        handle = display(bundle, metadata=metadata, raw=True, display_id=self._place)  # type: ignore[no-untyped-call]  # IPython's display has no types
        if handle is not None:  # without a kernel there is no output to update
            self._shown = handle

    def _schedule_refresh(self) -> None:
        """Replace the HTML in the notebook after a while without changes."""
        self._due = time.monotonic() + _QUIET_S
        if self._shown is not None and (self._later is None or not self._later.is_alive()):
            self._refresh_now_or_start_timer()

    def _refresh_now_or_start_timer(self) -> None:
        remaining_s = self._due - time.monotonic()
        if remaining_s <= 0.01:
            self._later = None
            self._refresh_output()
            return
        self._later = threading.Timer(remaining_s, self._refresh_now_or_start_timer)
        self._later.daemon = True
        self._later.start()

    def _refresh_output(self, *, with_view: bool = False) -> None:
        """Replace the HTML in the notebook; ``with_view`` also where the host shows the widget, which begins anew."""
        if self._shown is not None and (with_view or _choose_output_form() != "live"):
            bundle, metadata = self._build_output()
            self._shown.update(bundle, raw=True, **({"metadata": metadata} if metadata else {}))

    def _build_output(self) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = self._repr_mimebundle_()
        return bundle if isinstance(bundle, tuple) else (bundle, {})


def _choose_output_form() -> str:
    """What the output of a widget has: ``html``; ``live``, the HTML and the widget; or ``still``, HTML that stays.

    Colab and Visual Studio Code start a widget only for a widget output. ``SPEECHLAB_WIDGETS`` decides for others.
    """
    form = os.environ.get("SPEECHLAB_WIDGETS", "")
    if form not in {"", "live", "still"}:
        message = f"SPEECHLAB_WIDGETS={form!r} is neither 'live' nor 'still'; set one of them, or neither"
        raise InvalidRequestError(message, parameter="SPEECHLAB_WIDGETS")
    return form or ("live" if "google.colab" in sys.modules or "VSCODE_PID" in os.environ else "html")
