"""Plain HTML for reprs and reports, which text cannot get into unescaped.

It is not a template language or a plotting library: it knows neither sound nor tables of data, only markup.
Its parts survive in notebooks that are reopened without trust, in light and dark, offline, without scripts.
Used by everything that shows itself in a notebook: clips, voices, transcripts, scores, reports.
"""

from __future__ import annotations

from speechlab._door import name_after as _name_after
from speechlab.display._document import document, page_style
from speechlab.display._html import Html, data_url, element, escape, join
from speechlab.display._parts import audio_figure, details, diff, notebook_output, percent, table

__all__ = [
    "Html",
    "audio_figure",
    "data_url",
    "details",
    "diff",
    "document",
    "element",
    "escape",
    "join",
    "notebook_output",
    "page_style",
    "percent",
    "table",
]

_name_after(__name__, globals(), __all__)
