"""Any argument of a public function: a documented result, or an error of this package that names the argument."""

from functools import partial

import jiwer
import numpy as np
import pandas as pd
import polars as pl
import pytest

from speechlab import metrics, segments, text
from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError, SpeechLabError
from support.arguments import WRONG, list_accepted

for package in ("pyopenjtalk", "pypinyin", "opencc"):
    pytest.importorskip(package)

FRAME = pd.DataFrame(
    [["a b", "a b", "de", "s", 1.0], ["c d", "c x", "de", "t", 2.0]],
    columns=["text", "hypothesis", "language", "speaker", "duration_s"],
)
SCORED = metrics.score(FRAME)
VOICES = metrics.score(pd.concat([FRAME, FRAME.assign(speaker=["t", "s"])], ignore_index=True))
TRANSLATED = pd.DataFrame(
    [["a b", "a b", "a b", "de"], ["c", "c", "x", "de"]],
    columns=["text", "reference", "translation", "target_lang"],
)
RATE = metrics.error_rate(["a b", "c d"], ["a b", "c x"])
TRANSLATION = metrics.score_translations(["a b", "c d"], ["a b", "c x"])
WORDS = pd.DataFrame({"start": [0.0], "end": [1.0], "word": ["a"], "correct": [True], "confidence": [0.5]})
SEGMENTS = segments.frame([(0.0, 1.0, "a b")], file="a.wav")
CLIP = AudioClip(np.random.default_rng(0).normal(0, 0.1, 8_000).astype("f4"), 16_000)
CLIPS = pd.DataFrame({"audio": [CLIP]})

