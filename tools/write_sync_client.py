"""Writes the synchronous classes of the client from the asynchronous ones: ``python tools/write_sync_client.py``.

Each method has the signature and the description of the asynchronous one, and waits for it. A test fails when the
files are no longer those that this writes.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab.client import (
    AsyncClient,
    AsyncRealtimeSession,
    AsyncSpeechEvents,
    AsyncSpeechStream,
    AsyncTranslationStream,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[1] / "src" / "speechlab" / "client" / "_api"
_HEAD = '''"""{what}; written by ``tools/write_sync_client.py``."""

from __future__ import annotations

{imports}


'''
_STREAM_IMPORTS = """import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self

from speechlab.client._api.portal import SyncIterator, SyncWrapper, iterate, run, run_next, run_on_loop
from speechlab.client._realtime.job import AsyncSpeechEvents
from speechlab.client._realtime.session import AsyncRealtimeSession, require_text
from speechlab.client._streams.base import Playable
from speechlab.client._streams.speech_stream import AsyncSpeechStream
from speechlab.client._streams.translation_stream import AsyncTranslationStream

if TYPE_CHECKING:
    from speechlab.audio import AudioClip
    from speechlab.client._events import Timing
    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._operations.translation import Translation, TranslationChunk
    from speechlab.client._realtime.protocol import RealtimeEvent
    from speechlab.contract import SessionInfo
    from speechlab.notebook import Playback"""
_CLIENT_IMPORTS = """from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from speechlab.client._api.portal import run, run_and_show
from speechlab.client._api.sync_base import SyncClientBase
from speechlab.client._api.sync_streams import RealtimeSession, SpeechStream, TranslationStream
from speechlab.client._operations.operation import advise_on_voice
from speechlab.client._operations.recognition import Transcribe
from speechlab.client._operations.speech import Synthesize
from speechlab.client._operations.translation import Translate
from speechlab.client._wait_bar import show_transcription

if TYPE_CHECKING:
    from speechlab.client._events import CallTotals
    from speechlab.client._operations.call import RawResponse
    from speechlab.client._operations.operation import Operation
    from speechlab.client._operations.recognition import Transcript
    from speechlab.client._operations.recording import AudioInput
    from speechlab.client._operations.speech import SpeechClip
    from speechlab.client._operations.translation import Translation
    from speechlab.client._operations.voices import VoiceCatalogue
    from speechlab.contract import AudioFormat, Voice
    from speechlab.text import Lexicon

R = TypeVar("R")"""
_CLIENT_TEXT = """A speech service, for scripts, cells, threads and callbacks; works while an event loop is running.

One client is enough for a program and its threads: it keeps connections, and adapts to the load that the service
accepts. An interrupt cancels the call.

Example:
    >>> with Client("https://speech.example", api_key="sl:a-key-of-mine") as lab:
    ...     print(lab)
    Client(base_url='https://speech.example', api_key='***')
