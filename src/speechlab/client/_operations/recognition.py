"""Recognition: the operation and its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from typing import Any

from speechlab._arguments import build_argument_error, is_bool, is_number
from speechlab._pandas import pd
from speechlab.audio import AudioClip, unify_recording
from speechlab.client._events import Timing
from speechlab.client._operations.call import HttpCall, RawResponse, Reply
from speechlab.client._operations.operation import (
    Operation,
    build_timeouts,
    to_encodable_fields,
    to_term_list,
)
from speechlab.client._operations.recording import (
    AudioInput,
    Recording,
    build_recognition_body,
    build_recording,
    compute_digest,
    measure_sound_s,
)
from speechlab.contract import (
    RECOGNITION_PATH,
    SEGMENT_FIELDS,
    RecognitionReply,
    RecognitionRequest,
    ReplySegment,
    VadMode,
)
from speechlab.display import audio_figure, table
from speechlab.errors import InvalidRequestError

_LEAST_LIMIT = 4 << 20
_TIMEOUT_FACTOR = 2.5
# Bytes assumed of a recording before it is opened: a path may be on a slow disk, and samples have to be
# encoded.
_UNKNOWN_SIZE = 1 << 20
_MODEL_HEADER = "x-speechlab-model"


@dataclass(frozen=True)
class Transcript:
    """Text of a recording, with times if they were requested (``vad="segments"``).

    Attributes:
        text: The whole text; with segments, their texts joined by the rules of the language.
        language: Language code, identified or given.
        confidence: 0 to 1, or None if the service reports none.
        model: Id of the model that recognized, as the service states it; empty if it states none.
        pieces: The segments as sent by the service, or None if it sent none.
        timing: Duration and attempts.
        reply: The whole reply, including fields outside the contract.

    Example:
        >>> transcript = Transcript("hello", language="en", confidence=0.9)
        >>> str(transcript), transcript.segments.empty
        ('hello', True)
    """

    text: str
    language: str = ""
    confidence: float | None = None
    pieces: tuple[ReplySegment, ...] | None = None
    timing: Timing = field(default_factory=Timing)
    reply: RecognitionReply | None = field(default=None, repr=False, compare=False)
    model: str = field(default="", repr=False)

    @property
    def segments(self) -> pd.DataFrame:
        """The segments as a segment frame: ``file`` (empty), ``start`` and ``end`` in seconds, and ``text``.

        The frame has no rows without segments. ``speechlab.segments.frame(transcript.segments, file=…)`` adds the
        name of the recording.

        Raises:
            SegmentError: The service sent invalid times; ``pieces`` contains them unchanged.
        """
        from speechlab import segments

        return segments.frame([(piece.start, piece.end, piece.text) for piece in self.pieces or ()])

    @property
    def words(self) -> pd.DataFrame | None:
        """The words: ``word``, ``start`` and ``end`` in seconds, and ``confidence`` (0 to 1, or missing).

        None if the system gave none. The contract has no words: those of OpenAI's API and of functions are read.
        """
        times = _collect_words(self.reply)
        if not times:
            return None
        table = pd.DataFrame(times, columns=["word", "start", "end", "confidence"])
        return table.astype({"word": "string", "start": "float64", "end": "float64", "confidence": "float64"})

    @property
    def partials(self) -> pd.DataFrame | None:
        """The texts of a streamed recognition: ``time_s``, ``text``, ``final``; None if it was not streamed.

        Times are seconds since the first sample was spoken. A final text is that of a segment.
        """
        names = ["time_s", "text", "final"]
        if not isinstance(texts := _get_extra_fields(self.reply).get("partials"), list):
            return None
        table = pd.DataFrame(_select_dicts_with_fields(texts, names), columns=names)
        return table.astype({"time_s": "float64", "text": "string", "final": "bool"})

    @property
    def first_partial_s(self) -> float | None:
        """Seconds from the first sound to the first text with a letter or digit, of a streamed recognition."""
        return _get_extra_fields(self.reply).get("first_partial_s")

    @property
    def finalization_s(self) -> float | None:
        """Seconds from the end of the last sound to the last final text, of a streamed recognition."""
        return _get_extra_fields(self.reply).get("finalization_s")

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        lang = self.language or None
        facts = [self.language or "language unknown"]
        if self.confidence is not None:
            facts.append(f"confidence {self.confidence:.2f}")
        if self.model:
            facts.append(self.model)
        if self.pieces is None:
            return str(audio_figure(None, title="Transcript", facts=facts, text=self.text, lang=lang))
        rows = [(f"{piece.start:.2f}", f"{piece.end:.2f}", piece.text) for piece in self.pieces]
        head = audio_figure(None, title="Transcript", facts=[*facts, f"{len(rows)} segments"])
        return str(head + table(["start (s)", "end (s)", "text"], rows, langs=[None, None, lang]))


@dataclass(frozen=True, eq=False)
class Transcribe(Operation[Transcript]):
    """Transcribe a recording (section 4.4 of the contract).

    An argument that is None is not sent; the service's default is in parentheses.

    Args:
        audio: A path, bytes, a file opened in binary mode, ``(samples, rate)`` in either order, an AudioClip, or
            a cell of a data set of Hugging Face. Samples may be a tensor.
        language: Code of a language that the service has, such as ``"ja"``; None identifies it.
        hotwords: Words or phrases to boost.
        vad: ``"off"``, ``"on"`` (skip silence) or ``"segments"`` (timed segments).
        min_silence_gap: With segments: milliseconds of silence that separate segments (400).
        segment_padding: With segments: milliseconds added at their edges, 0 to 5,000 (100).
        initial_segment_padding_ms: With segments: milliseconds before the first, 0 to 5,000 (1,500).
        speech_pad_ms: With segments: milliseconds added to detected speech (200).
        min_segment_duration: With segments: minimum in seconds; shorter segments are merged (1.5).
        temperature: 0 to 2 (0).
        top_p: 0 to 1 (0.85).
        frequency_penalty: -2 to 2 (0.5).
        repetition_penalty: 1 to 2 (1.05).
        session_id: A label for the service.
        stream: Whether the recording is recognized while it is spoken: only for a system with
            ``transcribe_stream`` (:func:`speechlab.client.system`).
        timeout: Seconds for this call with its retries; None is the client's.

    Example:
        >>> call = Transcribe(([0.0] * 8_000, 8_000), language="ja-JP", vad="segments")
        >>> call.recording.duration_s, str(call.options.language), call.options.min_silence_gap
        (1.0, 'ja', 400)
    """

    name = "transcribe"
    audio: AudioInput = field(repr=False)
    _: KW_ONLY
    language: str | None = None
    hotwords: Sequence[str] | None = None
    vad: str | int = "off"
    min_silence_gap: int | None = None
    segment_padding: int | None = None
    initial_segment_padding_ms: int | None = None
    speech_pad_ms: int | None = None
    min_segment_duration: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    session_id: str | None = None
    stream: bool = False  # type: ignore[misc]  # of the recording, not of the reply
    timeout: float | None = None

    def __post_init__(self) -> None:
        hotwords: object = self.hotwords
        if isinstance(hotwords, Iterator):  # which can be read only once
            object.__setattr__(self, "hotwords", list(hotwords))

    @cached_property
    def recording(self) -> Recording:
        """The recording, with its size and format; it is opened for each attempt."""
        return build_recording(self.audio)

    @cached_property
    def _digest(self) -> str:
        return compute_digest(self.recording)

    @property
    def content(self) -> dict[str, Any]:
        return {"audio": self._digest}

    @property
    def streams(self) -> bool:
        """Whether the recording is recognized while it is spoken."""
        if not is_bool(self.stream):
            raise build_argument_error("stream", self.stream, "True or False")
        return self.stream

    @property
    def options(self) -> RecognitionRequest:
        """The checked request. A short placeholder replaces the recording, which is encoded while it is sent."""
        if self.streams:
            message = (
                "stream=True is for a system with transcribe_stream= (sl.system); leave it out for a service"
            )
            raise InvalidRequestError(message, parameter="stream")
        values = {name: value for name in OPTIONS if (value := getattr(self, name)) is not None}
        if self.hotwords is not None:
            values["hotwords"] = to_term_list("hotwords", self.hotwords, rule="2.3")
        if isinstance(self.vad, str) and self.vad == VadMode.OFF:
            del values["vad"]  # the default is not sent
        checked = RecognitionRequest.parse({"audio": "AAAA", **to_encodable_fields(values)})
        idle = [name for name in SEGMENT_FIELDS if name in values]
        if idle and checked.vad is not VadMode.SEGMENTS:
            message = (
                f"{idle[0]} has no effect without vad='segments', and vad is {str(checked.vad)!r}; "
                f"give vad='segments', or leave out {', '.join(idle)}"
            )
            raise InvalidRequestError(message, parameter=idle[0], rule="2.3")
        return checked

    @property
    def parameters(self) -> dict[str, Any]:
        content = self.content
        return {**self.options.model_dump(mode="json", exclude={"audio", "session_id"}), **content}

    def check_options(self) -> None:
        _ = self.options

    @property
    def effort(self) -> int:  # type: ignore[override]  # the base class has a field
        return len(self.audio) if isinstance(self.audio, bytes) else _UNKNOWN_SIZE

    def call(self, timeout: float | None) -> HttpCall:
        recording, fields = self.recording, self.options.body()
        del fields["audio"]
        limits = build_timeouts(self.resolve_timeout(timeout), _TIMEOUT_FACTOR * recording.duration_s)
        body, accept = build_recognition_body(recording, fields), "application/json"
        return HttpCall(
            self.name,
            "asr",
            limits,
            "POST",
            RECOGNITION_PATH,
            body,
            accept=accept,
            reply_limit=_LEAST_LIMIT + body.length,  # a transcript is smaller than its recording
            fields=fields,
        )

    def read(self, reply: Reply | RawResponse) -> Transcript:
        # the form is read off its fields, not off the request
        parsed = RecognitionReply.parse(_keep_untimed_texts(reply.fields))
        text = parsed.text
        if parsed.segments is not None and not text:
            from speechlab.text import join_texts

            text = join_texts([segment.text for segment in parsed.segments], parsed.language)
        stated = _get_extra_fields(parsed).get("model") or reply.headers.get(_MODEL_HEADER)
        return Transcript(
            text or "",
            parsed.language,
            parsed.confidence,
            parsed.segments,
            timing=reply.timing,
            reply=parsed,
            model=stated if isinstance(stated, str) else "",
        )

    @property
    def samples(self) -> AudioClip | None:
        """The recording, if it was given as samples."""
        audio = None if callable(getattr(self.audio, "read", None)) else unify_recording(self.audio)
        return audio if isinstance(audio, AudioClip) else None

    def to_clip(self) -> AudioClip:
        """Return the recording as sound in one channel."""
        if (samples := self.samples) is not None:
            clip = AudioClip(samples.samples, samples.sample_rate, samples.title)
        else:
            with closing(self.recording.open()) as file:
                clip = AudioClip.from_bytes(file.read())
        return clip.to_mono()

    def count_usage(self, result: Transcript) -> dict[str, float]:  # noqa: ARG002 - other operations need it
        clip = self.samples  # which are not encoded for their length
        return {"calls": 1, "recognized_s": measure_sound_s(self.recording if clip is None else clip)}

    def build_record(self, result: Transcript) -> dict[str, Any]:
        values = {**to_contract_fields(result), "processing_s": result.timing.processing_s}
        if words := _collect_words(result.reply):
            values["words"] = words
        if result.model:
            values["model"] = result.model
        return values | {
            name: extra[name] for name in _STREAM_FIELDS if name in (extra := _get_extra_fields(result.reply))
        }

    @staticmethod
    def restore_body(kept: Mapping[str, Any]) -> dict[str, Any]:
        names = ("text", "language", "confidence", "segments", "words", "model", *_STREAM_FIELDS)
        return {name: kept[name] for name in names if kept.get(name) is not None}


def _keep_untimed_texts(body: Any) -> Any:
    """Return a reply whose segments without a start are in its text alone; one without an end is an instant."""
    segments = body.get("segments") if isinstance(body, dict) else None
    if not isinstance(segments, list) or not all(isinstance(segment, dict) for segment in segments):
        return body
    if not any(segment.get(name) is None for segment in segments for name in ("start", "end")):
        return body
    from speechlab.text import join_texts

    texts = [text for segment in segments if isinstance(text := segment.get("text"), str)]
    timed = [segment for segment in segments if segment.get("start") is not None]
    instants = [
        {**segment, "end": segment["start"]} if segment.get("end") is None else segment for segment in timed
    ]
    language = body.get("language")
    joined = join_texts(texts, language if isinstance(language, str) else "")
    return {**body, "text": body.get("text") or joined, "segments": instants}


def to_contract_fields(transcript: Transcript) -> dict[str, Any]:
    """Return the contract's fields of a transcript."""
    names = ("text", "language", "confidence")
    fields: dict[str, Any] = {name: getattr(transcript, name) for name in names}
    if (pieces := transcript.pieces) is not None:
        fields["segments"] = [{"start": each.start, "end": each.end, "text": each.text} for each in pieces]
    return fields


