"""Transcripts that exist: replies of vendors as they document them, and files of CTM and subtitles."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from speechlab._files import expand_user_path
from speechlab.errors import InvalidRequestError, SpeechLabError

_TIME_FIELDS = (
    ("start", "end"),
    ("start_time", "end_time"),
    ("startTime", "endTime"),
    ("startOffset", "endOffset"),
    ("from", "to"),
)
# Fields of Azure for the start and the duration, and how many of their units make a second.
_DURATION_FIELDS = (
    ("offsetMilliseconds", "durationMilliseconds", 1_000),
    ("offsetInTicks", "durationInTicks", 10_000_000),
    ("Offset", "Duration", 10_000_000),
)
_FORMS_ALLOWED = (
    "Whisper (also whisper.cpp), OpenAI, Deepgram, ElevenLabs, AssemblyAI, Azure, Google, AWS or a pipeline of "
    "transformers"
)
_SEGMENT_ENDINGS = (".srt", ".vtt", ".ctm", ".stm", ".TextGrid", ".eaf", ".csv", ".tsv")
_EMPTY_VALUES: tuple[object, ...] = (None, "", [])
_ENDINGS = (".json", ".txt", *_SEGMENT_ENDINGS)


def transcript_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Read the transcript in the reply of a recognizer.

    Args:
        reply: The JSON of Whisper (also whisper.cpp), OpenAI, Deepgram, ElevenLabs, AssemblyAI, Azure (fast, batch
            and short audio), Google (v1 and v2), AWS, or a pipeline of transformers, in the documented form.

    Returns:
        ``text``, and what the reply has of ``language``, ``confidence`` (0 to 1), ``segments`` (dicts with ``start``,
        ``end``, ``text``) and ``words`` (dicts with ``word``, ``start``, ``end``, and ``confidence`` or None). Times
        are seconds.

    Raises:
        InvalidRequestError: The reply has none of these forms.

    Example:
        >>> deepgram = {
        ...     "results": {"channels": [{"alternatives": [{"transcript": "hello", "confidence": 0.9}]}]}
        ... }
        >>> transcript_of(deepgram)
        {'text': 'hello', 'confidence': 0.9}
    """
    given: object = reply
    if not isinstance(given, Mapping):
        raise InvalidRequestError(
            f"the reply is {given!r:.40}, not an object of {_FORMS_ALLOWED}", parameter="reply"
        )
    results = reply.get("results")
    for holds, read in (
        (isinstance(results, Mapping) and "channels" in results, _parse_deepgram),
        (isinstance(results, Mapping) and "transcripts" in results, _parse_aws),
        (isinstance(results, list) or "totalBilledTime" in reply, _parse_google),
        ("combinedPhrases" in reply or "phrases" in reply, _parse_azure_fast),
        ("recognizedPhrases" in reply or "combinedRecognizedPhrases" in reply, _parse_azure_batch),
        (bool({"RecognitionStatus", "NBest", "DisplayText"}.intersection(reply)), _parse_azure_short),
        ("transcription" in reply, _parse_whisper_cpp),
        ("text" in reply or "segments" in reply or "chunks" in reply, _parse_whisper),
    ):
        if holds:
            try:
                transcript = read(reply)
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                form = read.__name__.removeprefix("_parse_")
                message = f"the reply is damaged: {type(error).__name__}: {error}; it looks like {form}"
                raise InvalidRequestError(message, parameter="reply") from error
            return {
                name: value
                for name, value in transcript.items()
                if name == "text" or value not in _EMPTY_VALUES
            }
    fields = ", ".join(map(str, list(reply)[:6])) or "none"
    message = f"the reply has the fields {fields}, unlike those of {_FORMS_ALLOWED}"
    raise InvalidRequestError(message, parameter="reply")


def _parse_whisper(reply: Mapping[str, Any]) -> dict[str, Any]:
    timed = reply.get("segments") or [
        {"start": item["timestamp"][0], "end": item["timestamp"][1], "text": item["text"]}
        for item in reply.get("chunks") or ()
        if None not in item["timestamp"]
    ]
    unit = 1_000 if "audio_url" in reply else 1  # AssemblyAI counts milliseconds
    segments, text = [_build_segment(item) for item in timed], reply.get("text")
    words = reply.get("words") or _collect_words(timed)
    timed_words = [_build_word(item, _get_field(item, "word", "text"), unit) for item in words]
    return {
        "text": _join_texts(item["text"] for item in segments) if text is None else str(text).strip(),
        "language": reply.get("language") or reply.get("language_code"),
        "confidence": reply.get("confidence"),
        "segments": segments,
        "words": [word for word in timed_words if word["word"]],  # ElevenLabs has spaces, too
    }


