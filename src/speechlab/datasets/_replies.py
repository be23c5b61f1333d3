"""Transcripts in the replies of vendors, as they document them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from speechlab._traces import warn_user
from speechlab.datasets._jobs import check_job_finished, unwrap_google_result
from speechlab.errors import InvalidRequestError
from speechlab.tables import HELD_ROWS, has_unsplit_rows

_TIME_FIELDS = (
    ("start", "end"),
    ("start_time", "end_time"),
    ("startTime", "endTime"),
    ("startOffset", "endOffset"),
    ("from", "to"),
)
_STARTS_LEFT_OUT = ("startTime", "start_time", "startOffset", "from")
# Fields of Azure for the start and the duration, and how many of their units make a second.
_DURATION_FIELDS = (
    ("offsetMilliseconds", "durationMilliseconds", 1_000),
    ("offsetInTicks", "durationInTicks", 10_000_000),
    ("Offset", "Duration", 10_000_000),
)
_FORMS_ALLOWED = (
    "Whisper (also whisper.cpp), OpenAI, Deepgram, ElevenLabs, AssemblyAI, Azure, Google, AWS, Speechmatics or a "
    "pipeline of transformers"
)
_EMPTY_VALUES: tuple[object, ...] = (None, "", [])
# Mean length of words in seconds beyond which their times are in another unit.
_SLOWEST_WORD_S = 30.0
# The same of segments, and of their letters.
_SLOWEST_SEGMENT_S, _SLOWEST_LETTER_S = 120.0, 5.0


def transcript_of(reply: Mapping[str, Any], *, unit: str | None = None) -> dict[str, Any]:
    """Read the transcript in the reply of a recognizer.

    Args:
        reply: The JSON of Whisper (also whisper.cpp), OpenAI, Deepgram, ElevenLabs, AssemblyAI, Azure (fast, batch
            and short audio), Google (v1 and v2), AWS, Speechmatics, or a pipeline of transformers, as documented.
        unit: Unit of its times, ``"s"`` or ``"ms"``; None for the one that its form has.

    Returns:
        ``text``, and what the reply has of ``language``, ``confidence`` (0 to 1), ``segments`` (dicts with ``start``,
        ``end``, ``text``) and ``words`` (dicts with ``word``, ``start``, ``end``, and ``confidence`` or None). Times
        are seconds, or None where the reply has none.

    Raises:
        InvalidRequestError: The reply has none of these forms, or its job failed or is not finished, or its times
            cannot be in the unit of its form.

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
    if unit not in (None, "s", "ms"):
        raise InvalidRequestError(f"unit={unit!r:.40} is not 's' or 'ms'", parameter="unit")
    check_job_finished(reply)
    reply = unwrap_google_result(reply)
    vendor, read = _choose_vendor_reader(reply)
    try:
        transcript = read(reply)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        message = f"the reply is damaged: {_describe_fault(error)}; it looks like one of {vendor}"
        raise InvalidRequestError(message, parameter="reply") from error
    if has_unsplit_rows(transcript["text"]):
        message = f"the text {transcript['text']!r:.60} {HELD_ROWS}; ask the vendor for JSON"
        raise InvalidRequestError(message, parameter="reply")
    transcript["words"] = _drop_repeated_half(transcript.get("words") or [], transcript["text"])
    _normalize_confidences(transcript)
    _convert_times_to_seconds(transcript, reply, unit)
    return {name: value for name, value in transcript.items() if name == "text" or value not in _EMPTY_VALUES}


