"""What voices say: one call to a voice, and a catalogue as a table with the results of such calls."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._pandas import pd
from speechlab.audio import AudioClip
from speechlab.batch import Arrivals, time_call_with_retries
from speechlab.display import format_count
from speechlab.errors import APIConnectionError, APIError, BadRequestError
from speechlab.metrics import loudness
from speechlab.text import ANY_LANGUAGE, list_language_codes
from speechlab.widgets._shared.sounds import LEVEL_LUFS, PEAK

if TYPE_CHECKING:
    from speechlab.client import Client, SpeechClip, SpeechStream
    from speechlab.contract import Voice
    from speechlab.widgets._stream.stream import StreamPlayer

_STREAM_FORMATS = ("wav", "pcm")
_FILE_FORMATS = ("wav", "flac", "pcm", "ogg", "mp3")
_TIMEOUT_S = 60.0
_MAX_WORDS = 300
# Columns of what a voice has said, and their types.
_RESULT_COLUMNS = {
    "audio": "object",
    "text": "object",
    "first_audible_s": "float64",
    "total_s": "float64",
    "loudness_lufs": "float64",
    "gain_db": "float64",
    "characters": "Int64",
    "error": "object",
}
_CHOICE_COLUMNS = ("languages", "gender", "streaming", "formats")
_COMPARISON_COLUMNS = ("first_audible_s", "characters")
_COST_NOTE = "The embedded service is free; others may bill characters."

# The same question in each language; from the prompts of ``sl.datasets``.
SAMPLES: Mapping[str, str] = {
    "ja": "すみません、この近くに郵便局はありますか。",
    "en": "Excuse me, is there a post office anywhere near here?",
    "zh": "您好，请问这附近有没有邮局？",
}


@dataclass(frozen=True, slots=True)
class SpeechResult:
    """The result of a call to a voice."""

    text: str
    clip: AudioClip | None = None  # as received; None after an error
    first_audible_s: float = math.nan  # from the call until a player reaches the first sound
    total_s: float = math.nan
    loudness_lufs: float = math.nan  # ITU-R BS.1770-4; NaN for silence and for less than 0.4 s
    gain_db: float = math.nan  # to ``LEVEL_LUFS`` without clipping; 0 if the loudness is unknown
    error: str = ""
    words: str = ""  # the error in the words of the service alone
    gone: bool = False  # the service could not be reached, so that its other voices would fail too
    played: bool = False  # a player of the stream played it while it was made

    @property
    def characters(self) -> int | None:
        """Number of spoken characters, as services count them; None if nothing was spoken."""
        return None if self.clip is None else len(self.text)

    def to_clip(self, *, level: bool) -> AudioClip | None:
        """Return the clip, at the common loudness on request."""
        if self.clip is None or not level:
            return self.clip
        gain = np.float32(10 ** (self.gain_db / 20))
        title = getattr(self.clip, "voice", None) or self.clip.title
        return AudioClip(self.clip.samples * gain, self.clip.sample_rate, title)


class StoppedError(Exception):
    """The call was stopped, because the sentence is no longer needed."""


def speak_sentence(
    lab: Client,
    voice: Voice,
    text: str,
    stopped: Callable[[], bool],
    play: Callable[[SpeechStream], StreamPlayer] | None = None,
) -> SpeechResult:
    """Have a sentence spoken, with a player if ``play`` makes one. Errors of the service are texts of the result."""
    formats = set(map(str, voice.formats))
    streamed = next((name for name in _STREAM_FORMATS if name in formats), None) if voice.streaming else None
    options: dict[str, Any] = {"voice": voice, "timeout": _TIMEOUT_S}

    def check_stopped() -> None:
        if stopped():
            raise StoppedError

    def stream_or_synthesize(arrivals: Arrivals) -> SpeechClip:
        if streamed is not None:
            # A provider may stream other formats only. A refused request costs nothing.
            with (
                contextlib.suppress(BadRequestError),
                lab.stream_speech(text, format=streamed, **options) as stream,
            ):
                return arrivals.read_stream(stream, check_stopped)
        return lab.synthesize(
            text, format=next((name for name in _FILE_FORMATS if name in formats), "wav"), **options
        )

    if play is not None and streamed is not None:
        player = play(lab.stream_speech(text, format=streamed, **options))
        try:
            clip: AudioClip = player.wait()
        except BadRequestError:
            pass  # as above
        except Exception as error:  # noqa: BLE001 - the row gets the error
            return _build_failed_result(text, error)
        else:
            if player.state == "stopped":
                raise StoppedError
            return _build_result(text, clip, player.times, played=True)
    call = time_call_with_retries(stream_or_synthesize, patience_s=0)
    if call.result is None:
        return _build_failed_result(text, call.error)
    return _build_result(text, call.result, call.to_columns())


def _build_result(text: str, clip: AudioClip, times: dict[str, Any], *, played: bool = False) -> SpeechResult:
    level_lufs, first_s = loudness(clip.to_mono()), times.get("first_audible_s")
    gain_db = 0.0
    if not math.isnan(level_lufs) and clip.peak:
        gain_db = min(LEVEL_LUFS - level_lufs, 20 * math.log10(PEAK / clip.peak))
    first_s = math.nan if first_s is None else first_s
    return SpeechResult(text, clip, first_s, times["total_s"], level_lufs, gain_db, played=played)


def _build_failed_result(text: str, error: Exception | None) -> SpeechResult:
    alone = str(error.args[0]) if isinstance(error, APIError) and error.args else str(error)
    unreachable = type(error) is APIConnectionError and not error.possibly_metered
    return SpeechResult(text, error=_shorten_text(str(error)), words=_shorten_text(alone), gone=unreachable)


def _shorten_text(words: str) -> str:
    return words if len(words) <= _MAX_WORDS else words[: _MAX_WORDS - 1] + "…"


def list_voice_languages(voice: Voice) -> list[str]:
    """Return the codes of a voice's languages, in the order in which the catalogue names them."""
    tag = voice.language.casefold()
    codes = [code for code in list_language_codes(voice.language) if len(code) <= 3 and tag != ANY_LANGUAGE]
    codes.sort(key=lambda code: (tag.find(code) < 0, tag.find(code), code))
    return codes or [voice.language]


