"""Voices of a study: which were chosen, and which texts each of them speaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from speechlab.contract import Voice
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._arguments import NO_LANGUAGE, code_or_none
from speechlab.text import languages_in, primary_language

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.client import VoiceCatalogue


def speaks(voice: Voice, language: str) -> bool:
    """Return whether a voice's free-text ``language`` names a language code."""
    return primary_language(language) in languages_in(voice.language)


def voice_name(voice: Voice) -> str:
    """Return a short name: what a description ends with in brackets, or else what it begins with."""
    return voice.short_name


def chosen_voices(catalogue: VoiceCatalogue, voices: object) -> list[Voice]:
    """Return the voices that were asked for: one or several, by themselves, their ids or names; None for all.

    Raises:
        InvalidRequestError: Something is no voice.
    """
    if voices is None:
        return list(catalogue)
    several = isinstance(voices, Iterable) and not isinstance(voices, str | Voice)
    chosen: list[Voice] = []
    for voice in voices if several else [voices]:  # type: ignore[attr-defined]
        if not isinstance(voice, str | Voice):
            message = f"voices holds {voice!r}; give voices of the catalogue, or their ids or names"
            raise InvalidRequestError(message, parameter="voices")
        chosen.append(catalogue[voice] if isinstance(voice, str) else voice)
    return chosen


def engines_of(
    catalogue: VoiceCatalogue, ids: pd.Series[str], engines: Mapping[str, str] | None
) -> pd.Series[str]:
    """The engine of each voice: what was given, or what stands before a colon in its short name, or nothing.

    Raises:
        InvalidRequestError: An engine was given for what is no voice.
    """
    shorts = {voice.id: voice.short_name for voice in catalogue}
    named = {name: short.partition(":")[0].strip() for name, short in shorts.items() if ":" in short}
    given = {catalogue[name].id: engine for name, engine in (engines or {}).items()}
    return ids.map(named | given).astype("string").fillna("")


def cross(frame: pd.DataFrame, catalogue: VoiceCatalogue, voices: object, language: str) -> pd.DataFrame:
    """Every text with every voice that speaks its language; texts that none speaks stand alone, with the reason."""
    import pandas as pd

    chosen = chosen_voices(catalogue, voices)
    # plain lists, because an index may hold a label twice
    codes = [code_or_none(value) for value in frame[language]]
    parts = []
    heard = [False] * len(frame)
    for voice in chosen:
        fits = [code is not None and speaks(voice, code) for code in codes]
        heard = [one or other for one, other in zip(heard, fits, strict=True)]
        parts.append(frame[fits].assign(voice=voice.id, voice_name=voice_name(voice), gender=voice.gender))
    if not any(heard):
        known = ", ".join(sorted({voice.language for voice in chosen})) or "none"
        message = f"no voice speaks a language of these texts; the voices speak: {known}"
        raise InvalidRequestError(message, parameter="voices")
    why = [NO_LANGUAGE if code is None else "none of the voices speaks this language" for code in codes]
    mute = [not one for one in heard]
    alone = frame.assign(voice=None, voice_name=None, gender=None, why=why)[mute]
    return pd.concat([*parts, alone], ignore_index=True)
