"""Plain HTML for reprs and reports, in which all text is escaped.

The room is not a template language or a plotting library: it makes only markup. Its parts work in untrusted
notebooks, in light and dark, offline, and without scripts. Clips, voices, transcripts, scores and reports use it for
their display in a notebook.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.display._document import document, read_page_style
from speechlab.display._frames import keep_dollars as keep_dollars
from speechlab.display._html import Html, data_url, element, end_directions, escape, join
from speechlab.display._parts import (
    audio_figure,
    diff,
    format_count,
    format_percent,
    join_with_and,
    notebook_output,
    render_details,
    render_difference_legend,
    table,
    write_minus,
)

__all__ = [
    "audio_figure",
    "data_url",
    "diff",
    "document",
    "join",
    "notebook_output",
    "table",
]

_name_after(__name__, globals())
