"""Checks of the catalogue (sections 2.1 and 4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from speechlab.conform._model import checks_of
from speechlab.conform._probe.target import Target, formats_of
from speechlab.contract import DEFAULT_SAMPLE_RATE, AudioFormat, Gender, canonical_uuid

check, advice = checks_of(__name__)


class _Voice(NamedTuple):
    """A voice as evidence."""

    sent: str
    came: str


def _listed(t: Target) -> list[tuple[Any, _Voice]]:
    reply = t.catalogue
    body = reply.json()
    listed = body.get("voices") if isinstance(body, dict) else body
    t.insist(isinstance(listed, list), "an object with an array voices, or an array of voices", reply)
    assert isinstance(listed, list)
    return [(each, _Voice(reply.sent, str(each)[:500])) for each in listed]


def _objects(t: Target) -> Iterator[tuple[Any, _Voice]]:
    for voice, evidence in _listed(t):
        t.insist(isinstance(voice, dict), "each voice is an object", evidence)
        yield voice, evidence


@check("20-catalogue", "GET /tts/voices gives an object with voices, or a bare array")
def _catalogue(t: Target) -> None:
    reply = t.catalogue
    t.answers(reply, 200)
    t.require(reply.media_type == "application/json", "application/json", reply)
    for voice, evidence in _listed(t):
        t.require(isinstance(voice, dict), "each voice is an object", evidence)


@check("22-fields", "a voice has id, description, language, gender, formats and streaming")
def _fields(t: Target) -> None:
    ids: set[str] = set()
    for voice, evidence in _objects(t):
        identity = voice.get("id")
        if t.require(isinstance(identity, str) and canonical_uuid(identity), "id is a UUID", evidence):
            t.require(identity not in ids, "no id occurs twice", evidence)
            ids.add(identity)
        for name in ("description", "language"):
            t.require(isinstance(voice.get(name), str), f"{name} is a string", evidence)
        t.require(isinstance(voice.get("streaming"), bool), "streaming is a boolean", evidence)


@check("23-values", "gender, formats and sample_rates have the values that the contract lists")
def _values(t: Target) -> None:
    genders, formats = {str(each) for each in Gender}, {str(each) for each in AudioFormat}
    for voice, evidence in _objects(t):
        t.require(voice.get("gender") in genders, "gender is Male, Female or Neutral", evidence)
        listed_ids = voice.get("formats")
        if t.require(isinstance(listed_ids, list), "formats is an array", evidence):
            t.require(len(formats_of(voice)) == len(listed_ids), "formats are strings", evidence)
            t.require(set(formats_of(voice)) <= formats, "formats are mp3, wav, ogg, pcm, flac", evidence)
        rates = voice.get("sample_rates")
        if rates is not None and t.require(isinstance(rates, list), "sample_rates is an array", evidence):
            right = all(type(rate) is int and rate > 0 for rate in rates)
            t.require(right, "sample_rates are positive integers", evidence)


@advice("23-useful", "formats are not empty, without duplicates, and 24,000 Hz is a rate")
def _useful(t: Target) -> None:
    for voice, evidence in _listed(t):
        formats, rates = formats_of(voice), voice.get("sample_rates")
        right = formats and len(set(formats)) == len(formats)
        t.require(right, "at least one format, and none twice", evidence)
        if isinstance(rates, list):
            t.require(DEFAULT_SAMPLE_RATE in rates, "the default rate is among sample_rates", evidence)
