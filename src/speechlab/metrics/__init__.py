"""Error rates with their counts, alignments and intervals, and measures of speech.

Words, characters or Japanese readings are compared after normalization by ``text``. The signature of each result
records unit, normalizer and versions. The rates agree with jiwer to the last digit. The room compares texts and
tables, and measures clips; it makes no calls and draws no figures.
Used by ``batch``, ``evaluate``, ``widgets``, ``plots`` and people in notebooks.
"""

from speechlab._door import set_module_to_room as _name_after
from speechlab.metrics._alignment.alignment import Alignment, Edit
from speechlab.metrics._alignment.units import choose_unit
from speechlab.metrics._differences.compare import classify_differences, has_difference_classes
from speechlab.metrics._differences.differences import Difference, TextComparison
from speechlab.metrics._differences.english_pronunciations import list_pronunciations
from speechlab.metrics._rates.compare import compare
from speechlab.metrics._rates.comparison import Comparison
from speechlab.metrics._rates.entities import entity_scores
from speechlab.metrics._rates.error_rate import ErrorRate, error_rate
from speechlab.metrics._rates.formatting import formatting_rates
from speechlab.metrics._rates.hotwords import HOTWORD_COLUMNS as HOTWORD_COLUMNS
from speechlab.metrics._rates.hotwords import hotword_counts, hotword_error_rates, hotword_scores
from speechlab.metrics._rates.of_jiwer import from_jiwer
from speechlab.metrics._rates.score import SCORE_COLUMNS as SCORE_COLUMNS
from speechlab.metrics._rates.score import score
from speechlab.metrics._rates.summary import by_bins, summarize
from speechlab.metrics._rates.tables import to_scored_table
from speechlab.metrics._reports.edits import alignments_html, confusions, edits
from speechlab.metrics._reports.suspects import suspects
from speechlab.metrics._sound.clip_measures import MEASURE_COLUMNS as MEASURE_COLUMNS
from speechlab.metrics._sound.clip_measures import loudness, speech_measures
from speechlab.metrics._sound.networks import Dnsmos, dnsmos, speaker_embedding, speaker_similarity
from speechlab.metrics._sound.signal import measure_f0
from speechlab.metrics._statistics.bootstrap import Interval
from speechlab.metrics._statistics.calibration import Calibration, calibration
from speechlab.metrics._statistics.sequential import sequential_test
from speechlab.metrics._statistics.shares import compute_count_bound as compute_count_bound
from speechlab.metrics._statistics.shares import compute_share_interval
from speechlab.metrics._statistics.significance import (
    ALIKE,
    BETTER,
    DIFFERENCES,
    POINTS,
    RATIO,
    UNPAIRED,
    WORSE,
    build_significance_mask,
    compute_sign_flip_p,
    format_difference,
    format_value,
    holm,
    judge,
)
from speechlab.metrics._statistics.student import compute_student_p, compute_student_quantile
from speechlab.metrics._systems.attribution import Attribution, attribute
from speechlab.metrics._systems.ranking import Ranking, assign_letters, compute_utterances_needed, rank
from speechlab.metrics._timed.distance import TimedTokens, align_timed_tokens, count_timed_errors
from speechlab.metrics._timed.stability import partial_stability
from speechlab.metrics._timed.timed import TimedErrorRate, timed_error_rate
from speechlab.metrics._timed.words import WordTimes, word_times
from speechlab.metrics._translation.glossary import glossary_terms
from speechlab.metrics._translation.paired import compare_translations
from speechlab.metrics._translation.paired import compute_chrf_pseudo_values as compute_chrf_pseudo_values
from speechlab.metrics._translation.scores import TranslationScore, score_translations

__all__ = [
    "Calibration",
    "Comparison",
    "alignments_html",
    "attribute",
    "by_bins",
    "calibration",
    "classify_differences",
    "compare",
    "compare_translations",
    "confusions",
    "dnsmos",
    "edits",
    "entity_scores",
    "error_rate",
    "formatting_rates",
    "from_jiwer",
    "glossary_terms",
    "holm",
    "hotword_counts",
    "hotword_error_rates",
    "hotword_scores",
    "judge",
    "loudness",
    "partial_stability",
    "rank",
    "score",
    "score_translations",
    "sequential_test",
    "speaker_embedding",
    "speaker_similarity",
    "speech_measures",
    "summarize",
    "suspects",
    "timed_error_rate",
    "word_times",
]

_name_after(__name__, globals())