def _parse_whisper_cpp(reply: Mapping[str, Any]) -> dict[str, Any]:
    segments = [_build_segment(item["offsets"], item["text"], 1_000) for item in reply["transcription"]]
    return {
        "text": _join_texts(item["text"] for item in segments),
        "language": _get_field(reply.get("result") or {}, "language"),
        "segments": segments,
    }


def _parse_deepgram(reply: Mapping[str, Any]) -> dict[str, Any]:
    channels = reply["results"]["channels"]
    best = [channel["alternatives"][0] for channel in channels if channel["alternatives"]]
    utterances = reply["results"].get("utterances") or ()
    return {
        "text": _join_texts(alternative["transcript"] for alternative in best),
        "language": _find_first_field(channels, "detected_language"),
        "confidence": _find_confidence(best[0]) if len(best) == 1 else None,
        "segments": [_build_segment(item, item["transcript"]) for item in utterances],
        "words": [
            _build_word(item, _get_field(item, "punctuated_word", "word")) for item in _collect_words(best)
        ],
    }


def _parse_aws(reply: Mapping[str, Any]) -> dict[str, Any]:
    results = reply["results"]
    items = [{**item, **item["alternatives"][0]} for item in results.get("items") or ()]
    return {
        "text": _join_texts(item["transcript"] for item in results["transcripts"]),
        "language": results.get("language_code"),
        "segments": [
            _build_segment(item, item["transcript"]) for item in results.get("audio_segments") or ()
        ],
        "words": [_build_word(item, item["content"]) for item in items if item.get("start_time") is not None],
    }


def _parse_google(reply: Mapping[str, Any]) -> dict[str, Any]:
    results = [item for item in reply.get("results") or () if item.get("alternatives")]
    best = [item["alternatives"][0] for item in results]
    return {
        "text": _join_texts(alternative.get("transcript", "") for alternative in best),
        "language": _find_first_field(results, "languageCode", "language_code"),
        "confidence": _find_confidence(best[0]) if len(best) == 1 else None,
        "words": [_build_word(item, item["word"]) for item in _collect_words(best)],
    }


def _parse_azure_fast(reply: Mapping[str, Any]) -> dict[str, Any]:
    phrases = reply.get("phrases") or ()
    return {
        "text": _join_texts(phrase["text"] for phrase in reply.get("combinedPhrases") or phrases),
        "language": _find_first_field(phrases, "locale"),
        "segments": [_build_segment(phrase) for phrase in phrases],
        "words": [_build_word(word, word["text"]) for word in _collect_words(phrases)],
    }


def _parse_azure_batch(reply: Mapping[str, Any]) -> dict[str, Any]:
    phrases = [phrase for phrase in reply.get("recognizedPhrases") or () if phrase.get("nBest")]
    best = [phrase["nBest"][0] for phrase in phrases]
    return {
        "text": _join_texts(phrase["display"] for phrase in reply.get("combinedRecognizedPhrases") or best),
        "language": _find_first_field(phrases, "locale"),
        "segments": [_build_segment(phrase, phrase["nBest"][0]["display"]) for phrase in phrases],
        "words": [_build_word(word, word["word"]) for word in _collect_words(best)],
    }


def _parse_azure_short(reply: Mapping[str, Any]) -> dict[str, Any]:
    if reply.get("RecognitionStatus") == "Error":
        raise ValueError("Azure answered with an error")
    best = (reply.get("NBest") or [{}])[0]
    return {
        "text": str(reply.get("DisplayText") or best.get("Display") or "").strip(),
        "confidence": best.get("Confidence"),
        "words": [_build_word(item, item["Word"]) for item in best.get("Words") or ()],
    }


def _get_field(value: Any, *names: str) -> Any:
    """Return the first of these fields that a dict or an object has."""
    for name in names:
        field = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if field is not None:
            return field
    return None


def _find_first_field(items: Iterable[Any], *names: str) -> Any:
    """Return the first of these fields that is filled in one of several items."""
    return next(filter(None, (_get_field(item, *names) for item in items)), None)


