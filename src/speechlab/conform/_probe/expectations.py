"""Expectations about replies, shared by checks of several areas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speechlab.conform._probe.http import Exchange
    from speechlab.conform._probe.target import Target


def refused(t: Target, reply: Exchange, why: str) -> None:
    """Record a finding unless the reply is a 400."""
    t.require(reply.status == 400, f"400: {why}", reply)


def json_object(t: Target, reply: Exchange) -> dict[str, Any]:
    """Return the JSON object of a successful reply, or end the check."""
    t.insist(reply.status == 200, "200", reply)
    t.require(reply.media_type == "application/json", "application/json", reply)
    body = reply.json()
    t.insist(isinstance(body, dict), "an object", reply)
    assert isinstance(body, dict)
    return body


def full_body(reply: Exchange) -> dict[str, Any] | None:
    """Return the body in the form of section 2.8, or None if it has another form."""
    body = reply.json() if reply.media_type == "application/json" else None
    if not isinstance(body, dict) or not isinstance(body.get("context"), list):
        return None
    right = all(isinstance(item, str) for item in body["context"]) and type(body.get("code")) is int
    return (
        body if right and isinstance(body.get("name"), str) and isinstance(body.get("error"), str) else None
    )
