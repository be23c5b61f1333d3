"""Any argument of a public function: a documented result, or an error of this package that names the argument."""

import math

import jiwer
import numpy as np
import pandas as pd
import polars as pl
import pytest

from speechlab import metrics, segments, text
from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError, SpeechLabError

for package in ("pyopenjtalk", "pypinyin", "opencc"):
    pytest.importorskip(package)

FRAME = pd.DataFrame(
    {
        "text": ["a b", "c d"],
        "hypothesis": ["a b", "c x"],
        "language": ["de", "de"],
        "speaker": ["s", "t"],
        "duration_s": [1.0, 2.0],
    }
)
SCORED = metrics.score(FRAME)
VOICES = metrics.score(pd.concat([FRAME, FRAME.assign(speaker=["t", "s"])], ignore_index=True))
TRANSLATED = pd.DataFrame(
    {
        "text": ["a b", "c"],
        "reference": ["a b", "c"],
        "translation": ["a b", "x"],
        "target_lang": ["de", "de"],
    }
)
RATE = metrics.error_rate(["a b", "c d"], ["a b", "c x"])
TRANSLATION = metrics.score_translations(["a b", "c d"], ["a b", "c x"])
WORDS = pd.DataFrame({"start": [0.0], "end": [1.0], "word": ["a"], "correct": [True], "confidence": [0.5]})
SEGMENTS = segments.frame([(0.0, 1.0, "a b")], file="a.wav")
CLIP = AudioClip(np.random.default_rng(0).normal(0, 0.1, 8_000).astype("f4"), 16_000)
CLIPS = pd.DataFrame({"audio": [CLIP]})

