"""Server-sent events from bytes in any slicing.

Strict where the standard is (lines end in LF, CR or CRLF and in nothing else, so that U+2028 inside JSON is text),
lenient where streams in the wild are not: a byte-order mark is skipped, blocks without data are no events, and the
end of the stream ends the last event, whose unfinished JSON then tells that it was cut.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from speechlab.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_EVENT_CHARS = 4 << 20


class EventReader:
    """Turns bytes into the data of events; one reader for each stream."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._line: list[str] = []
        self._data: list[str] = []
        self._size = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> Iterator[str]:
        """Take the next bytes, and give the data of each event that they complete.

        Raises:
            ContractError: An event is larger than 4 Mi characters.
        """
        yield from self._take(self._decode(data))

    def close(self) -> Iterator[str]:
        """Give the data of an event that the end of the stream completes."""
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
        # A CR at the end of the bytes ends its line at once; an LF that follows it later belongs to it.
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
