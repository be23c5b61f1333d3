"""Figures for papers: a tidy table goes in, a matplotlib ``Figure`` comes out.

They keep no state in pyplot, read in grey, hold text as text of any script, and save as vectors. Live views are
widgets; numbers are made in the rooms below. Used by people in notebooks, and by reports.
"""

from __future__ import annotations

from speechlab._door import name_after as _name_after
from speechlab.plots._listeners import listeners
from speechlab.plots._measures import confusions, distributions, error_by_measure
from speechlab.plots._rates import differences, error_rates, translation_scores
from speechlab.plots._segments import segments

__all__ = [
    "confusions",
    "differences",
    "distributions",
    "error_by_measure",
    "error_rates",
    "listeners",
    "segments",
    "translation_scores",
]

_name_after(__name__, globals(), __all__)