DRAWS = {"level": 0.9, "draws": 10, "seed": 0}
COMPARED = {"unit": "word", "language": None, "normalize": "auto"}
ONE_TEXT = {"text": "好"}
FUNCTIONS = {
    "error_rate": (
        metrics.error_rate,
        {"references": ["a"], "hypotheses": ["b"], **COMPARED},
    ),
    "from_jiwer": (metrics.from_jiwer, {"output": jiwer.process_words("a", "b")}),
    "ErrorRate.confidence_interval": (RATE.confidence_interval, {**DRAWS, "groups": None}),
    "score": (
        metrics.score,
        {
            "references": FRAME,
            "reference": "text",
            "hypothesis": "hypothesis",
            "language": "language",
            "unit": "auto",
            "normalize": "auto",
        },
    ),
    "summarize": (metrics.summarize, {"scored": SCORED, "by": (), **DRAWS, "groups": None}),
    "by_bins": (
        metrics.by_bins,
        {"scored": SCORED, "column": "duration_s", "bins": 2, **DRAWS, "groups": None},
    ),
    "compare": (
        metrics.compare,
        {"scored_a": SCORED, "scored_b": SCORED, "on": None, "names": ("a", "b"), **DRAWS, "groups": None},
    ),
    "compare of several": (metrics.compare, {"scored_a": {"a": SCORED, "b": SCORED}, **DRAWS}),
    "attribute": (
        metrics.attribute,
        {"scored": VOICES, "voice": "speaker", "utterance": "text", "engine": None},
    ),
    "rank": (
        metrics.rank,
        {"scored": VOICES, "system": "speaker", "utterance": "text", "power": 0.8, **DRAWS},
    ),
    "rank by condition": (
        metrics.rank,
        {"scored": VOICES, "by": "language", "system": "speaker", "utterance": "text", "power": 0.8, **DRAWS},
    ),
    "edits": (metrics.edits, {"scored": SCORED, "reference": "text", "hypothesis": "hypothesis"}),
    "alignments_html": (metrics.alignments_html, {"scored": SCORED, "limit": 2}),
    "timed_error_rate": (
        metrics.timed_error_rate,
        {"reference": SEGMENTS, "hypothesis": SEGMENTS, "collar": 5.0, "by_speaker": False, **COMPARED},
    ),
    "partial_stability": (metrics.partial_stability, {"partials": [("a", False)], "language": "en"}),
    "word_times": (
        metrics.word_times,
        {"reference": WORDS, "hypothesis": WORDS, "collar": 5.0, **COMPARED},
    ),
    "calibration": (
        metrics.calibration,
        {"table": WORDS, "correct": "correct", "confidence": "confidence", "bins": 10},
    ),
    "classify_differences": (
        metrics.classify_differences,
        {"reference": "三", "hypothesis": "四", "language": "ja"},
    ),
    "formatting_rates": (
        metrics.formatting_rates,
        {"references": FRAME, "reference": "text", "hypothesis": "hypothesis", "language": "language"}
        | {**DRAWS, "groups": None},
    ),
    "entity_scores": (
        metrics.entity_scores,
        {"references": FRAME, "reference": "text", "hypothesis": "hypothesis", "language": "language"}
        | {"entities": [None] * len(FRAME), **DRAWS, "groups": None},
    ),
    "suspects": (
        metrics.suspects,
        {
            "frame": FRAME.assign(other=["a b", "c x"]),
            "hypotheses": ["hypothesis", "other"],
            "reference": "text",
            "language": "language",
        },
    ),
    "sequential_test": (
        metrics.sequential_test,
        {"runs": [[0.0, 1.0], [1.0, 1.0]], "alpha": 0.05, "seed": 0},
    ),
    "judge": (
        metrics.judge,
        {"rows": [{"a": "x", "b": "y", "difference": 0.1, "n": 9, "p": 0.01}], "level": 0.9, "more": "worse"},
    ),
    "confusions": (metrics.confusions, {"scored": SCORED}),
    "hotword_scores": (metrics.hotword_scores, {"scored": SCORED, "hotwords": ["a"]}),
    "hotword_counts": (metrics.hotword_counts, {"scored": SCORED, "hotwords": ["a"]}),
    "hotword_error_rates": (
        metrics.hotword_error_rates,
        {"scored": SCORED, "hotwords": ["a"], **DRAWS, "groups": None},
    ),
    "compare_translations": (
        metrics.compare_translations,
        {
            "references": ["a b", "c"],
            "systems": {"x": ["a b", "c"], "y": ["a", "d"]},
            "language": None,
            "tokenize": "auto",
            "metrics": ["chrf"],
            "options": None,
            "test": "bootstrap",
            "draws": 5,
            "level": 0.9,
        },
    ),
    "glossary_terms": (
        metrics.glossary_terms,
        {
            "references": ["a"],
            "hypotheses": ["a"],
            "glossary": {"x": "a"},
            "sources": ["x"],
            "language": None,
            "source_language": None,
        },
    ),
    "glossary_terms of a table": (
        metrics.glossary_terms,
        {
            "references": TRANSLATED,
            "glossary": {"a": "a"},
            "reference": "reference",
            "hypothesis": "translation",
            "source": "text",
        },
    ),
    "score_translations": (
        metrics.score_translations,
        {
            "references": ["a"],
            "hypotheses": ["a"],
            "language": None,
            "tokenize": "auto",
            "metrics": ["chrf"],
            "options": None,
            "scorers": None,
            "glossary": None,
            "sources": None,
            "source_language": None,
        },
    ),
    "score_translations of a table": (
        metrics.score_translations,
        {
            "references": TRANSLATED,
            "reference": "reference",
            "hypothesis": "translation",
            "source": "text",
        },
    ),
    "TranslationScore.confidence_interval": (
        TRANSLATION.confidence_interval,
        {"metric": "chrf", **DRAWS, "groups": None},
    ),
    "TranslationScore.frame": (TRANSLATION.frame, DRAWS),
    "score_translations by group": (
        metrics.score_translations,
        {
            "references": TRANSLATED,
            "reference": "reference",
            "hypothesis": "translation",
            "language": "target_lang",
            "by": (),
            "tokenize": "auto",
            **DRAWS,
            "groups": None,
        },
    ),
    "speech_measures": (
        metrics.speech_measures,
        {
            "clips": [CLIP],
            "texts": None,
            "language": "language",
            "silence_db": 40.0,
            "f0_range_hz": (60.0, 500.0),
        },
    ),
    "speech_measures of a table": (
        metrics.speech_measures,
        {"clips": CLIPS, "audio": "audio", "text": "text", "language": "language"},
    ),
    "loudness": (metrics.loudness, {"clip": CLIP}),
    "holm": (metrics.holm, {"p": [0.02, 0.4]}),
    "normalizer": (text.normalizer, {"name": "de"}),
    "Normalizer": (text.normalizer("ja"), ONE_TEXT),
    "Normalizer.explain": (text.normalizer("ja").explain, ONE_TEXT),
    "Normalizer.spans": (text.normalizer("ja").spans, ONE_TEXT),
    "language_code": (text.language_code, {"language": "de"}),
    "get_language_name": (text.get_language_name, {"code": "de"}),
    "list_language_codes": (text.list_language_codes, ONE_TEXT),
    "parse_primary_language": (text.parse_primary_language, {"language": "de"}),
    "to_kana_key": (text.to_kana_key, {"kana": "カナ"}),
    "loops": (text.loops, {"text": "a", "reference": "b"}),
    "join_texts": (text.join_texts, {"texts": ["a", "b"], "language": ""}),
    "writes_without_spaces": (text.writes_without_spaces, {"language": "de"}),
    **{
        name: (getattr(text, name), ONE_TEXT)
        for name in (
            *("words", "characters", "pinyin", "reading", "to_reading_key", "count_morae", "split_morphemes"),
            *(
                "split_spoken_words",
                "to_usual_kanji",
                "to_standard_kanji",
                "list_dictionary_entries",
                "looks_unspaced",
            ),
        )
    },
}
BAD = {
    "None": None,
    "5": 5,
    "x": "x",
    "[]": [],
    "{}": {},
    "nan": math.nan,
    "[None]": [None],
    "[nan]": [math.nan],
    "-1": -1,
    "0": 0,
    "2": 2,
    "2.5": 2.5,
    "True": True,
    "object": object(),
    "array": np.zeros((2, 2, 2)),
    "table": pd.DataFrame({"text": ["a"]}),
    "doubled": pd.concat([SCORED, SCORED], axis=1),
}
# Values that are valid for an argument: an empty list of terms, no language, one text for a list of one.
NUMBERS = {"5", "2"}
TEXT = {"x"}
ANYTHING_HASHABLE = {"None", "5", "x", "nan", "-1", "0", "2", "2.5", "True", "object"}
ACCEPTED = {
    "by": {"[]"},
    "bins": NUMBERS,
    "clips": {
        "x",
        "[]",
        "[None]",
        "[nan]",
    },  # a path that does not exist, and missing clips
    "glossary": {"[]", "{}"},
    "kana": TEXT,
    "p": {"[]", "[None]", "[nan]"},
    "limit": NUMBERS,
    "groups": {"None"},
    "hotwords": {"[]", "{}"},
    "collar": {"0", "2", "5", "2.5"},
    "by_speaker": set(),  # there are no speakers in the table
    "hypotheses": TEXT,
    "hypothesis": TEXT,
    "language": {"None"},
    "draws": NUMBERS,
    "normalize": {"None"},
    "options": {"None", "{}"},
    "scorers": {"None", "{}"},
    "on": {"None"},
    "reference": TEXT,
    "references": TEXT,
    "seed": {"5", "0", "2"},
    "silence_db": {"5", "2", "0", "2.5"},
    "source_language": {"None"},
    "sources": {"None", "x"},
    "text": TEXT,
    "texts": {"None", "x"},
}
ACCEPTED_BY = {
    # One text stands for a list of one; where the other side is a list, the two must be alike.
    ("error_rate", "references"): set(),
    ("error_rate", "hypotheses"): set(),
    # Names of missing columns.
    ("score", "references"): set(),
    ("classify_differences", "language"): set(),
    ("rank by condition", "by"): {"None"},
    ("edits", "reference"): ANYTHING_HASHABLE,
    ("edits", "hypothesis"): ANYTHING_HASHABLE,
    ("compare_translations", "references"): set(),
    ("compare_translations", "draws"): {*NUMBERS, "None"},
    **{
        (name, argument): {"None", "array"} if argument == "groups" else set()  # an array of two names
        for name in ("formatting_rates", "entity_scores")
        for argument in ("references", "reference", "hypothesis", "language", "groups")
    },
    ("suspects", "reference"): set(),
    ("suspects", "hypotheses"): set(),
    ("suspects", "language"): {"None", "nan"},
    ("judge", "more"): TEXT,
    ("judge", "rows"): {"[]", "{}"},
    ("score", "reference"): set(),
    ("score", "hypothesis"): set(),
    ("score", "language"): set(),
    ("score_translations by group", "reference"): set(),
    ("score_translations by group", "hypothesis"): set(),
    ("score_translations by group", "language"): {"None"},
    ("score_translations by group", "references"): set(),
    ("glossary_terms", "references"): {"None", "x"},
    ("glossary_terms of a table", "references"): {"[]"},
    ("glossary_terms of a table", "reference"): set(),
    ("glossary_terms of a table", "hypothesis"): set(),
    ("attribute", "engine"): {"None"},
    ("score_translations", "glossary"): {"None", "[]", "{}"},
    ("score_translations of a table", "references"): set(),
    ("score_translations of a table", "reference"): set(),
    ("score_translations of a table", "hypothesis"): set(),
    ("speech_measures", "language"): set(),
    ("language_code", "language"): set(),
    ("word_times", "hypothesis"): set(),
    ("timed_error_rate", "reference"): {"[]"},
    ("word_times", "reference"): {"table"},  # of texts
    ("partial_stability", "partials"): {"[]", "{}"},  # nothing was shown
    ("partial_stability", "language"): set(),
    ("timed_error_rate", "hypothesis"): {"[]"},
    ("join_texts", "texts"): {"[]", "{}"},
    ("join_texts", "language"): TEXT,
    ("get_language_name", "code"): TEXT,
    ("parse_primary_language", "language"): TEXT,
    ("writes_without_spaces", "language"): TEXT,
    # Optional columns.
    ("glossary_terms of a table", "source"): ANYTHING_HASHABLE,
    ("score_translations of a table", "source"): ANYTHING_HASHABLE,
    ("speech_measures of a table", "text"): ANYTHING_HASHABLE,
    ("speech_measures of a table", "language"): set(),
}


