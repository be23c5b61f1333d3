"""A catalogue of voices as a table: the properties of each voice, its results, and what is said of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from speechlab.text import ANY_LANGUAGE, languages_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from speechlab.contract import Voice
    from speechlab.widgets._voices.speaking import Spoken

_CHOSEN_BY = ("languages", "gender", "streaming", "formats")
_COMPARED = ("first_audible_s", "characters")
_COST = "The embedded service is free; others may bill characters."

SAMPLES: Mapping[str, str] = {
    "ja": "すみません、この近くに郵便局はありますか。",
    "en": "Excuse me, is there a post office anywhere near here?",
    "zh": "您好，请问这附近有没有邮局？",
}
"""The same question in each language; from the prompts of ``sl.datasets``."""


def languages_of(voice: Voice) -> list[str]:
    """Return the codes of a voice's languages, in the order in which the catalogue names them."""
    tag = voice.language.casefold()
    codes = [code for code in languages_in(voice.language) if len(code) <= 3 and tag != ANY_LANGUAGE]
    codes.sort(key=lambda code: (tag.find(code) < 0, tag.find(code), code))
    return codes or [voice.language]


def sample_of(voice: Voice) -> str:
    """Return the sample sentence of a voice: in the first of its languages that has one, else in English."""
    return next((SAMPLES[code] for code in languages_of(voice) if code in SAMPLES), SAMPLES["en"])


def frame_of(voices: Sequence[Voice]) -> pd.DataFrame:
    """Return one row for each voice, with empty columns for its future results."""
    import pandas as pd

    properties = {
        "voice": [voice.short_name for voice in voices],
        "description": [voice.description for voice in voices],
        "languages": [languages_of(voice) for voice in voices],
        "gender": pd.Categorical([str(voice.gender) for voice in voices]),
        "streaming": [voice.streaming for voice in voices],
        "formats": [list(map(str, voice.formats)) for voice in voices],
        "sample_rates": [list(map(str, voice.sample_rates or ())) for voice in voices],
        "id": [voice.id for voice in voices],
    }
    results = {
        "audio": pd.Series([None] * len(voices), dtype=object),
        "text": pd.Series([None] * len(voices), dtype=object),
        **{name: pd.Series([math.nan] * len(voices), dtype="float64") for name in _NUMBERS},
        "characters": pd.Series([None] * len(voices), dtype="Int64"),
        "error": pd.Series([None] * len(voices), dtype=object),
    }
    return pd.DataFrame(properties | results)


def seen_at_first(frame: pd.DataFrame) -> list[str]:
    """Return the columns that are visible at first: properties in which voices differ, and results."""
    differ = [name for name in _CHOSEN_BY if len({str(value) for value in frame[name]}) > 1]
    return ["voice", "description", *differ, *_COMPARED]


def cells_of(spoken: Spoken | None) -> dict[str, Any]:
    """Return the values in the row of a voice, before or after it has spoken."""
    if spoken is None:
        return _NOTHING
    return {
        "audio": spoken.clip,
        "text": spoken.text,
        "first_audible_s": spoken.first_audible_s,
        "total_s": spoken.total_s,
        "loudness_lufs": spoken.loudness_lufs,
        "gain_db": spoken.gain_db,
        "characters": spoken.characters,
        "error": spoken.error or None,
    }


_NUMBERS = ("first_audible_s", "total_s", "loudness_lufs", "gain_db")
_NOTHING: dict[str, Any] = {
    "audio": None,
    "text": None,
    **dict.fromkeys(_NUMBERS, math.nan),
    "characters": None,
    "error": None,
}


def asked_for(left: Sequence[tuple[int, str]], *, any_meant: bool) -> str:
    """Label of the button, from the row and sentence of each voice that is still to speak."""
    if not left:
        return "Spoken already" if any_meant else "Speak: mark voices first"
    characters = sum(len(text) for _, text in left)
    return f"Speak: {len(left)} voice{'' if len(left) == 1 else 's'}, {characters:,} characters"


def spoken_so_far(voices: int, failed: int, characters: int) -> str:
    """Return a sentence with the numbers of voices asked, failures and characters sent."""
    if not voices:
        return _COST
    sentences = [f"{voices - failed} spoken.", f"{characters:,} characters in all.", _COST]
    if failed:
        sentences.insert(1, f"{failed} failed: their rows say why.")
    return " ".join(sentences)
