"""Text made comparable: normalisers, tokenisers and readings for English, Japanese and Chinese.

Each normaliser is a named pipeline of steps with a version and a content hash, and shows what each step does. A
reading is the pronunciation of a Japanese text, in kana. The table of languages is here too. Scores are in
``metrics``. This room never calls a service and never loads a model; dictionaries are loaded on first use.
Used by the client, ``metrics``, ``evaluate`` and the command line.
"""

from speechlab._door import name_after as _name_after
from speechlab.text._fingerprint import function_hash, unhashed
from speechlab.text._language_codes import (
    ANY_LANGUAGE,
    join_texts,
    language_code,
    language_name,
    languages_in,
    looks_unspaced,
    primary_language,
    writes_without_spaces,
)
from speechlab.text._languages.chinese import pinyin
from speechlab.text._languages.japanese import Morpheme, dictionary_entries, morphemes
from speechlab.text._languages.readings import (
    SpokenWord,
    kana_key,
    mora_count,
    reading,
    reading_key,
    spoken_words,
    standard_kanji,
    usual_kanji,
)
from speechlab.text._normalizer import Normalizer, Spans, Step
from speechlab.text._registry import NORMALIZERS, normalizer
from speechlab.text._tokens import characters, differing_runs, loops, words

__all__ = ["characters", "language_code", "loops", "normalizer", "pinyin", "reading", "words"]

_name_after(__name__, globals())
