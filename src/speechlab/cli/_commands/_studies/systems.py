"""Options of ``speechlab study`` for columns, services, settings, terms and bands, read from words and files."""

from __future__ import annotations

import csv
import os
import re
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from speechlab.client import Client, OpenAIAdapter, Secret

_BAND = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")
PLAIN = "plain"
"""What the setting is called beside which others are put."""


@contextmanager
def connected(services: Sequence[str], adapters: Sequence[str] = ()) -> Iterator[Any]:
    """Connect to the usual service, or to several by name, each with a key of its own.

    The key of ``theirs`` is that of ``SPEECHLAB_API_KEY_THEIRS``, or else that of ``speechlab login``. The key of the
    usual service is sent to no other.

    Args:
        services: ``NAME=URL``; an empty URL is the usual service.
        adapters: ``NAME=JSON`` for those that speak OpenAI's API: what an ``OpenAIAdapter`` is told.

    Yields:
        A client; with names, clients by name.

    Raises:
        InvalidRequestError: One of them is no such text, two have one name, or there is no key for one.
    """
    from speechlab import connect

    spoken = _adapters(adapters)
    addresses = _named("service", services, "NAME=URL, as in --service ours= --service theirs=https://…")
    for name in spoken:
        if not addresses.get(name):
            message = (
                f"--openai {name} is of no service; give its address as well: --service {name}=https://…/v1"
            )
            raise InvalidRequestError(message, parameter="openai")
    if not services:
        with connect() as lab:
            yield lab
        return
    labs: dict[str, Client] = {}
    try:
        for name, url in addresses.items():
            labs[name] = connect(url or None, api_key=_key(name, url), adapter=spoken.get(name))
        yield labs
    finally:
        for lab in labs.values():
            lab.close()


def _key(name: str, url: str) -> str | Secret | None:
    """The key for a service; None for the usual one, whose key ``connect`` finds."""
    from speechlab.client import BASE_URL_VARIABLE, plain_url, remembered_key

    usual = os.environ.get(BASE_URL_VARIABLE)
    variable = f"SPEECHLAB_API_KEY_{re.sub('[^A-Z0-9]', '_', name.upper())}"
    if url and (own := os.environ.get(variable)):
        return own
    if not url or (usual and plain_url(url) == plain_url(usual)):
        return None
    if (kept := remembered_key(plain_url(url))) is None:
        message = (
            f"there is no key for --service {name}; set {variable} (to any word where none is asked for), or keep it "
            f"by `speechlab login --base-url {url}`: the key of the usual service is sent to no other"
        )
        raise InvalidRequestError(message, parameter="service")
    return kept


def _adapters(given: Sequence[str]) -> dict[str, OpenAIAdapter]:
    from speechlab.client import OpenAIAdapter

    allowed = """NAME=JSON with models and voices, as in --openai 'theirs={"translation": "gpt-4o"}'"""
    known = {field.name for field in fields(OpenAIAdapter)}
    found = {}
    for name, told in _objects("openai", given, allowed).items():
        if strange := [one for one in told if one not in known]:
            message = f"--openai {name}: there is no {strange[0]!r}; there are {', '.join(sorted(known))}"
            raise InvalidRequestError(message, parameter="openai")
        found[name] = OpenAIAdapter(**told)
    return found


def settings_of(
    settings: Sequence[str], switched: Mapping[str, Mapping[str, Any]], call: str
) -> dict[str, dict[str, Any]] | None:
    """Return the settings by name; None for one setting.

    Args:
        settings: ``NAME=JSON``, where JSON is an object of parameters.
        switched: What is compared with a setting without it, by name; what holds an empty value is left out.
        call: The call whose parameters they are.

    Raises:
        InvalidRequestError: One of them is no such text, or two have one name.
    """
    example = (
        """'skipping={"vad": "on"}'""" if call == "transcribe" else """'formal={"context": "A letter."}'"""
    )
    found = _objects(
        "setting", settings, f"NAME=JSON with the parameters of {call}, as in --setting {example}"
    )
    on = {name: dict(given) for name, given in switched.items() if all(given.values())}
    for name in on:
        if name in found:
            message = f"another option makes a setting called {name}; give yours another name"
            raise InvalidRequestError(message, parameter="setting")
    return {**(found or {PLAIN: {}}), **on} if on else found or None


