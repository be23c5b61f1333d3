"""Checks of the catalogue (sections 2.1 and 4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from speechlab.conform._model import build_decorators
from speechlab.conform._probe.target import Target, list_formats
from speechlab.contract import DEFAULT_SAMPLE_RATE, AudioFormat, Gender, parse_uuid

check, advice = build_decorators(__name__)


class _VoiceEvidence(NamedTuple):
    """A voice as evidence."""

    sent: str
    came: str


def _pair_voices_with_evidence(t: Target) -> list[tuple[Any, _VoiceEvidence]]:
    reply = t.catalogue
    body = reply.parse_json()
    listed = body.get("voices") if isinstance(body, dict) else body
    t.insist_that(isinstance(listed, list), "an object with an array voices, or an array of voices", reply)
    assert isinstance(listed, list)
    return [(each, _VoiceEvidence(reply.sent, str(each)[:500])) for each in listed]


def _iterate_voice_objects(t: Target) -> Iterator[tuple[Any, _VoiceEvidence]]:
    for voice, evidence in _pair_voices_with_evidence(t):
        t.insist_that(isinstance(voice, dict), "each voice is an object", evidence)
        yield voice, evidence


@check("20-catalogue", "GET /tts/voices gives an object with voices, or a bare array")
def _check_catalogue(t: Target) -> None:
    reply = t.catalogue
    t.require_status(reply, 200)
    t.require_that(reply.media_type == "application/json", "application/json", reply)
    for voice, evidence in _pair_voices_with_evidence(t):
        t.require_that(isinstance(voice, dict), "each voice is an object", evidence)


@check("22-fields", "a voice has id, description, language, gender, formats and streaming")
def _check_required_fields(t: Target) -> None:
    ids: set[str] = set()
    for voice, evidence in _iterate_voice_objects(t):
        identity = voice.get("id")
        if t.require_that(isinstance(identity, str) and parse_uuid(identity), "id is a UUID", evidence):
            t.require_that(identity not in ids, "no id occurs twice", evidence)
            ids.add(identity)
        for name in ("description", "language"):
            t.require_that(isinstance(voice.get(name), str), f"{name} is a string", evidence)
        t.require_that(isinstance(voice.get("streaming"), bool), "streaming is a boolean", evidence)


@check("23-values", "gender, formats and sample_rates have the values that the contract lists")
def _check_field_values(t: Target) -> None:
    genders, formats = {str(each) for each in Gender}, {str(each) for each in AudioFormat}
    for voice, evidence in _iterate_voice_objects(t):
        t.require_that(voice.get("gender") in genders, "gender is Male, Female or Neutral", evidence)
        listed_ids = voice.get("formats")
        if t.require_that(isinstance(listed_ids, list), "formats is an array", evidence):
            t.require_that(len(list_formats(voice)) == len(listed_ids), "formats are strings", evidence)
            t.require_that(
                set(list_formats(voice)) <= formats, "formats are mp3, wav, ogg, pcm, flac", evidence
            )
        rates = voice.get("sample_rates")
        if rates is not None and t.require_that(
            isinstance(rates, list), "sample_rates is an array", evidence
        ):
            right = all(type(rate) is int and rate > 0 for rate in rates)
            t.require_that(right, "sample_rates are positive integers", evidence)


@advice("23-useful", "formats are not empty, without duplicates, and 24,000 Hz is a rate")
def _check_formats_and_rates(t: Target) -> None:
    for voice, evidence in _pair_voices_with_evidence(t):
        formats, rates = list_formats(voice), voice.get("sample_rates")
        right = formats and len(set(formats)) == len(formats)
        t.require_that(right, "at least one format, and none twice", evidence)
        if isinstance(rates, list):
            t.require_that(DEFAULT_SAMPLE_RATE in rates, "the default rate is among sample_rates", evidence)
