"""Widgets that stand in a notebook as plain HTML, which they replace as long as they run."""

from __future__ import annotations

import os
import sys
from typing import Any
from uuid import uuid4

import anywidget
import traitlets

from speechlab.display import Html, notebook_output


class LiveWidget(anywidget.AnyWidget):
    """A widget whose output in the notebook is plain HTML.

    The browser's side finds that HTML by a class name and shows the live view in its place. A saved notebook
    therefore holds what can be read and heard without a kernel, and never a widget whose model is missing.
    """

    _place = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        # with the first message, since the browser's side looks for its place as soon as it begins
        super().__init__(_place=f"speechlab-place-{uuid4().hex}", **traits)

    def static_html(self) -> Html:
        """Return what stands in the saved notebook."""
        raise NotImplementedError("a live widget says what stands in the saved notebook")

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        html = notebook_output(self.static_html(), class_=self._place)
        bundle = {"text/html": str(html), "text/plain": repr(self)}
        if not _shows_widgets_only():
            return bundle
        made: Any = super()._repr_mimebundle_(**kwargs)
        view: dict[str, Any] = made[0] if isinstance(made, tuple) else made
        return {**view, **bundle}


class RefreshedWidget(LiveWidget):
    """A live widget whose HTML in the notebook is made anew when what it holds is something else."""

    _shown: Any = None
    """What all outputs are reached by; None before the first."""

    def _ipython_display_(self) -> None:
        from IPython.display import display

        # one name for all outputs: notebooks put what is sent to it into each that still stands there
        handle = display(self._repr_mimebundle_(), raw=True, display_id=self._place)  # type: ignore[no-untyped-call]
        if handle is not None:  # where there is no kernel, there is nothing to put something else into
            self._shown = handle

    def _show_again(self, *, with_view: bool = False) -> None:
        """Put the HTML as it is now in the place of what stands there; the live view goes on.

        Args:
            with_view: Also where the notebook shows the widget itself, whose view ends with it, and begins again if
                the widget is still to be shown.
        """
        if self._shown is not None and (with_view or not _shows_widgets_only()):
            self._shown.update(self._repr_mimebundle_(), raw=True)


def _shows_widgets_only() -> bool:
    """Whether the notebook starts a widget only where one is shown: Colab and Visual Studio Code do."""
    return "google.colab" in sys.modules or "VSCODE_PID" in os.environ