def test_every_public_function_is_tested_here():
    ours = {name for name in metrics.__all__ if callable(getattr(metrics, name)) and name[0].islower()}
    named = {name.split(" of ")[0] for name in FUNCTIONS}
    # These need weights, and their clips are those of speech_measures.
    networks = {"dnsmos", "speaker_embedding", "speaker_similarity"}
    assert ours - named == networks
    assert {name for name in text.__all__ if name[0].islower()} <= named


@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name, (_, good) in FUNCTIONS.items() for argument in good]
)
def test_wrong_arguments_raise_an_error_of_this_package(name, argument):
    function, good = FUNCTIONS[name]
    function(**good)
    accepted = set()
    for label, value in BAD.items():
        try:
            function(**{**good, argument: value})
        except SpeechLabError as error:
            assert str(error)
            assert len(str(error)) < 2_000
        else:
            accepted.add(label)
    assert accepted == ACCEPTED_BY.get((name, argument), ACCEPTED.get(argument, set()))


TABLES = [
    (name, argument)
    for name, (_, good) in FUNCTIONS.items()
    for argument, value in good.items()
    if isinstance(value, pd.DataFrame)
]


@pytest.mark.parametrize(("name", "argument"), TABLES)
def test_a_table_of_polars_is_taken_as_one_of_pandas(name, argument):
    function, good = FUNCTIONS[name]
    with pytest.raises(SpeechLabError) as caught:
        function(**{**good, argument: pl.DataFrame({"nothing": ["a"]})})
    assert "'nothing'" in str(caught.value) or "start" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: metrics.error_rate(None, "a"), "references"),
        (lambda: metrics.error_rate(["a"], "a"), "both"),
        (lambda: metrics.error_rate({"a", "b"}, ["a", "b"]), "list of texts"),
        (lambda: metrics.error_rate(["a"], ["a"], normalize=lambda text: None), "returned None"),
        (lambda: metrics.compare(pd.concat([SCORED, SCORED]), SCORED), "utterance 0 more than once"),
        (lambda: RATE.confidence_interval(level=2), "between 0 and 1"),
        (lambda: RATE.confidence_interval(draws=0), "draws=0"),
        (lambda: RATE.confidence_interval(draws=10**12), "draws=1000000000000 .* from 1 to 1,000,000"),
        (lambda: RATE.confidence_interval(seed=-1), "seed=-1"),
        (lambda: RATE.confidence_interval(seed=None), "seed=None"),
        (lambda: RATE.confidence_interval(groups=["a", None]), r"groups\[1\] is None"),
        (lambda: metrics.summarize(SCORED.assign(speaker=["a", pd.NA]), groups="speaker"), r"groups\[1\]"),
        (lambda: metrics.speech_measures(np.zeros(16_000, np.float32)), "sample rate is not known"),
        (lambda: metrics.speech_measures([CLIP], f0_range_hz=(500, 60)), "f0_range_hz"),
        (lambda: metrics.score_translations([["a"], []], ["a", "b"]), r"references\[1\] is empty"),
        (lambda: metrics.score_translations(["a"], ["a"], tokenize="spm"), "'spm'"),
    ],
)
def test_errors_name_the_problem(call, hint):
    with pytest.raises(InvalidRequestError, match=hint):
        call()