"""
# The synchronous classes: their bases, the asynchronous class, and its methods and properties in their order.
_STREAMS = (
    (
        "SpeechStream",
        "Playable, SyncIterator[AsyncSpeechStream]",
        AsyncSpeechStream,
        "partial content_type timing status headers open close __next__ collect save_to clips",
    ),
    (
        "TranslationStream",
        "SyncIterator[AsyncTranslationStream]",
        AsyncTranslationStream,
        "text translation timing status headers open close __next__ collect",
    ),
    (
        "SpeechEvents",
        "Playable, SyncIterator[AsyncSpeechEvents]",
        AsyncSpeechEvents,
        "text partial timing clips __next__ collect close",
    ),
    (
        "RealtimeSession",
        "SyncWrapper[AsyncRealtimeSession]",
        AsyncRealtimeSession,
        "info is_open open say close speak play",
    ),
)
_CLIENT = (
    "Client",
    "SyncClientBase",
    AsyncClient,
    (
        "usage voices identity synthesize stream_speech transcribe translate stream_translation realtime perform"
        " request close with_raw_response"
    ),
)
# What a method without ``await`` returns in place of the asynchronous object.
_WRAPPED = {
    "AsyncSpeechStream": "SpeechStream",
    "AsyncTranslationStream": "TranslationStream",
    "AsyncRealtimeSession": "RealtimeSession",
    "AsyncSpeechEvents": "SpeechEvents",
}
# Methods that perform an operation made of their arguments.
_OPERATIONS = {"synthesize": "Synthesize", "transcribe": "Transcribe", "translate": "Translate"}
# Methods whose text is not that of the others.
_BODIES = {
    "with_raw_response": "return self._copy_with_raw_response()",
    "clips": "yield from iterate(self._async.clips())",
    "save_to": "self._async.save_to(path)\nreturn self",
    "speak": "return SpeechEvents(run_on_loop(self._async.speak, text, timeout=timeout))",
    "play": "return self.speak(require_text(text), timeout=timeout).play()",
}


def _indent(text: str) -> str:
    return textwrap.indent(text, "    ")


def _quote(text: str) -> str:
    """Return a docstring."""
    text = inspect.cleandoc(text)
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def _write_parameters(function: Any) -> tuple[str, str, str]:
    """Return the parameters of a method in its definition and in a call, and what it returns."""
    signature = inspect.signature(function)
    _, *parameters = signature.parameters.values()
    defined, passed, keyword = ["self"], [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            defined.append("*")
            keyword = True
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        defined.append(f"{parameter.name}: {parameter.annotation}{default}")
        passed.append(f"{parameter.name}={parameter.name}" if keyword else parameter.name)
    return ", ".join(defined), ", ".join(passed), str(signature.return_annotation)


def _write_method(cls: type, name: str) -> Iterator[str]:
    """Yield the lines of one method or property."""
    source: Any = {"__next__": "__anext__", "close": "aclose"}.get(name, name)
    found = inspect.getattr_static(cls, source)
    if isinstance(found, property):
        gives = inspect.signature(found.fget).return_annotation  # type: ignore[arg-type]  # a property has a getter
        yield "@property"
        yield f"def {name}(self) -> {gives}:"
        yield _indent(
            f"{_quote(inspect.getdoc(found) or '')}\n{_BODIES.get(name, f'return self._async.{name}')}"
        )
        return
    defined, passed, gives = _write_parameters(getattr(cls, source))
    call = f"self._async.{source}{', ' if passed else ''}{passed}"
    wrapped = _WRAPPED.get(gives)
    operation = _OPERATIONS.get(name)
    body = (
        f"return run({call})"
        if operation is None
        else f"return run(self._async.perform, {operation}({passed}))"
    )
    if name == "transcribe":  # whose recording may be of hours
        shown = body.replace("run(", "run_and_show(show, ")
        body = f"with show_transcription(self, audio) as show:\n{_indent(shown)}"
    elif name == "__next__":
        body = f"found: {gives} = run_next(self._async.__anext__)\nreturn found"
    elif wrapped is not None:
        body = f"return {wrapped}(self._async.{source}({passed}))"
    if "voice: " in defined:
        yield "@advise_on_voice"
    gives = {"AsyncIterator[AudioClip]": "Iterator[AudioClip]"}.get(gives, wrapped or gives)
    yield f"def {name}({defined}) -> {gives}:"
    yield _indent(f"{_quote(inspect.getdoc(getattr(cls, source)) or '')}\n{_BODIES.get(name, body)}")


def _write_class(name: str, bases: str, cls: type, members: str) -> str:
    text = inspect.getdoc(cls) or ""
    if cls is AsyncClient:  # whose arguments are added where both are imported
        text = _CLIENT_TEXT
    lines = [f"class {name}({bases}):", _indent(_quote(text.replace("``async with``", "``with``"))), ""]
    for member in members.split():
        lines += [_indent("\n".join(_write_method(cls, member))), ""]
    return "\n".join(lines)


def build_files() -> dict[Path, str]:
    """Return the files and what they hold."""
    streams = _HEAD.format(what="Streams and sessions without ``await``", imports=_STREAM_IMPORTS)
    streams += "\n\n".join(_write_class(*each) for each in _STREAMS)
    client = _HEAD.format(what="The synchronous client", imports=_CLIENT_IMPORTS) + _write_class(*_CLIENT)
    return {
        FOLDER / f"{name}.py": _format(text, f"{name}.py")
        for name, text in (("sync_streams", streams), ("sync_client", client))
    }


def _format(text: str, name: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", f"src/{name}", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    option = '        format: AudioFormat | str = "wav",'
    return done.replace(option, f"{option}  # noqa: A002 - the contract's name")


if __name__ == "__main__":
    for path, content in build_files().items():
        path.write_text(content, "utf-8")
