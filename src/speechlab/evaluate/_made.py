"""Names of the columns that studies make.

A table with such a column is refused, even if this call does not make it. All other columns are copied to the report
and not interpreted. So no column of the user is overwritten, used as a group, or described in the methods.
"""

from __future__ import annotations

# Columns of studies with several systems, or with several conditions of the recordings.
SIDES = ("system", "condition")
# The voice of rows that are of no voice or speaker alone.
NO_SPEAKER = "all recordings"
# Column, during a study, with the reason why a row is not spoken or not recognized.
REASON = "speechlab: why"
# Columns that :func:`speechlab.metrics.score` adds.
_SCORES = frozenset(
    {
        *("unit", "signature", "reference_normalized", "hypothesis_normalized", "alignment", "score_error"),
        *("error_rate", "errors", "hits", "substitutions", "deletions", "insertions", "reference_length"),
        *("wer", "cer", "reading_cer", "pinyin_error_rate", "toneless_error_rate"),
        *(f"{unit}_errors" for unit in ("word", "char", "reading", "pinyin", "toneless", "tolerant")),
        *(f"{unit}_length" for unit in ("word", "char", "reading", "pinyin", "toneless")),
        "uncertain_reading_errors",
        "tolerant_cer",
        "tolerant_wer",
        *(f"{kind}_differences" for kind in ("notation", "filler", "homophone", "tone", "recognition")),
    }
)
# Columns that follow from the texts of a row in all studies of speech.
SCORING = _SCORES | {"loop"}
# Columns that follow from the texts of a row in studies of recognition or translation.
RECOMPUTABLE = SCORING | {
    *("empty", "hallucination", "tail_lost"),
    *("hotwords_said", "hotwords_hit", "hotwords_added", "unbiased_errors", "unbiased_length"),
    *("chrf", "back_chrf", "length_ratio", "copied", "terms_expected", "terms_found"),
}
# Columns of all studies of speech.
SPEECH = _SCORES | {
    *("voice", "voice_name", "gender", "audio", "duration_s", "sample_rate"),
    *("hypothesis", "hypothesis_language", "hypothesis_model", "confidence", "loop"),
    *("status", "error", "answered_at", *SIDES),
}
# Columns of streamed recognition.
STREAMING = ("first_partial_s", "finalization_s", "revisions", "unstable_words", "final_words")
RECOGNITION = SPEECH | {
    *STREAMING,
    *("empty", "hallucination", "tail_lost", "recording", "snr_db", "block"),
    *("hotwords_said", "hotwords_hit", "hotwords_added", "unbiased_errors", "unbiased_length"),
}
# Those of them that a table of recordings may have, as input of the study.
INPUTS = frozenset({"audio", "voice", "gender", "duration_s", "sample_rate"})
# Columns of studies with the measures of :func:`speechlab.metrics.speech_measures`.
VOICES = SPEECH | {
    *("take", "engine", "loudness_lufs", "morae_per_s", "words_per_s", "characters_per_s"),
    *("leading_silence_s", "trailing_silence_s", "longest_pause_s"),
    *("f0_median_hz", "f0_mean_hz", "f0_sd_hz", "voiced_ratio"),
    *("dnsmos_overall", "dnsmos_signal", "dnsmos_background", "dnsmos_p808"),
    *("truncated_ending", "repeated_ending"),
    *("clipping_ratio", "peak_dbfs", "rms_dbfs", "silence_ratio", "speech_s", "morae", "words", "characters"),
    *("duration_per_mora_s", "duration_per_character_s", "duration_z", "measure_error"),
}
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
