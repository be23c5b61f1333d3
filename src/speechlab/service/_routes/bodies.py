"""Bodies of requests, read within limits of size and time.

The framework's own readers answer invalid JSON with a 500, drop the last field of a truncated form, and read invalid
UTF-8 as Latin-1. This module replaces them.
"""

from __future__ import annotations

import re
from email.message import Message
from functools import partial

from starlette.requests import ClientDisconnect, Request

from speechlab.errors import InvalidRequestError
from speechlab.service._faults import ClientGone, Fault
from speechlab.service._held_bytes import BLOCK_BYTES, SENDER_BYTES_S, HeldBytes, Pace
from speechlab.service._state import get_service, open_held_bytes

_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]")
_MAX_PARTS = 64
# Maximum length of a header with parameters: the standard library takes seconds for tens of kilobytes.
_MAX_PARAMETERS = 256


async def read_body(request: Request, limit: int, service: str) -> HeldBytes:
    """Read a body, and count its bytes while they arrive."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"", "identity"}:
        message = f"Content-Encoding {encoding[:20]!r} is not supported; send the body uncompressed"
        raise Fault("ErrInvalidRequest", message, service, "body")
    state = get_service(request)
    limit = min(limit, state.budget.limit)
    declared = request.headers.get("content-length", "")
    size = int(declared[:19]) if declared.isascii() and declared.isdigit() else 0
    if size > limit:
        raise _build_too_large_fault(limit, service)
    body, stream, block = open_held_bytes(request, service), request.stream(), bytearray()
    body.reserve_total(size)
    pause_s = state.config.body_timeout_s
    pace = Pace(pause_s, SENDER_BYTES_S)
    try:
        while (chunk := await pace.wait_within_pace(anext(stream, None))) is not None:
            pace.count_bytes(len(chunk))
            block += chunk
            if body.size + len(block) > limit:
                raise _build_too_large_fault(limit, service)
            body.reserve_total(body.size + len(block))
            if len(block) >= BLOCK_BYTES:
                await state.engines.threads.run_task(partial(body.write, bytes(block)))
                block.clear()
    except TimeoutError:
        message = f"the body came too slowly: at less than 4 KiB/s for {pause_s:g} seconds (body_timeout_s)"
        headers = {"Connection": "close"}
        raise Fault("ErrRequestTimeout", message, service, "body", headers=headers) from None
    except ClientDisconnect:
        raise ClientGone from None
    if body.size:
        await state.engines.threads.run_task(partial(body.write, block))
    else:
        body.write(block)
    return body


def _build_too_large_fault(limit: int, service: str) -> Fault:
    return Fault("ErrTooLarge", f"the body is larger than {limit:,} bytes", service, "body")


def parse_form(body: bytes, content_type: str | None) -> list[tuple[str, str]]:
    """Read multipart/form-data with text fields only, in the order sent."""
    delimiter = b"\r\n--" + _parse_boundary(content_type or "")
    text = b"\r\n" + body
    preamble_end = text.find(delimiter)
    if preamble_end < 0:
        raise _build_damaged_form_error("the boundary that its Content-Type names is not in the body")
    position = preamble_end + len(delimiter)
    fields: list[tuple[str, str]] = []
    while True:
        after = text[position : position + 2]
        if after == b"--":
            return fields
        line_end = text.find(b"\r\n", position)
        if line_end < 0 or text[position:line_end].strip(b" \t"):
            raise _build_damaged_form_error("a boundary is not followed by a line end")
        end = text.find(delimiter, line_end)
        if end < 0:
            raise _build_damaged_form_error("it ends before its closing boundary")
        fields.append(_parse_part(text[line_end + 2 : end] if end >= line_end + 2 else b""))
        if len(fields) > _MAX_PARTS:
            raise _build_damaged_form_error(f"it has more than {_MAX_PARTS} parts")
        position = end + len(delimiter)


def _parse_boundary(content_type: str) -> bytes:
    if len(content_type) > _MAX_PARAMETERS:
        raise _build_form_error(
            f"the Content-Type is longer than {_MAX_PARAMETERS} characters; send multipart/form-data"
        )
    message = Message()
    message["Content-Type"] = content_type.replace("\r", " ").replace("\n", " ")
    if message.get_content_type() != "multipart/form-data" or not content_type:
        kind = content_type.partition(";")[0].strip()[:40] or "none"
        raise _build_form_error(f"the Content-Type must be multipart/form-data, and it is {kind}")
    boundary = message.get_param("boundary")
    if not isinstance(boundary, str) or _BOUNDARY.fullmatch(boundary) is None:
        raise _build_form_error(
            "the Content-Type multipart/form-data must name a boundary of 1 to 70 characters"
        )
    return boundary.encode("ascii")


def _parse_part(part: bytes) -> tuple[str, str]:
    head, blank, content = part.partition(b"\r\n\r\n")
    if not blank or len(head) > 4096:
        raise _build_damaged_form_error("a part has no blank line after its headers")
    name, is_file, disposed = None, False, False
    for line in _decode_text(head, "the headers of a part").split("\r\n"):
        key, _, value = line.partition(":")
        lowered = key.strip().lower()
        if lowered == "content-disposition":
            if disposed or len(value) > _MAX_PARAMETERS:
                raise _build_damaged_form_error(
                    f"a part has two Content-Dispositions, or one that is longer than {_MAX_PARAMETERS} characters"
                )
            header, disposed = Message(), True
            header[lowered] = value.strip()
            name = header.get_param("name", header=lowered)
            is_file = header.get_param("filename", header=lowered) is not None
            if header.get_content_disposition() != "form-data":
                raise _build_damaged_form_error("a part's Content-Disposition is not form-data")
        elif lowered == "content-transfer-encoding" and value.strip().lower() not in {
            "binary",
            "8bit",
            "7bit",
        }:
            raise _build_damaged_form_error("a part has a Content-Transfer-Encoding; send it unencoded")
    if not isinstance(name, str) or not name:
        raise _build_damaged_form_error("a part has no name")
    if is_file:
        raise _build_form_error(f"the field {name[:40]!r} is a file; send it as text", name)
    return name, _decode_text(content, f"the field {name[:40]!r}", name)


def _decode_text(data: bytes, what: str, parameter: str | None = None) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _build_form_error(f"{what} is not valid UTF-8", parameter) from None


def _build_form_error(message: str, parameter: str | None = None) -> InvalidRequestError:
    return InvalidRequestError(message, parameter=parameter, rule="2.5")


def _build_damaged_form_error(reason: str) -> InvalidRequestError:
    return _build_form_error(f"the form is damaged: {reason}; send multipart/form-data as in RFC 7578")