def _collect_words(items: Iterable[Any]) -> list[Any]:
    """Return the words of several items, such as segments."""
    return [word for item in items for word in _get_field(item, "words") or ()]


def _build_segment(value: Any, text: object = None, per_s: int = 1) -> dict[str, Any]:
    start, end = _parse_times(value, per_s)
    return {"start": start, "end": end, "text": str(text or _get_field(value, "text") or "").strip()}


def _build_word(value: Any, text: object, per_s: int = 1) -> dict[str, Any]:
    start, end = _parse_times(value, per_s)
    return {"word": str(text).strip(), "start": start, "end": end, "confidence": _find_confidence(value)}


def _find_confidence(value: Any) -> float | None:
    sure = _get_field(value, "confidence", "probability", "score")
    return None if sure is None else float(sure)


def _parse_times(value: Any, per_s: int) -> tuple[float, float]:
    """Start and end in seconds, of numbers of which ``per_s`` make a second; those of Azure say so themselves."""
    for first, last in _TIME_FIELDS:
        if (end := _get_field(value, last)) is not None:
            return _parse_seconds(_get_field(value, first) or 0.0) / per_s, _parse_seconds(end) / per_s
    for first, length, units in _DURATION_FIELDS:
        if (lasts := _get_field(value, length)) is not None:
            start = float(_get_field(value, first)) / units
            return start, start + float(lasts) / units
    raise KeyError("start, end")


def _parse_seconds(value: Any) -> float:
    """Seconds, as a number, a text of a number, or Google's ``"1.300s"``."""
    return float(value.removesuffix("s")) if isinstance(value, str) else float(value)


def _join_texts(texts: Iterable[object]) -> str:
    from speechlab.text import join_texts

    return join_texts([" ".join(str(text).split()) for text in texts])


def transcripts_in(path: str | os.PathLike[str]) -> dict[str, str]:
    r"""Read the transcripts of a file or folder.

    Args:
        path: A file with the transcripts of several recordings (``.ctm``, ``.stm``, or a table of segments
            with a column ``file``), or a folder with a file for each recording: a reply as of
            :func:`transcript_of` (``.json``), subtitles, or plain text (``.txt``).

    Returns:
        The texts by the name of the recording, without its folder and ending.

    Raises:
        InvalidRequestError: The path does not exist, or a file cannot be read.

    Example:
        >>> _ = Path("s1-001.txt").write_text("good morning\n")
        >>> transcripts_in("s1-001.txt")
        {'s1-001': 'good morning'}
    """
    where = expand_user_path(path)
    files = (
        sorted(path_in for path_in in where.iterdir() if path_in.suffix in _ENDINGS)
        if where.is_dir()
        else [where]
    )
    if not files or not where.exists():
        message = f"{where} has no transcripts; give a file or folder of {', '.join(_ENDINGS)}"
        raise InvalidRequestError(message, parameter="transcripts")
    texts: dict[str, str] = {}
    for file in files:
        try:
            texts |= _READERS.get(file.suffix, _read_segment_file)(file)
        except (OSError, ValueError, SpeechLabError) as error:
            raise InvalidRequestError(
                f"{file} cannot be read as a transcript: {error}", parameter="transcripts"
            ) from error
    return texts


def _read_json_file(file: Path) -> dict[str, str]:
    reply = orjson.loads(file.read_bytes())
    if not isinstance(reply, dict):
        raise ValueError(f"it is a JSON {type(reply).__name__}, not an object")  # noqa: TRY004 - told as the others
    return {file.stem: transcript_of(reply)["text"]}


def _read_text_file(file: Path) -> dict[str, str]:
    return {file.stem: " ".join(file.read_text("utf-8-sig").split())}


def _read_segment_file(file: Path) -> dict[str, str]:
    from speechlab import segments

    table = segments.read(file)
    names = table["file"].astype("string").fillna("").tolist()
    texts_of: dict[str, list[str]] = {}
    for name, text in zip(names, table["text"].astype("string").fillna("").tolist(), strict=True):
        base = "" if file.suffix in {".srt", ".vtt"} else name.replace("\\", "/").rpartition("/")[2]
        texts_of.setdefault(base or file.stem, []).append(text)
    return {name: _join_texts(pieces) for name, pieces in texts_of.items()}


_READERS = {".json": _read_json_file, ".txt": _read_text_file}
