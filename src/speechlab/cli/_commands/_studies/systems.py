"""What ``speechlab study recognition`` is told of services, settings and bands, read from words."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from speechlab.client import Client

_BAND = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")
PLAIN, WITH_HOTWORDS = "plain", "hotwords"
"""What the settings without and with hotwords are called."""


@contextmanager
def connected(services: Sequence[str]) -> Iterator[Any]:
    """Connect to the usual service, or to several by name, each with a key of its own.

    The key of ``theirs`` is that of ``SPEECHLAB_API_KEY_THEIRS``, or else the one that ``connect`` finds.

    Args:
        services: ``NAME=URL``; an empty URL is the usual service.

    Yields:
        A client; with names, clients by name.

    Raises:
        InvalidRequestError: One of them is no such text, or two have one name.
    """
    from speechlab import connect

    if not services:
        with connect() as lab:
            yield lab
        return
    addresses = _named("service", services, "NAME=URL, as in --service ours= --service theirs=https://…")
    labs: dict[str, Client] = {}
    try:
        for name, url in addresses.items():
            variable = f"SPEECHLAB_API_KEY_{re.sub('[^A-Z0-9]', '_', name.upper())}"
            labs[name] = connect(url or None, api_key=(os.environ.get(variable) or None) if url else None)
        yield labs
    finally:
        for lab in labs.values():
            lab.close()


def settings_of(settings: Sequence[str], hotwords: Sequence[str]) -> dict[str, dict[str, Any]] | None:
    """Return the settings by name; with hotwords there is one with them and one without. None for one setting.

    Args:
        settings: ``NAME=JSON``, where JSON is an object of parameters.
        hotwords: Words that are likely.

    Raises:
        InvalidRequestError: One of them is no such text, or two have one name.
    """
    allowed = """NAME=JSON with the parameters of transcribe, as in --setting 'skipping={"vad": "on"}'"""
    found: dict[str, dict[str, Any]] = {}
    for name, text in _named("setting", settings, allowed).items():
        try:
            parameters = orjson.loads(text or "{}")
        except orjson.JSONDecodeError as error:
            message = f"--setting {name}: {text!r} is no JSON ({error}); give {allowed}"
            raise InvalidRequestError(message, parameter="setting") from error
        if not isinstance(parameters, dict):
            message = f"--setting {name}: {text!r} is no object; give {allowed}"
            raise InvalidRequestError(message, parameter="setting")
        found[name] = parameters
    if hotwords:
        if WITH_HOTWORDS in found:
            message = f"--hotword makes a setting called {WITH_HOTWORDS}; give yours another name"
            raise InvalidRequestError(message, parameter="setting")
        found = {**(found or {PLAIN: {}}), WITH_HOTWORDS: {"hotwords": list(hotwords)}}
    return found or None


def bands_of(bands: Sequence[str]) -> list[tuple[float, float]]:
    """Return bands as pairs of frequencies in Hz, from texts such as ``300-3400``.

    Raises:
        InvalidRequestError: One of them is no such text.
    """
    found = []
    for band in bands:
        ends = _BAND.fullmatch(band.strip())
        if ends is None:
            message = f"--band {band!r} is no band; give two frequencies in Hz, as in --band 300-3400"
            raise InvalidRequestError(message, parameter="band")
        found.append((float(ends[1]), float(ends[2])))
    return found


def _named(option: str, given: Sequence[str], allowed: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        name = name.strip()
        if not sign or not name:
            raise InvalidRequestError(f"--{option} {text!r} has no name; give {allowed}", parameter=option)
        if name in found:
            raise InvalidRequestError(
                f"--{option} {name} is given twice; give each a name of its own", parameter=option
            )
        found[name] = value.strip()
    return found