DRAWS = {"level": 0.9, "draws": 10, "seed": 0}
BLOCKS = {**DRAWS, "groups": None}
COMPARED = {"unit": "word", "language": None, "normalize": "auto"}
COLUMNS = {"reference": "text", "hypothesis": "hypothesis", "language": "language"}
TRANSLATED_COLUMNS = {"references": TRANSLATED, "reference": "reference", "hypothesis": "translation"}
PAIR = {"references": ["a"], "hypotheses": ["a"]}
OF_SOURCES = {"sources": None, "source_language": None}
ONE_TEXT = {"text": "好"}
RANKED = {"scored": VOICES, "system": "speaker", "utterance": "text", "power": 0.8, **DRAWS}
SYSTEMS = {"x": ["a b", "c"], "y": ["a", "d"]}
JUDGED = {"a": "x", "b": "y", "difference": 0.1, "n": 9, "p": 0.01}
OTHER = FRAME.assign(other=["a b", "c x"])
HOW_TO_TRANSLATE = {"language": None, "tokenize": "auto", "metrics": ["chrf"], "options": None}
OF_METRICS = {
    "error_rate": PAIR | COMPARED,
    "from_jiwer": {"output": jiwer.process_words("a", "b")},
    "score": {"references": FRAME, **COLUMNS, "unit": "auto", "normalize": "auto"},
    "summarize": {"scored": SCORED, "by": (), **BLOCKS},
    "by_bins": {"scored": SCORED, "column": "duration_s", "bins": 2, **BLOCKS},
    "compare": {"scored_a": SCORED, "scored_b": SCORED, "on": None, "names": ("a", "b"), **BLOCKS},
    "compare of several": {"scored_a": {"a": SCORED, "b": SCORED}},
    "attribute": {"scored": VOICES, "voice": "speaker", "utterance": "text", "engine": None},
    "rank": RANKED,
    "edits": {"scored": SCORED, "reference": "text", "hypothesis": "hypothesis"},
    "alignments_html": {"scored": SCORED, "limit": 2},
    "timed_error_rate": {
        "reference": SEGMENTS,
        "hypothesis": SEGMENTS,
        "collar": 5.0,
        "by_speaker": False,
        **COMPARED,
    },
    "partial_stability": {"partials": [("a", False)], "language": "en"},
    "word_times": {"reference": WORDS, "hypothesis": WORDS, "collar": 5.0, **COMPARED},
    "calibration": {"table": WORDS, "correct": "correct", "confidence": "confidence", "bins": 10},
    "classify_differences": {"reference": "三", "hypothesis": "四", "language": "ja"},
    "formatting_rates": {"references": FRAME, **COLUMNS, **BLOCKS},
    "entity_scores": {"references": FRAME, **COLUMNS, "entities": [None] * len(FRAME), **BLOCKS},
    "suspects": {
        "frame": OTHER,
        "hypotheses": ["hypothesis", "other"],
        "reference": "text",
        "language": "language",
    },
    "sequential_test": {"runs": [[0.0, 1.0], [1.0, 1.0]], "alpha": 0.05, "seed": 0},
    "judge": {"rows": [JUDGED], "level": 0.9, "more": "worse"},
    "confusions": {"scored": SCORED},
    "hotword_scores": {"scored": SCORED, "hotwords": ["a"]},
    "hotword_counts": {"scored": SCORED, "hotwords": ["a"]},
    "hotword_error_rates": {"scored": SCORED, "hotwords": ["a"], **BLOCKS},
    "compare_translations": {"references": ["a b", "c"], "systems": SYSTEMS, **HOW_TO_TRANSLATE}
    | {"test": "bootstrap", "draws": 5, "level": 0.9},
    "glossary_terms": {**PAIR, "glossary": {"x": "a"}, **OF_SOURCES, "sources": ["x"], "language": None},
    "score_translations": {**PAIR, **HOW_TO_TRANSLATE, "scorers": None, "glossary": None, **OF_SOURCES},
    "score_translations of a table": {**TRANSLATED_COLUMNS, "source": "text"},
    "score_translations by group": {
        **TRANSLATED_COLUMNS,
        "language": "target_lang",
        "by": (),
        "tokenize": "auto",
        **BLOCKS,
    },
    "speech_measures": {"clips": [CLIP], "texts": None, "language": "language"}
    | {"silence_db": 40.0, "f0_range_hz": (60.0, 500.0)},
    "speech_measures of a table": {"clips": CLIPS, "audio": "audio", "text": "text", "language": "language"},
    "loudness": {"clip": CLIP},
    "holm": {"p": [0.02, 0.4]},
}
FUNCTIONS = {
    **{name: (getattr(metrics, name.split()[0]), good) for name, good in OF_METRICS.items()},
    "ErrorRate.confidence_interval": (RATE.confidence_interval, BLOCKS),
    "rank by condition": (partial(metrics.rank, **RANKED), {"by": "language"}),
    "glossary_terms of a table": (
        partial(metrics.glossary_terms, glossary={"a": "a"}),
        {**TRANSLATED_COLUMNS, "source": "text"},
    ),
    "TranslationScore.confidence_interval": (TRANSLATION.confidence_interval, {"metric": "chrf", **BLOCKS}),
    "TranslationScore.frame": (TRANSLATION.frame, DRAWS),
    "normalizer": (text.normalizer, {"name": "de"}),
    "Normalizer": (text.normalizer("ja"), ONE_TEXT),
    "Normalizer.explain": (text.normalizer("ja").explain, ONE_TEXT),
    "Normalizer.spans": (text.normalizer("ja").spans, ONE_TEXT),
    "get_language_name": (text.get_language_name, {"code": "de"}),
    "to_kana_key": (text.to_kana_key, {"kana": "カナ"}),
    "loops": (text.loops, {"text": "a", "reference": "b"}),
    "join_texts": (text.join_texts, {"texts": ["a", "b"], "language": ""}),
    **{
        name: (getattr(text, name), {"language": "de"})
        for name in ("language_code", "parse_primary_language", "writes_without_spaces")
    },
    **{
        name: (getattr(text, name), ONE_TEXT)
        for name in (
            *("words", "characters", "pinyin", "reading", "to_reading_key", "count_morae", "split_morphemes"),
            *("split_spoken_words", "to_usual_kanji", "to_standard_kanji", "list_dictionary_entries"),
            *("looks_unspaced", "list_language_codes"),
        )
    },
}
VALUES = WRONG | {"doubled": pd.concat([SCORED, SCORED], axis=1)}
del VALUES["5"]  # as 2
ALIASES = {"references": "leave hypotheses out", "source_language": "not a language"}
ANY_NAME = "None 0 2 -1 1.5 True x empty bytes object"  # of a column that there may be
MAY_LACK_A_LANGUAGE = (
    "error_rate",
    "timed_error_rate",
    "word_times",
    "suspects",
    "compare_translations",
    "glossary_terms",
    "score_translations",
    "score_translations by group",
)
ACCEPTED = {
    "bins": "2",
    "by": "[]",
    "clips": "x empty bytes [] [5] [None] [nan]",  # what cannot be read is an error of its row
    "code": "x empty",
    "collar": "0 2 1.5",
    "draws": "2",
    "engine": "None",
    "glossary": "[] {}",
    "groups": "None",
    "hotwords": "[] {}",
    "kana": "x empty",
    "limit": "2",
    "more": "x empty",
    "normalize": "None",
    "on": "None",
    "options": "None {}",
    "p": "[] [None] [nan]",
    "partials": "empty [] {}",  # nothing was shown
    "rows": "empty [] {}",
    "scorers": "None {}",
    "seed": "0 2",
    "silence_db": "0 2 1.5",
    "source": ANY_NAME,
    "source_language": "None",
    "sources": "None x empty",
    "text": "x empty",
    "texts": "None x empty",
}
ACCEPTED_BY = {
    ("rank by condition", "by"): "None",
    ("compare_translations", "draws"): "None 2",
    ("score_translations", "glossary"): "None [] {}",
    ("formatting_rates", "groups"): "None array",  # of two names
    ("entity_scores", "groups"): "None array",
    ("glossary_terms", "hypotheses"): "x empty",
    ("score_translations", "hypotheses"): "x empty",
    ("glossary_terms", "references"): "None x empty",
    ("score_translations", "references"): "x empty",
    ("glossary_terms of a table", "references"): "[]",
    ("edits", "reference"): ANY_NAME,
    ("edits", "hypothesis"): ANY_NAME,
    ("timed_error_rate", "reference"): "[]",
    ("timed_error_rate", "hypothesis"): "[]",
    ("word_times", "reference"): "table",  # of texts
    ("classify_differences", "reference"): "x empty",
    ("classify_differences", "hypothesis"): "x empty",
    ("loops", "reference"): "x empty",
    ("speech_measures of a table", "text"): ANY_NAME,
    ("join_texts", "texts"): "[] {}",
    ("partial_stability", "language"): "empty",
    **{(name, "language"): "None" for name in MAY_LACK_A_LANGUAGE},
    **{
        (name, "language"): "x empty"
        for name in ("parse_primary_language", "join_texts", "writes_without_spaces")
    },
}


