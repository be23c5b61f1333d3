"""Error rates that can be trusted: counts, alignments and intervals beside every rate.

Words, characters or Japanese readings are compared after normalisation by ``text``; every result carries a
signature that says how. jiwer's definitions hold to the last digit. This room compares texts and tables; it
never calls a service and draws no figures.
Used by ``batch``, ``evaluate``, ``widgets``, ``plots`` and people in notebooks.
"""

from speechlab.metrics._alignment import Alignment, Edit, alignment_html, alignment_text
from speechlab.metrics._bootstrap import Interval
from speechlab.metrics._error_rate import ErrorRate, error_rate
from speechlab.metrics._japanese import Difference, JapaneseComparison, compare_japanese
from speechlab.metrics._score import score, summarize

__all__ = [
    "Alignment",
    "Difference",
    "Edit",
    "ErrorRate",
    "Interval",
    "JapaneseComparison",
    "alignment_html",
    "alignment_text",
    "compare_japanese",
    "error_rate",
    "score",
    "summarize",
]