# Fields of a transcript that came in pieces.
_STREAM_FIELDS = ("partials", "first_partial_s", "finalization_s")


def _get_extra_fields(reply: RecognitionReply | None) -> Mapping[str, Any]:
    """Return the fields of a reply beyond the contract."""
    return (reply.model_extra or {}) if reply is not None else {}


def _collect_words(reply: RecognitionReply | None) -> list[dict[str, Any]]:
    """Return the words of a reply, or of its segments, beyond the contract."""
    if reply is None:
        return []
    names, lists = ("word", "start", "end"), [_get_extra_fields(reply).get("words")]
    if not lists[0]:
        lists = [(piece.model_extra or {}).get("words") for piece in reply.segments or ()]
    timed_words = []
    for word in (word for listing in lists for word in _select_dicts_with_fields(listing, names)):
        start, end = word["start"], word["end"]
        confidence = word.get("confidence", word.get("probability"))
        if is_number(start) and is_number(end):
            sure = confidence if is_number(confidence) else None
            timed_words.append(
                {"word": str(word["word"]).strip(), "start": start, "end": end, "confidence": sure}
            )
    return timed_words


def _select_dicts_with_fields(values: object, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the dicts of a list that have these fields; none of what is no list."""
    each = values if isinstance(values, list) else ()
    return [value for value in each if isinstance(value, dict) and value.keys() >= set(names)]


# Fields of a call other than the recording.
OPTIONS = tuple(
    option.name for option in fields(Transcribe) if option.name not in {"audio", "timeout", "stream"}
)
