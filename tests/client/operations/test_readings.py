"""The last column of docs/contract.md: what a client does with a service that reads the contract otherwise."""

from __future__ import annotations

import pytest

from speechlab.contract import Voice
from speechlab.errors import ContractError, InvalidRequestError, SegmentError


def test_024_027_032_to_039_options_of_speech(server, lab, http, clip):
    both = {"formats": ["ogg", "wav"], "sample_rates": [16_000, 24_000]}
    unknown = {name: value for name, value in http.VOICE.items() if name != "sample_rates"}
    for fields, options, sent in (
        ({**http.VOICE, **both}, {"sample_rate": 24_000, "temperature": 0.0}, {"sample_rate", "temperature"}),
        ({**http.VOICE, **both}, {}, set()),
        (unknown, {"sample_rate": 44_100}, {"sample_rate"}),  # only the service knows its providers
    ):
        server.script(http.reply(body=clip.encode("ogg"), content_type="audio/ogg"))
        lab.synthesize("a", voice=Voice.parse(fields), format="ogg", **options)
        body = server.requests[0].json
        assert set(body) == {"voice_id", "text", "format", *sent}
        assert {name: body[name] for name in sent} == options
    lab.synthesize("a", voice=http.VOICE_ID.upper(), format="ogg")
    assert server.requests[1].json["voice_id"] == http.VOICE_ID  # in lower case
    one = Voice.parse({**http.VOICE, "sample_rates": [24_000], "streaming": False})
    for call, told in (
        (lambda: lab.synthesize("a", voice=one, sample_rate=24_000), "has one rate"),
        (lambda: lab.stream_speech("a", voice=one).open(), "does not stream"),
    ):
        with pytest.raises(InvalidRequestError, match=told):
            call()
    assert len(server.requests) == 2


def test_064_067_071_what_is_sent_for_other_spellings(server, lab, http, wav):
    server.script(http.reply(body={"text": "a"}))
    for given, sent in (
        ({"language": "ja-JP"}, {"language": "ja"}),
        ({"vad": "1"}, {"vad": "on"}),
        ({"vad": 0}, {"vad": "off"}),
        ({"session_id": "x" * 128}, {"session_id": "x" * 128}),
    ):
        lab.transcribe(wav, **given)
        body = server.requests[-1].json
        assert {name: value for name, value in body.items() if name != "audio"} == sent


def test_078_079_082_either_form_of_a_transcript(server, lab, http, wav):
    timed = {"start": 0, "end": 1, "text": "b"}
    server.script(http.reply(body={"text": "a"}))
    plain = lab.transcribe(wav, vad="segments")
    assert (plain.text, plain.pieces, plain.confidence, len(plain.segments)) == ("a", None, None, 0)
    for text, segments in (("a", [timed]), ("", [])):
        server.script(http.reply(body={"text": text, "confidence": 0, "segments": segments}))
        found = lab.transcribe(wav)
        assert (found.text, found.confidence, len(found.segments)) == (text, 0, len(segments))
    server.script(http.reply(body={"segments": [{**timed, "end": -1}]}))
    odd = lab.transcribe(wav, vad="segments")
    assert (odd.text, odd.pieces[0].end) == ("b", -1)
    with pytest.raises(SegmentError):
        _ = odd.segments
    server.script(http.reply(body={"language": "en"}))
    with pytest.raises(ContractError, match="neither text nor segments"):
        lab.transcribe(wav)


def test_092_098_100_translations_of_others(server, lab, http):
    choice = {"message": {"role": "model", "content": "Hi"}, "finish_reason": "length"}
    server.script(http.reply(body={"choices": [choice], "model": "another"}))
    result = lab.translate("a", source_lang="x-any", target_lang="en-GB", model="mine")
    assert (result.text, result.model, result.usage) == ("Hi", "another", None)
    assert b"x-any" in server.requests[0].body
