"""Compressed bodies of replies, unpacked in pieces of limited size: a small reply must not fill the memory."""

from __future__ import annotations

import zlib

_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"
_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})


def find_unpacker(codings: str) -> Unpacker | None:
    """Return the unpacker for a header ``Content-Encoding``; None for a body that comes as it is."""
    known = [name for name in (coding.strip() for coding in codings.lower().split(",")) if name in _CODINGS]
    return Unpacker(*known) if known else None


class Unpacker:
    """The bytes of a body in ``gzip`` or ``deflate``: what comes is fed, what it holds is taken."""

    def __init__(self, coding: str, *further: str) -> None:
        self._is_twice = bool(further)
        self._is_gzip = coding != "deflate"
        self._packed = b""
        self._member: zlib._Decompress | None = None
        self._has_more = False
        self._members = 0

    def feed(self, data: bytes) -> None:
        """Add the next bytes of the body, once :meth:`take` has no more of the earlier ones."""
        self._packed += data

    def take(self) -> bytes:
        """Return the next piece, at most 1 MiB; empty if more of the body is needed.

        Raises:
            ValueError: The body is damaged.
        """
        if self._is_twice:
            message = "it is compressed twice, and nobody asked for that"
            raise ValueError(message)
        piece = b""
        while not piece and (self._packed or self._has_more):
            if self._member is None:
                if self._members and not self._packed.startswith(_GZIP[: len(self._packed)]):
                    self._packed = b""  # what follows the last member is padding
                    break
                self._member = self._start_decompressor()
            try:
                piece = self._member.decompress(self._packed, _PIECE)
            except zlib.error as error:
                raise ValueError(f"its compression is damaged: {error}") from None
            self._packed, self._has_more = self._member.unconsumed_tail, len(piece) == _PIECE
            if self._member.eof:
                self._packed, self._has_more = self._member.unused_data, False
                self._member = None
        return piece

    def check_end(self) -> None:
        """Refuse a body that ends early."""
        if self._member is not None and self._is_gzip:
            message = "its compression ends early"
            raise ValueError(message)

    def _start_decompressor(self) -> zlib._Decompress:
        """Start a part of the body, of which gzip may have several."""
        self._members += 1
        if self._is_gzip:
            return zlib.decompressobj(zlib.MAX_WBITS | 16)
        has_header = self._packed[0] & 0x0F == zlib.DEFLATED  # some services leave it out
        return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
