"""The head of an ONNX file: its metadata and the names of its inputs, read without loading the weights.

sherpa-onnx ends its process when a model lacks a property. So models are checked here first. An ONNX file is a
message of protocol buffers; large fields are skipped by their lengths.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from speechlab.errors import ModelError

# Numbers of the fields of ModelProto, GraphProto and ValueInfoProto.
_GRAPH, _METADATA = 7, 14
_GRAPH_INPUT = 11
_NAME = 1
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
# Longer names and properties are skipped: a head has none.
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class OnnxHeader:
    """Metadata and inputs of a model."""

    path: Path
    metadata: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()

    @property
    def model_type(self) -> str:
        return self.metadata.get("model_type", "")

    def require_metadata(self, *names: str) -> None:
        """Refuse a model without some of its properties, which sherpa-onnx needs."""
        if absent := [name for name in names if not self.metadata.get(name)]:
            raise ModelError(
                f"{self.path} lacks the metadata {', '.join(absent)}, which sherpa-onnx needs; take the model as it "
                "is published for sherpa-onnx, or add them with onnx (model.metadata_props)"
            )

    def get_number(self, name: str, default: int = 0) -> int:
        text = self.metadata.get(name, "")
        try:
            return int(text) if text else default
        except ValueError:
            raise ModelError(
                f"{self.path} has the metadata {name}={text!r:.40}, which is no number; take the model anew"
            ) from None


def read_onnx_header(path: Path) -> OnnxHeader:
    """Read the head of a model.

    Raises:
        ModelError: The file cannot be read, is incomplete, or is no ONNX file.
    """
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if stream.read(40).startswith(b"version https://git-lfs"):
                raise ModelError(
                    f"{path} is a pointer of Git LFS, not the model; fetch it with: git lfs pull"
                )
            stream.seek(0)
            metadata: dict[str, str] = {}
            inputs: list[str] = []
            found_graph = False
            for number, length in _iterate_fields(stream, size):
                if number == _GRAPH:
                    found_graph, end = True, stream.tell() + length
                    inputs += _read_input_names(stream, end)
                elif number == _METADATA and length <= _MAX_BYTES:
                    name, value = _read_pair(stream, stream.tell() + length)
                    metadata[name] = value
            is_complete = found_graph
    except _HeaderError:
        is_complete = False
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from error
    if not is_complete:
        raise ModelError(f"{path} is no complete ONNX file ({size:,} bytes); download it again")
    return OnnxHeader(path, metadata, tuple(inputs))


class _HeaderError(Exception):
    """The bytes are no message of protocol buffers, or end too early."""


def _read_varint(stream: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)
        if not byte:
            raise _HeaderError
        value |= (byte[0] & 0x7F) << shift
        if not byte[0] & 0x80:
            return value
    raise _HeaderError


def _iterate_fields(stream: BinaryIO, end: int) -> Iterator[tuple[int, int]]:
    """Yield number and length of each field of bytes, at which the stream then stands; skip the other fields."""
    while (at := stream.tell()) < end:
        key = _read_varint(stream)
        number, kind = key >> 3, key & 7
        if kind == _BYTES:
            length = _read_varint(stream)
            at = stream.tell() + length
            if at > end:
                raise _HeaderError
            yield number, length
        elif kind == _VARINT:
            _read_varint(stream)
            at = stream.tell()
        elif kind in (_FIXED_32, _FIXED_64):
            at = stream.tell() + (4 if kind == _FIXED_32 else 8)
        else:
            raise _HeaderError
        if number == 0 or at > end:
            raise _HeaderError
        stream.seek(at)


def _read_input_names(stream: BinaryIO, end: int) -> list[str]:
    names = []
    for number, length in _iterate_fields(stream, end):
        if number == _GRAPH_INPUT:
            inner = stream.tell() + length
            for field_number, size in _iterate_fields(stream, inner):
                if field_number == _NAME and size <= _MAX_BYTES:
                    names.append(_read_text(stream, size))
    return names


def _read_pair(stream: BinaryIO, end: int) -> tuple[str, str]:
    pair = {1: "", 2: ""}
    for number, length in _iterate_fields(stream, end):
        if number in pair:
            pair[number] = _read_text(stream, length)
    return pair[1], pair[2]


def _read_text(stream: BinaryIO, length: int) -> str:
    return stream.read(length).decode("utf-8", "replace")


def encode_metadata(metadata: Mapping[str, str]) -> bytes:
    """Encode metadata as bytes which, at the end of an ONNX file, are added to those of the model."""
    encoded = b""
    for name, value in metadata.items():
        pair = encode_field(1, name.encode()) + encode_field(2, value.encode())
        encoded += encode_field(_METADATA, pair)
    return encoded


def encode_field(number: int, data: bytes) -> bytes:
    """Encode a field of bytes."""
    return encode_varint(number << 3 | _BYTES) + encode_varint(len(data)) + data


def encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