def _choose_vendor_reader(
    reply: Mapping[str, Any],
) -> tuple[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
    """Return the vendor of a reply, and the function that reads it."""
    results = reply.get("results")
    for holds, vendor, read in (
        (isinstance(results, Mapping) and "channels" in results, "Deepgram", _parse_deepgram),
        (isinstance(results, Mapping) and "transcripts" in results, "AWS", _parse_aws),
        (isinstance(results, list) or "totalBilledTime" in reply, "Google", _parse_google),
        ("combinedPhrases" in reply or "phrases" in reply, "Azure's fast transcription", _parse_azure_fast),
        (
            "recognizedPhrases" in reply or "combinedRecognizedPhrases" in reply,
            "Azure's batch transcription",
            _parse_azure_batch,
        ),
        (
            bool({"RecognitionStatus", "NBest", "DisplayText"}.intersection(reply)),
            "Azure",
            _parse_azure_short,
        ),
        ("transcription" in reply, "whisper.cpp", _parse_whisper_cpp),
        ("text" in reply or "segments" in reply or "chunks" in reply, "Whisper", _parse_whisper),
    ):
        if holds:
            return vendor, read
    fields = ", ".join(map(str, list(reply)[:6])) or "none"
    message = f"the reply has the fields {fields}, unlike those of {_FORMS_ALLOWED}"
    raise InvalidRequestError(message, parameter="reply")


def _describe_fault(error: Exception) -> str:
    """Return what a reply lacks, without Python's names."""
    if isinstance(error, KeyError):
        return f"a part of it has no field {error.args[0]!r}"
    if isinstance(error, IndexError):
        return "a list in it is empty"
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        return str(error)
    return "a field of it holds another kind of value"


def _drop_repeated_half(words: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Words without a first half that the second repeats, with its speakers, while the text has them once."""
    half, rest = divmod(len(words), 2)
    texts = [word["word"] for word in words]
    if rest or not half or texts[:half] != texts[half:]:
        return words
    length, spoken = sum(map(len, texts)), len("".join(text.split()))
    return words[half:] if abs(length / 2 - spoken) < abs(length - spoken) else words


def _normalize_confidences(transcript: dict[str, Any]) -> None:
    """Make confidences numbers from 0 to 1; warn of others, which become missing."""
    strange: list[Any] = []

    def to_confidence(value: Any) -> float | None:
        try:
            number = math.nan if value is None or isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.inf
        if not 0 <= number <= 1:
            strange.extend([value] if number == number else [])
            return None
        return number

    transcript["confidence"] = to_confidence(transcript.get("confidence"))
    for word in transcript["words"]:
        word["confidence"] = to_confidence(word["confidence"])
    if strange:
        message = f"{len(strange):,} confidences are not between 0 and 1, and left out: {strange[0]!r:.40}"
        warn_user(message, stacklevel=4)


def _convert_times_to_seconds(transcript: dict[str, Any], reply: Mapping[str, Any], unit: str | None) -> None:
    """Bring times to seconds. Those of a form without a unit of its own are in seconds, if they can be."""
    timed = [*transcript.get("segments", ()), *transcript["words"]]
    if transcript.pop("has_unit", True):
        return
    if unit is None:
        ends = [item["end"] for item in timed if item["end"] is not None]
        length = reply.get("duration", reply.get("audio_duration"))
        is_known = isinstance(length, (int, float)) and not isinstance(length, bool) and length > 0
        lengths = [
            item["end"] - item["start"]
            for item in transcript["words"]
            if None not in (item["end"], item["start"])
        ]
        is_slow = len(lengths) > 0 and sum(lengths) / len(lengths) > _SLOWEST_WORD_S
        lengths = [
            item["end"] - item["start"]
            for item in transcript["segments"]
            if None not in (item["end"], item["start"])
        ]
        is_slow |= sum(lengths) > max(
            _SLOWEST_SEGMENT_S * len(lengths), _SLOWEST_LETTER_S * len(transcript["text"])
        )
        if is_slow or (is_known and ends and max(ends) > 10 * length):
            message = (
                f"the times of the reply go to {max(ends):.10g}, which cannot be seconds; say their unit: "
                "unit='ms' for milliseconds, or unit='s'"
            )
            raise InvalidRequestError(message, parameter="unit")
    elif unit == "ms":
        for item in timed:
            for name in ("start", "end"):
                item[name] = None if item[name] is None else item[name] / 1_000


def _parse_whisper(reply: Mapping[str, Any]) -> dict[str, Any]:
    timed = reply.get("segments") or [
        {**dict(zip(("start", "end"), item.get("timestamp") or (), strict=False)), "text": item["text"]}
        for item in reply.get("chunks") or ()
    ]
    in_ms = "audio_url" in reply  # AssemblyAI counts milliseconds
    segments, text = [_build_segment(item) for item in timed], reply.get("text")
    if text is None and not timed and not isinstance(reply.get("segments", reply.get("chunks")), list):
        raise ValueError("its text is null")
    if not isinstance(text, str | None):
        raise TypeError
    words = reply.get("words") or _collect_words(timed)
    timed_words = [
        _build_word(item, _get_first_present_field(item, "word", "text"), 1_000 if in_ms else 1)
        for item in words
        if _get_first_present_field(item, "type") != "audio_event"  # ElevenLabs': no words of its text
    ]
    return {
        "text": join_pieces(item["text"] for item in segments) if text is None else text.strip(),
        "language": reply.get("language") or reply.get("language_code"),
        "confidence": reply.get("confidence"),
        "segments": segments,
        "words": [word for word in timed_words if word["word"]],  # ElevenLabs has spaces, too
        "has_unit": in_ms,
    }


def _parse_whisper_cpp(reply: Mapping[str, Any]) -> dict[str, Any]:
    segments = [
        _build_segment(item.get("offsets") or {}, item["text"], 1_000) for item in reply["transcription"]
    ]
    return {
        "text": join_pieces(item["text"] for item in segments),
        "language": _get_first_present_field(reply.get("result") or {}, "language"),
        "segments": segments,
    }


def _parse_deepgram(reply: Mapping[str, Any]) -> dict[str, Any]:
    channels = reply["results"]["channels"]
    best = [channel["alternatives"][0] for channel in channels if channel.get("alternatives")]
    utterances = reply["results"].get("utterances") or ()
    return {
        "text": join_pieces(alternative["transcript"] for alternative in best),
        "language": _find_first_filled_field(channels, "detected_language"),
        "confidence": best[0].get("confidence") if len(best) == 1 else None,
        "segments": [_build_segment(item, item["transcript"]) for item in utterances],
        "words": [
            _build_word(item, _get_first_present_field(item, "punctuated_word", "word"))
            for item in _collect_words(best)
        ],
    }


def _parse_aws(reply: Mapping[str, Any]) -> dict[str, Any]:
    results = reply["results"]
    items = [{**item, **item["alternatives"][0]} for item in results.get("items") or ()]
    return {
        "text": join_pieces(item["transcript"] for item in results["transcripts"]),
        "language": results.get("language_code"),
        "segments": [
            _build_segment(item, item["transcript"]) for item in results.get("audio_segments") or ()
        ],
        "words": [_build_word(item, item["content"]) for item in items if item.get("type") != "punctuation"],
    }


def _parse_google(reply: Mapping[str, Any]) -> dict[str, Any]:
    results = [item for item in reply.get("results") or () if item.get("alternatives")]
    final = [item for item in results if item.get("final", item.get("isFinal")) is not False]
    if results and not final:
        raise ValueError("all of its results are interim ones")
    best = [item["alternatives"][0] for item in final]
    if any("content" in alternative for alternative in best):
        return _parse_speechmatics(reply, final)
    if best and not any(
        not alternative or {"transcript", "words"} & alternative.keys() for alternative in best
    ):
        raise KeyError("transcript")
    texts = [str(alternative.get("transcript") or "") for alternative in best]
    # With speakers, the last result repeats all words, and often the text.
    if len(texts) > 1 and _join_and_remove_spaces(texts[:-1]) == _join_and_remove_spaces(texts[-1:]):
        texts.pop()
    return {
        "text": join_pieces(texts),
        "language": _find_first_filled_field(results, "languageCode", "language_code"),
        "confidence": best[0].get("confidence") if len(best) == 1 else None,
        "words": [_build_word(item, item["word"]) for item in _collect_words(best)],
    }


def _parse_speechmatics(reply: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    between = str((reply.get("metadata") or {}).get("language_pack_info", {}).get("word_delimiter", " "))
    parts = [{**item, **item["alternatives"][0]} for item in items]
    return {
        "text": "".join(
            f"{'' if part.get('attaches_to') == 'previous' else between}{part['content']}" for part in parts
        ).strip(),
        "words": [_build_word(part, part["content"]) for part in parts if part.get("type") != "punctuation"],
    }


def _join_and_remove_spaces(texts: Sequence[str]) -> str:
    return "".join("".join(texts).split())


def _parse_azure_fast(reply: Mapping[str, Any]) -> dict[str, Any]:
    phrases = reply.get("phrases") or ()
    return {
        "text": join_pieces(phrase["text"] for phrase in reply.get("combinedPhrases") or phrases),
        "language": _find_first_filled_field(phrases, "locale"),
        "segments": [_build_segment(phrase) for phrase in phrases],
        "words": [_build_word(word, word["text"]) for word in _collect_words(phrases)],
    }


def _parse_azure_batch(reply: Mapping[str, Any]) -> dict[str, Any]:
    phrases = [phrase for phrase in reply.get("recognizedPhrases") or () if phrase.get("nBest")]
    best = [phrase["nBest"][0] for phrase in phrases]
    return {
        "text": join_pieces(phrase["display"] for phrase in reply.get("combinedRecognizedPhrases") or best),
        "language": _find_first_filled_field(phrases, "locale"),
        "segments": [_build_segment(phrase, phrase["nBest"][0]["display"]) for phrase in phrases],
        "words": [_build_word(word, word["word"]) for word in _collect_words(best)],
    }


def _parse_azure_short(reply: Mapping[str, Any]) -> dict[str, Any]:
    if reply.get("RecognitionStatus") == "Error":
        raise ValueError("it is an error")
    best = (reply.get("NBest") or [{}])[0]
    return {
        "text": str(reply.get("DisplayText") or best.get("Display") or "").strip(),
        "confidence": best.get("Confidence"),
        "words": [_build_word(item, item["Word"]) for item in best.get("Words") or ()],
    }


def _get_first_present_field(value: Any, *names: str) -> Any:
    """Return the first of these fields that a dict or an object has."""
    is_mapping = type(value) is dict or isinstance(value, Mapping)
    for name in names:
        field = value.get(name) if is_mapping else getattr(value, name, None)
        if field is not None:
            return field
    return None


def _find_first_filled_field(items: Iterable[Any], *names: str) -> Any:
    """Return the first of these fields that is filled in one of several items."""
    return next(filter(None, (_get_first_present_field(item, *names) for item in items)), None)


def _collect_words(items: Iterable[Any]) -> list[Any]:
    """Return the words of several items, such as segments."""
    return [word for item in items for word in _get_first_present_field(item, "words") or ()]


def _build_segment(value: Any, text: object = None, per_s: int = 1) -> dict[str, Any]:
    start, end = _parse_times(value, per_s)
    return {
        "start": start,
        "end": end,
        "text": str(text or _get_first_present_field(value, "text") or "").strip(),
    }


def _build_word(value: Any, text: object, per_s: int = 1) -> dict[str, Any]:
    start, end = _parse_times(value, per_s)
    sure = _get_first_present_field(value, "confidence", "probability", "score")
    return {"word": "" if text is None else str(text).strip(), "start": start, "end": end, "confidence": sure}


def _parse_times(value: Any, per_s: int) -> tuple[float | None, float | None]:
    """Start and end in seconds, of numbers of which ``per_s`` make a second; those of Azure say so themselves."""
    for first, last in _TIME_FIELDS:
        start, end = _get_first_present_field(value, first), _get_first_present_field(value, last)
        if end is not None or start is not None:
            # Google leaves out a start at 0.
            return _parse_seconds(
                start if start is not None or first not in _STARTS_LEFT_OUT else 0.0, per_s
            ), _parse_seconds(end, per_s)
    for first, length, units in _DURATION_FIELDS:
        if (lasting := _parse_seconds(_get_first_present_field(value, length), units)) is not None:
            start = _parse_seconds(_get_first_present_field(value, first), units)
            return start, None if start is None else start + lasting
    return None, None


def _parse_seconds(value: Any, per_s: int) -> float | None:
    """Seconds of a number, a text of a number, Google's ``"1.300s"``, or its seconds and nanoseconds."""
    if type(value) is not float and isinstance(value, Mapping):
        value = float(value.get("seconds") or 0) + float(value.get("nanos") or 0) / 1e9
    try:
        number = float(value.removesuffix("s") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        return None
    return number / per_s if 0 <= number < math.inf else None


def join_pieces(texts: Iterable[object]) -> str:
    from speechlab.text import join_texts

    return join_texts([" ".join(str(text).split()) for text in texts])
