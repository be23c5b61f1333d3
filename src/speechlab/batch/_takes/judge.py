"""The judge of takes: recognizes and measures them, and says what is wrong with each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.audio import AudioClip, to_clip
from speechlab.batch._caller import process_table
from speechlab.batch._plan.parameters import Column
from speechlab.batch._plan.steps import TranscriptionStep
from speechlab.batch._run.progress import show_progress
from speechlab.batch._table.failures import suppress_failure_warnings
from speechlab.batch._takes.sounds import Centers, measure_sound
from speechlab.batch._takes.words import count_faulty_characters, find_word_faults
from speechlab.contract import Language
from speechlab.errors import SpeechLabError
from speechlab.text import get_language_name, parse_primary_language

if TYPE_CHECKING:
    from speechlab.batch._takes.lines import LineTake, ScriptLine
    from speechlab.client import Client

# Silence around a recording that is recognized once more, in seconds.
_PADDING_S = 0.3
# Share of a text that is recognized as something else before the recognizer is asked for the language.
_MOSTLY_WRONG = 0.5
# Seconds of measuring before a bar shows it.
_BAR_DELAY_S = 2.0
_HYPOTHESIS = ("hypothesis", "hypothesis_language", "status", "error")


class SpokenTake(NamedTuple):
    """A take of a line that is not judged yet."""

    line: ScriptLine
    take: LineTake


class Judge:
    """Judges takes by one recognizer, by their sound, and by what is usual for their voice."""

    def __init__(self, recognizer: Client, calling: Mapping[str, Any]) -> None:
        self._recognizer, self._calling = recognizer, calling
        self._centers: Centers | None = None

    def judge_takes(self, spoken: Sequence[SpokenTake]) -> list[LineTake]:
        """Return the takes with what is wrong with each; the first ones make the centers of their voices."""
        if not spoken:
            return []
        sounds, is_shown = [], self._calling["progress"] is True
        with show_progress(
            is_shown, len(spoken), "measure takes", unit="take", delay_s=_BAR_DELAY_S
        ) as advance:
            for line, take in spoken:
                sounds.append(measure_sound(take.audio, line.text, line.language, take.voice))
                advance()
        self._centers = self._centers or Centers(sounds)
        heard = self._recognize([take.audio for _, take in spoken], [line.language for line, _ in spoken])
        judged = [
            replace(self._judge_words(line, take, row), faults=self._centers.find_faults(sound))
            for (line, take), row, sound in zip(spoken, heard, sounds, strict=True)
        ]
        return self._find_wrong_languages(spoken, self._recognize_again(spoken, judged))

    def _recognize_again(self, spoken: Sequence[SpokenTake], judged: list[LineTake]) -> list[LineTake]:
        """Recognize once more what has nothing wrong but words, with silence around it: a recognizer slips, too."""
        doubtful = [at for at, take in enumerate(judged) if take.words and not take.faults]
        lines = [spoken[at].line for at in doubtful]
        sounds = [_pad_with_silence(judged[at].audio) for at in doubtful]
        heard = self._recognize(sounds, [line.language for line in lines])
        for at, line, row in zip(doubtful, lines, heard, strict=True):
            again = self._judge_words(line, judged[at], row)
            if not again.unjudged and _is_better(again, judged[at]):
                judged[at] = again
        return judged

    def _find_wrong_languages(self, spoken: Sequence[SpokenTake], judged: list[LineTake]) -> list[LineTake]:
        """Have the recognizer identify the language of what is mostly wrong: told a language, it hears that one."""
        doubtful = [
            at
            for at, take in enumerate(judged)
            if spoken[at].line.language in set(Language)  # those that a service identifies
            and _count_replaced(take) > _MOSTLY_WRONG * len(spoken[at].line.text)
        ]
        heard = self._recognize([judged[at].audio for at in doubtful], [None] * len(doubtful))
        for at, row in zip(doubtful, heard, strict=True):
            code = row["hypothesis_language"]
            if is_missing(code) or not code:  # a function need not say it
                continue
            if parse_primary_language(code) != spoken[at].line.language:
                fault = f"it is recognized as {get_language_name(str(code))}"
                judged[at] = replace(judged[at], faults=(*judged[at].faults, fault))
        return judged

    def _recognize(self, recordings: Sequence[Any], languages: Sequence[str | None]) -> list[dict[Any, Any]]:
        if not recordings:
            return []
        frame = pd.DataFrame({"audio": recordings, "language": languages}, dtype=object)
        options = {**self._calling, "audio": "audio", "language": Column("language")}
        with suppress_failure_warnings():  # the rows say that they could not be judged
            table = process_table(self._recognizer, TranscriptionStep, frame, options)
        return table[list(_HYPOTHESIS)].to_dict("records")

    def _judge_words(self, line: ScriptLine, take: LineTake, row: Mapping[Any, Any]) -> LineTake:
        if line.problem or is_missing(row["hypothesis"]):
            return replace(take, unjudged=line.problem or f"the recognizer failed: {row['error']}")
        try:
            # a word that a lexicon respells may be recognized in either form
            faults = [
                find_word_faults(text, row["hypothesis"], str(line.language))
                for text in dict.fromkeys((line.text, take.sent or line.text))
            ]
            words = min(faults, key=count_faulty_characters)
        except SpeechLabError as error:
            return replace(take, transcript=row["hypothesis"], unjudged=str(error))
        return replace(take, transcript=row["hypothesis"], words=words)


def _is_better(take: LineTake, other: LineTake) -> bool:
    return count_faulty_characters(take.words) < count_faulty_characters(other.words)


def _count_replaced(take: LineTake) -> int:
    return sum(len(fault.reference) for fault in take.words if fault.hypothesis.strip())


def _pad_with_silence(recording: Any) -> bytes:
    clip = to_clip(recording)
    gap = np.zeros((round(_PADDING_S * clip.sample_rate), *clip.samples.shape[1:]), dtype=np.float32)
    return AudioClip(np.concatenate([gap, clip.samples, gap]), clip.sample_rate).encode("flac")
