"""Text made comparable: normalizers, tokenizers and readings for English, Japanese and Chinese; lexicons of voices.

Each normalizer is a named pipeline of steps with a version and a content hash, and shows what each step does. A
reading is the pronunciation of a Japanese text, in kana. The table of languages is here too. Scores are in
``metrics``. This room never calls a service and never loads a model; dictionaries are loaded on first use.
Used by the client, ``metrics``, ``evaluate`` and the command line.
"""

from speechlab._door import set_module_to_room as _name_after
from speechlab.text._fingerprint import hash_function, list_unhashed_value_types
from speechlab.text._language_codes import (
    ANY_LANGUAGE,
    get_language_name,
    guess_language,
    join_texts,
    language_code,
    list_language_codes,
    looks_unspaced,
    parse_primary_language,
    writes_without_spaces,
)
from speechlab.text._languages.chinese import pinyin
from speechlab.text._languages.japanese import Morpheme, list_dictionary_entries, split_morphemes
from speechlab.text._languages.readings import (
    SpokenWord,
    count_morae,
    find_on_reading,
    reading,
    split_spoken_words,
    to_kana_key,
    to_reading_key,
    to_standard_kanji,
    to_usual_kanji,
)
from speechlab.text._lexicon import Lexicon, LexiconEntry
from speechlab.text._normalizer import Normalizer, Spans, Step
from speechlab.text._registry import NORMALIZERS, normalizer
from speechlab.text._tokens import characters, find_differing_runs, loops, words

__all__ = [
    "Lexicon",
    "LexiconEntry",
    "characters",
    "language_code",
    "loops",
    "normalizer",
    "pinyin",
    "reading",
    "words",
]

_name_after(__name__, globals())
