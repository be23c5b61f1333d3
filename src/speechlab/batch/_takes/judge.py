"""The judge of takes: recognizes and measures them, and says what is wrong with each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._pandas import pd
from speechlab.audio import AudioClip, to_clip
from speechlab.batch._outcome import UNRECOGNIZED, suppress_failure_warnings
from speechlab.batch._plan.parameters import Column
from speechlab.batch._plan.steps import TranscriptionStep
from speechlab.batch._process import process_table
from speechlab.batch._run.progress import show_progress
from speechlab.batch._takes.lines import (
    LineTake,
    ScriptLine,
    count_faulty_characters,
    find_word_faults,
)
from speechlab.batch._takes.sounds import Centers, measure_sound
from speechlab.contract import Language
from speechlab.errors import SpeechLabError
from speechlab.text import get_language_name, parse_primary_language

if TYPE_CHECKING:
    from speechlab.client import Client

# Silence around a recording that is recognized once more, in seconds.
_PADDING_S = 0.3
# Languages that services identify.
_IDENTIFIED = frozenset[str](Language)
# Share of a text that is recognized as something else before the recognizer is asked for the language.
_MOSTLY_WRONG = 0.5
_NO_LANGUAGE = "its language is not known; give language='en', or a column of languages"
# Seconds of measuring before a bar shows it.
_BAR_DELAY_S = 2.0


class Judge:
    """Judges takes by one recognizer, by their sound, and by what is usual for their voice."""

    def __init__(self, recognizer: Client, calling: Mapping[str, Any]) -> None:
        self._recognizer, self._calling = recognizer, calling
        self._centers: Centers | None = None

    def judge_takes(self, spoken: Sequence[tuple[ScriptLine, LineTake]]) -> None:
        """Give lines their takes, with what is wrong with each; the first ones make the centers of their voices."""
        sounds, is_shown = [], self._calling["progress"] is True
        with show_progress(
            is_shown, len(spoken), "measure takes", unit="take", delay_s=_BAR_DELAY_S
        ) as advance:
            for line, take in spoken:
                sounds.append(measure_sound(take.audio, line.text, line.language, take.voice))
                advance()
        self._centers = self._centers or Centers(sounds)
        heard = self._recognize([take.audio for _, take in spoken], [line.language for line, _ in spoken])
        for (line, take), sound, row in zip(spoken, sounds, heard, strict=True):
            faults = self._centers.find_faults(sound)
            line.takes.append(_compare_words(line, replace(take, faults=faults), row))
        doubtful = [line for line, _ in spoken if line.takes[-1].words and not line.takes[-1].faults]
        self._recognize_again(doubtful)

    def _recognize_again(self, lines: Sequence[ScriptLine]) -> None:
        """Recognize last takes with silence around them: a recognizer slips, too.

        Where most is wrong, it is asked for the language: told one, it hears that one.
        """
        languages = [None if _is_mostly_wrong(line) else line.language for line in lines]
        sounds = [_pad_with_silence(line.takes[-1].audio) for line in lines]
        heard = self._recognize(sounds, languages)
        for line, asked, row in zip(lines, languages, heard, strict=True):
            take, code = line.takes[-1], row["hypothesis_language"]
            again = _compare_words(line, take, row)
            own = parse_primary_language(line.language or "")
            if asked is None and code and parse_primary_language(code) != own:
                again = replace(take, faults=(f"it is recognized as {get_language_name(code)}",))
            if again.faults or (not again.unjudged and again.rank < take.rank):
                line.takes[-1] = again

    def _recognize(self, recordings: Sequence[Any], languages: Sequence[str | None]) -> list[dict[Any, Any]]:
        if not recordings:
            return []
        frame = pd.DataFrame({"audio": recordings, "language": languages}, dtype=object)
        options = {**self._calling, "audio": "audio", "language": Column("language")}
        with suppress_failure_warnings():  # the rows say that they could not be judged
            table = process_table(self._recognizer, TranscriptionStep, frame, options)
        cells = table[["hypothesis", "hypothesis_language", "error"]].astype(object)
        return cells.where(cells.notna(), None).to_dict("records")


def _compare_words(line: ScriptLine, take: LineTake, row: Mapping[Any, Any]) -> LineTake:
    """Return a take with what was recognized, which of a word that a lexicon respells may be either form."""
    hypothesis = row["hypothesis"]
    if line.language is None:
        return replace(take, transcript=hypothesis, unjudged=_NO_LANGUAGE)
    if hypothesis is None:
        return replace(take, unjudged=f"{UNRECOGNIZED}{row['error']}")
    forms = dict.fromkeys((line.text, take.sent or line.text))
    try:
        faults = [find_word_faults(text, hypothesis, line.language) for text in forms]
        respelled = find_word_faults(line.text, take.sent or line.text, line.language)
    except SpeechLabError as error:
        return replace(take, transcript=hypothesis, unjudged=str(error))
    words = min(faults, key=count_faulty_characters)
    known = " ".join(f"{fault.reference} {fault.hypothesis}" for fault in respelled).casefold()
    is_neither = bool(words) and all(
        fault.reference.strip() and fault.hypothesis.strip() and fault.reference.casefold().strip() in known
        for fault in words
    )
    why = "a word of the lexicon is written in neither form" if is_neither else ""
    return replace(take, transcript=hypothesis, words=words, unjudged=why)


def _is_mostly_wrong(line: ScriptLine) -> bool:
    """Return whether most of a last take is recognized as other words, in a language that services identify."""
    replaced = sum(len(fault.reference) for fault in line.takes[-1].words if fault.hypothesis.strip())
    is_identified = parse_primary_language(line.language or "") in _IDENTIFIED
    return is_identified and replaced > _MOSTLY_WRONG * len(line.text)


def _pad_with_silence(recording: Any) -> bytes:
    clip = to_clip(recording)
    gap = np.zeros((round(_PADDING_S * clip.sample_rate), *clip.samples.shape[1:]), dtype=np.float32)
    return AudioClip(np.concatenate([gap, clip.samples, gap]), clip.sample_rate).encode("flac")