def test_every_public_function_is_tested_here():
    ours = {name for name in metrics.__all__ if callable(getattr(metrics, name)) and name[0].islower()}
    named = {name.split(" of ")[0] for name in FUNCTIONS}
    # These need weights, and their clips are those of speech_measures.
    networks = {"dnsmos", "speaker_embedding", "speaker_similarity"}
    assert ours - named == networks
    assert {name for name in text.__all__ if name[0].islower()} <= named


@pytest.mark.slow
def test_wrong_arguments_are_refused_by_name():
    """Values that are valid are taken, such as no language, or one text for a list of one; the others are not."""
    taken, expected = {}, {}
    for name, (function, good) in FUNCTIONS.items():
        function(**good)
        accepted = list_accepted(function, good, values=VALUES, aliases=ALIASES)
        taken |= {(name, argument): labels for argument, labels in accepted.items()}
        expected |= {(name, a): ACCEPTED_BY.get((name, a), ACCEPTED.get(a, "")) for a in good}
    assert taken == expected


def test_a_table_of_polars_is_taken_as_one_of_pandas():
    for function, good in FUNCTIONS.values():
        for argument in [argument for argument, value in good.items() if isinstance(value, pd.DataFrame)]:
            with pytest.raises(SpeechLabError) as caught:
                function(**{**good, argument: pl.DataFrame({"nothing": ["a"]})})
            assert "'nothing'" in str(caught.value) or "start" in str(caught.value)


def test_errors_name_the_problem():
    for call, hint in [
        (lambda: RATE.confidence_interval(draws=10**12), "draws=1000000000000 .* from 1 to 1,000,000"),
        (lambda: RATE.confidence_interval(groups=["a", None]), r"groups\[1\] is None"),
        (lambda: metrics.summarize(SCORED.assign(speaker=["a", pd.NA]), groups="speaker"), r"groups\[1\]"),
        (lambda: metrics.speech_measures(np.zeros(16_000, np.float32)), "sample rate is not known"),
        (lambda: metrics.score_translations([["a"], []], ["a", "b"]), r"references\[1\] is empty"),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            call()
