"""What functions return, made plain where they run: pieces of sound, a transcript, pieces of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from speechlab._require import later
from speechlab.audio import AudioClip
from speechlab.client._operations.recognition import Transcript
from speechlab.client._operations.translation import Translation
from speechlab.datasets import transcript_of
from speechlab.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
else:
    np = later("numpy")

_SOUND = "an AudioClip, (samples, rate), the bytes of a file, or an iterator of them"
_PARTIAL = "an iterator of (text, final), as in ('good mor', False)"
_MOST_PARTIALS = 100_000
_TRANSCRIPT = "a text, a Transcript, segments, (segments, info), or a dict with 'text' or 'segments'"


def pieces_of(operation: str, result: Any) -> Iterator[Any]:
    """The pieces of a result: AudioClip or bytes of speech, a transcript, texts of a translation, (text, final)."""
    return _READERS[operation](result)


def _speech(result: Any) -> Iterator[AudioClip | bytes]:
    if isinstance(result, Iterator):
        for piece in result:
            yield _sound(piece)
    else:
        yield _sound(result)


def _sound(value: Any) -> AudioClip | bytes:
    if isinstance(value, AudioClip):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, tuple | list) and len(value) == 2:
        samples, rate = value
        if np.ndim(samples) == 0:
            samples, rate = rate, samples
        samples = np.asarray(samples)
        if samples.ndim == 2 and samples.shape[0] == 1:  # (channels, frames), as models make it
            samples = samples[0]
        return AudioClip(samples, int(rate))
    raise _other("synthesize", value, _SOUND)


def _transcript(result: Any) -> Iterator[dict[str, Any]]:
    if isinstance(result, str):
        yield {"text": result}
    elif isinstance(result, Transcript):
        yield _of_transcript(result)
    elif isinstance(result, Mapping):
        yield _told(transcript_of(result), result.get("language"))
    elif isinstance(result, tuple) and len(result) == 2 and hasattr(result[1], "language"):
        yield _told(_of_segments(result[0]), result[1].language)  # as faster-whisper gives them
    elif isinstance(result, Iterable):
        yield _of_segments(result)
    else:
        raise _other("transcribe", result, _TRANSCRIPT)


def _partials(result: Any) -> Iterator[tuple[str, bool]]:
    pieces = (result,) if isinstance(result, tuple) and result and isinstance(result[0], str) else result
    if not isinstance(pieces, Iterable) or isinstance(pieces, str | Mapping):
        raise _other("transcribe_stream", result, _PARTIAL)
    for number, piece in enumerate(pieces):
        if not (isinstance(piece, tuple | list) and len(piece) == 2 and isinstance(piece[0], str)):
            raise _other("transcribe_stream", piece, _PARTIAL)
        if number >= _MOST_PARTIALS:
            raise ContractError(
                f"the function of transcribe_stream yielded more than {_MOST_PARTIALS:,} texts of one recording; "
                "end when the clips end"
            )
        yield piece[0], bool(piece[1])


def _told(found: dict[str, Any], language: object) -> dict[str, Any]:
    return {**found, "language": str(language)} if language else found


def _of_transcript(result: Transcript) -> dict[str, Any]:
    found: dict[str, Any] = {
        "text": result.text,
        "language": result.language,
        "confidence": result.confidence,
    }
    if result.pieces is not None:
        found["segments"] = [{"start": one.start, "end": one.end, "text": one.text} for one in result.pieces]
    words = result.words
    return found if words is None else {**found, "words": words.to_dict("records")}


def _of_segments(segments: Any) -> dict[str, Any]:
    found = []
    for one in segments:
        if isinstance(one, tuple | list) and len(one) == 3:
            one = {"start": one[0], "end": one[1], "text": one[2]}  # noqa: PLW2901 - the same in another form
        elif not isinstance(one, Mapping) and not hasattr(one, "text"):
            raise _other("transcribe", one, _TRANSCRIPT)
        found.append(one)
    return transcript_of({"segments": found})


def _translation(result: Any) -> Iterator[str]:
    pieces = (result,) if isinstance(result, str | Translation) else result
    if not isinstance(pieces, Iterable):
        raise _other("translate", result, "a text, a Translation, or an iterator of texts")
    for piece in pieces:
        if not isinstance(piece, str | Translation):
            raise _other("translate", piece, "a text, a Translation, or an iterator of texts")
        yield str(piece)


def _other(operation: str, value: object, allowed: str) -> ContractError:
    return ContractError(
        f"the function of {operation} returned {value!r:.60} ({type(value).__name__}); return {allowed}"
    )


_READERS: dict[str, Callable[[Any], Iterator[Any]]] = {
    "synthesize": _speech,
    "transcribe": _transcript,
    "transcribe_stream": _partials,
    "translate": _translation,
}
