"""Figures for papers: functions from a tidy table to a matplotlib ``Figure``.

The figures have no state in pyplot, remain readable in gray, support text of any script, and are saved as vectors.
Live views are in ``widgets``; the numbers come from the rooms below. Used by people in notebooks, and by reports.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.plots._distributions import confusions, distributions, error_by_measure
from speechlab.plots._lines import reliability, series
from speechlab.plots._listeners import listeners
from speechlab.plots._rates import differences, error_rates, translation_scores
from speechlab.plots._segments import timeline
from speechlab.plots._trade_offs import trade_offs

__all__ = [
    "confusions",
    "differences",
    "distributions",
    "error_by_measure",
    "error_rates",
    "listeners",
    "reliability",
    "series",
    "timeline",
    "trade_offs",
    "translation_scores",
]

_name_after(__name__, globals(), __all__)
