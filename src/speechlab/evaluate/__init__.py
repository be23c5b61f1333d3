"""Studies: questions about voices, recognizers, translators and listeners, answered with a report.

A study drives batches over a table, scores what comes back, and returns a Report: tidy tables, a page that can be
read and played, and files to keep. It adds no metric of its own and makes no call that a batch does not make.
Notebooks and the command line use it.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.batch import Price
from speechlab.evaluate._acceptance_study import acceptance
from speechlab.evaluate._advice.advice import Advice as Advice
from speechlab.evaluate._advice.advice import Lead as Lead
from speechlab.evaluate._advice.conclusions import build_choice_conclusion as build_choice_conclusion
from speechlab.evaluate._cast import speaks, voice_name
from speechlab.evaluate._listening.listening_study import listening, listening_answers
from speechlab.evaluate._listening.power import listening_power
from speechlab.evaluate._proof.anew import correct_references
from speechlab.evaluate._proof.verify import Proof, verify
from speechlab.evaluate._proof.verify import open_report as open_report
from speechlab.evaluate._published.audit import audit
from speechlab.evaluate._readings.readings_study import readings
from speechlab.evaluate._recognition.recognition_study import recognition
from speechlab.evaluate._report import PAGE_BYTES, Report
from speechlab.evaluate._round_trip import round_trip
from speechlab.evaluate._speech.drift import describe_days as describe_days
from speechlab.evaluate._speech.drift import describe_drift as describe_drift
from speechlab.evaluate._speech.drift import describe_time_drift as describe_time_drift
from speechlab.evaluate._speech.latency import latency
from speechlab.evaluate._statistics import estimate_quantile as estimate_quantile
from speechlab.evaluate._translation.translation_study import translation
from speechlab.evaluate._voices.voices_study import voices
from speechlab.evaluate._watch.watch_study import watch
from speechlab.evaluate._writing.contents import Conclusion, Drawing, Finding

__all__ = [
    "Conclusion",
    "Drawing",
    "Price",
    "Report",
    "acceptance",
    "audit",
    "correct_references",
    "latency",
    "listening",
    "listening_answers",
    "listening_power",
    "readings",
    "recognition",
    "round_trip",
    "speaks",
    "translation",
    "verify",
    "voice_name",
    "voices",
    "watch",
]

_name_after(__name__, globals())
