"""Tables of pandas and polars in Jupyter, where a dollar is a dollar."""

from __future__ import annotations

import sys
from typing import Any

from speechlab._pandas import pd
from speechlab.display._html import Html
from speechlab.display._parts import notebook_output

# The switch of pandas, which is off once this package is imported: a notebook can turn it on again.
_MATHEMATICS = "display.html.use_mathjax"


def keep_dollars(library: str) -> None:
    """Have Jupyter show the tables of a library, which is loaded, without typesetting what stands between dollars.

    Polars does not look at the switch of pandas, and what pandas 2 writes by it, MathJax 3 does not look at.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    if not hasattr(shell, "kernel"):
        return
    if library == "pandas":
        pd.set_option(_MATHEMATICS, False)
    formatter = shell.display_formatter.formatters["text/html"]
    table = sys.modules[library].DataFrame
    if formatter.for_type(table) is None:  # one that somebody registered stays
        formatter.for_type(table, _render)


def _render(table: Any) -> str | None:
    """Return a table as its library writes it, or None where it writes no HTML."""
    html: str | None = table._repr_html_()
    return html if html is None or pd.get_option(_MATHEMATICS) else str(notebook_output(Html(html)))
