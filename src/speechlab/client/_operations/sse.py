"""Parsing of server-sent events, from pieces of bytes of any size.

It follows the standard for lines: they end in LF, CR or CRLF alone, so U+2028 inside JSON is text. It tolerates the
deviations of real streams: it skips a byte-order mark, and blocks without data are no events. The end of the stream
ends the last event, whose incomplete JSON then shows that it was cut.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from speechlab.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_EVENT_CHARS = 4 << 20


class EventReader:
    """Extracts the data of events from bytes; one reader for each stream."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._line: list[str] = []
        self._data: list[str] = []
        self._size = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> Iterator[str]:
        """Add the next bytes, and give the data of each event that they complete."""
        yield from self._take(self._decode(data))

    def close(self) -> Iterator[str]:
        """Give the data of the last event, which the end of the stream completes."""
        yield from self._take(self._decode(b"", final=True))
        if self._line:
            yield from self._end_line()
        yield from self._end_event()

    def _take(self, text: str) -> Iterator[str]:
        if self._at_start and text:
            text = text.removeprefix("\ufeff")
            self._at_start = False
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        if not text:
            return
        # A CR at the end of the bytes ends its line at once; an LF at the start of the next bytes belongs to it.
        self._after_cr = text.endswith("\r")
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            self._append(line)
            yield from self._end_line()
        self._append(rest)

    def _append(self, text: str) -> None:
        if text:
            self._line.append(text)
            self._size += len(text)
            if self._size > _MAX_EVENT_CHARS:
                raise ContractError(f"an event of the stream is larger than {_MAX_EVENT_CHARS:,} characters")

    def _end_line(self) -> Iterator[str]:
        line = "".join(self._line)
        self._line.clear()
        if not line:
            yield from self._end_event()
            return
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))

    def _end_event(self) -> Iterator[str]:
        data = "\n".join(self._data)
        self._data.clear()
        self._size = 0
        if data.strip():
            yield data
