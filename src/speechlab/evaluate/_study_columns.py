"""Names of the columns that studies make.

A table with such a column is refused, even if this call does not make it. All other columns are copied to the report
and not interpreted. So no column of the user is overwritten, used as a group, or described in the methods.
"""

from __future__ import annotations

from speechlab.metrics import HOTWORD_COLUMNS, MEASURE_COLUMNS, SCORE_COLUMNS

# Columns of studies with several systems, or with several conditions of the recordings.
SIDES = ("system", "condition")
# The voice of rows that are of no voice or speaker alone.
NO_SPEAKER = "all recordings"
# Column, during a study, with the reason why a row is not spoken or not recognized.
REASON = "speechlab: why"
# Columns that follow from the texts of a row in all studies of speech.
SCORING = frozenset(SCORE_COLUMNS) | {"loop"}
# Columns that follow from the texts of a row in studies of recognition or translation.
RECOMPUTABLE = SCORING | {
    *("empty", "hallucination", "tail_lost"),
    *HOTWORD_COLUMNS,
    *("chrf", "back_chrf", "length_ratio", "copied", "terms_expected", "terms_found"),
}
# Columns of all studies of speech.
SPEECH = frozenset(SCORE_COLUMNS) | {
    *("voice", "voice_name", "gender", "audio", "duration_s", "sample_rate"),
    *("hypothesis", "hypothesis_language", "hypothesis_model", "confidence", "loop"),
    *("status", "error", "answered_at", *SIDES),
}
# Columns of streamed recognition.
STREAMING = ("first_partial_s", "finalization_s", "revisions", "unstable_words", "final_words")
RECOGNITION = SPEECH | {
    *STREAMING,
    *("empty", "hallucination", "tail_lost", "recording", "snr_db", "block"),
    *HOTWORD_COLUMNS,
}
# Those of them that a table of recordings may have, as input of the study.
INPUTS = frozenset({"audio", "voice", "gender", "duration_s", "sample_rate"})
# Columns of studies with the measures of :func:`speechlab.metrics.speech_measures`.
VOICES = SPEECH | {"take", "engine", *MEASURE_COLUMNS}
TRANSLATION = frozenset(
    {
        *(
            "system",
            "translation",
            "chrf",
            "length_ratio",
            "empty",
            "copied",
            "loop",
            "terms_expected",
            "terms_found",
        ),
        *("back_translation", "back_chrf", "back_error", "prompt_tokens", "completion_tokens"),
        *("model", "key", "status", "error", "error_type", "http_status", "attempts"),
        *("processing_s", "latency_s", "first_byte_s", "answered_at"),
        *("usage_characters", "usage_audio_s", "usage_tokens"),
    }
)