def choose_sample_sentence(voice: Voice) -> str:
    """Return the sample sentence of a voice: in the first of its languages that has one, else in English."""
    return next((SAMPLES[code] for code in list_voice_languages(voice) if code in SAMPLES), SAMPLES["en"])


def build_voice_frame(voices: Sequence[Voice]) -> pd.DataFrame:
    """Return one row for each voice, with empty columns for its future results."""
    properties = {
        "voice": [voice.short_name for voice in voices],
        "description": [voice.description for voice in voices],
        "languages": [list_voice_languages(voice) for voice in voices],
        "gender": pd.Categorical([str(voice.gender) for voice in voices]),
        "streaming": [voice.streaming for voice in voices],
        "formats": [list(map(str, voice.formats)) for voice in voices],
        "sample_rates": [list(map(str, voice.sample_rates or ())) for voice in voices],
        "id": [voice.id for voice in voices],
    }
    results = {
        name: pd.Series([_get_missing_value(kind)] * len(voices), dtype=kind)
        for name, kind in _RESULT_COLUMNS.items()
    }
    return pd.DataFrame(properties | results)


def choose_visible_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns that are visible at first: properties in which voices differ, and results."""
    differ = [name for name in _CHOICE_COLUMNS if len({str(value) for value in frame[name]}) > 1]
    return ["voice", "description", *differ, *_COMPARISON_COLUMNS]


def to_result_cells(spoken: SpeechResult | None) -> dict[str, Any]:
    """Return the values in the row of a voice, before or after it has spoken."""
    cells = {name: getattr(spoken, name, _get_missing_value(kind)) for name, kind in _RESULT_COLUMNS.items()}
    return cells if spoken is None else {**cells, "audio": spoken.clip, "error": spoken.error or None}


def _get_missing_value(kind: str) -> float | None:
    return math.nan if kind == "float64" else None


def format_button_label(left: Sequence[tuple[int, str]], *, any_meant: bool) -> str:
    """Label of the button, from the row and sentence of each voice that is still to speak."""
    if not left:
        return "Spoken already" if any_meant else "Speak: mark voices first"
    characters = sum(len(text) for _, text in left)
    return f"Speak: {format_count(len(left), 'voice')}, {characters:,} characters"


def describe_results(now: Sequence[SpeechResult | None], done: Sequence[tuple[int, str]]) -> str:
    """Return a sentence on the results that are shown, with the characters of all that were spoken."""
    results = [result for result in now if result is not None]
    if not results:
        return _COST_NOTE
    failed = sum(result.clip is None for result in results)
    characters = sum(len(text) for _, text in done)
    sentences = [f"{len(results) - failed} spoken.", f"{characters:,} characters in all.", _COST_NOTE]
    if failed:
        sentences.insert(1, f"{failed} failed: their rows say why.")
    return " ".join(sentences)