def glossary_of(file: Path | None) -> Any:
    """Return the terms of a file, as ``evaluate.translation`` takes them.

    Args:
        file: ``.json`` with a list of terms, or an object from terms to what will do for them; ``.csv`` or ``.tsv``
            with the columns ``term`` and, where terms are translated, ``target``, a row for each word that will do;
            or any other text, a term in each line. None for no terms.

    Raises:
        InvalidRequestError: It cannot be read as such.
    """
    if file is None:
        return ()
    try:
        text = file.read_text("utf-8-sig")
        if file.suffix.lower() == ".json":
            return orjson.loads(text)
    except (OSError, ValueError) as error:
        message = f"--glossary {file}: it cannot be read ({error})"
        raise InvalidRequestError(message, parameter="glossary") from error
    if file.suffix.lower() not in {".csv", ".tsv"}:
        return [line.strip() for line in text.splitlines() if line.strip()]
    rows = csv.DictReader(text.splitlines(), delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
    if "term" not in (rows.fieldnames or ()):
        message = f"--glossary {file}: there is no column 'term'; name the columns term and target in the first line"
        raise InvalidRequestError(message, parameter="glossary")
    found: dict[str, list[str]] = {}
    for row in rows:
        term = (row["term"] or "").strip()
        if term:
            found.setdefault(term, []).append((row.get("target") or "").strip() or term)
    return found


def voices_of(
    voices: Sequence[str], services: Sequence[str]
) -> list[str] | dict[str, list[str] | None] | None:
    """Return the voices of one service, or of each of several; None for all that fit.

    Args:
        voices: Ids or names; of several services ``NAME=VOICE``.
        services: As :func:`connected` takes them.

    Raises:
        InvalidRequestError: A voice of several services does not say of which it is.
    """
    if not services or not voices:
        return list(voices) or None
    names = [text.partition("=")[0].strip() for text in services]
    found: dict[str, list[str] | None] = dict.fromkeys(names)
    for text in voices:
        name, sign, voice = text.partition("=")
        if not sign or name.strip() not in found:
            message = (
                f"--voice {text!r} is of none of the services {', '.join(names)}; give NAME=VOICE, as in "
                f"--voice {names[0]}=heart"
            )
            raise InvalidRequestError(message, parameter="voice")
        found[name.strip()] = [*(found[name.strip()] or []), voice.strip()]
    return found


def voice_of(voices: Sequence[str], services: Sequence[str]) -> str | dict[str, str]:
    """Return the voice of one service, or that of each of several.

    Raises:
        InvalidRequestError: There is not one voice for each service.
    """
    found = voices_of(voices, services)
    parts = found if isinstance(found, dict) else {"": found}
    if any(one is None or len(one) != 1 for one in parts.values()):
        message = (
            "give one voice for each service, as in --voice heart, or --voice ours=heart --voice theirs=nova"
        )
        raise InvalidRequestError(message, parameter="voice")
    chosen = {name: one[0] for name, one in parts.items() if one}
    return chosen if isinstance(found, dict) else chosen[""]


def columns_of(columns: Sequence[str], roles: Sequence[str]) -> dict[str, str]:
    """Return the table's own names of columns by what they hold.

    Args:
        columns: ``ROLE=NAME``.
        roles: What a column of this study can hold.

    Raises:
        InvalidRequestError: One of them is no such text, or holds something else.
    """
    found = _named("column", columns, f"ROLE=NAME, as in --column {roles[0]}=NAME")
    if strange := [role for role in found if role not in roles]:
        message = f"--column {strange[0]}: this study has no such column; its columns are {', '.join(roles)}"
        raise InvalidRequestError(message, parameter="column")
    return found


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
                f"--{option} {name} is given twice; leave one out, or give it another name", parameter=option
            )
        found[name] = value.strip()
    return found


def _objects(option: str, given: Sequence[str], allowed: str) -> dict[str, dict[str, Any]]:
    """Objects of JSON by name; nothing behind the sign is an empty one."""
    found: dict[str, dict[str, Any]] = {}
    for name, text in _named(option, given, allowed).items():
        try:
            parameters = orjson.loads(text or "{}")
        except orjson.JSONDecodeError as error:
            message = f"--{option} {name}: {text!r} is no JSON ({error}); give {allowed}"
            raise InvalidRequestError(message, parameter=option) from error
        if not isinstance(parameters, dict):
            message = f"--{option} {name}: {text!r} is no object; give {allowed}"
            raise InvalidRequestError(message, parameter=option)
        found[name] = parameters
    return found
