"""The last column of docs/contract.md: what a client does with a service that reads the contract otherwise."""

from __future__ import annotations

import pytest

from speechlab.contract import Voice
from speechlab.errors import ContractError, InvalidRequestError, SegmentError

LANGUAGES = {"source_lang": "ja", "target_lang": "en"}


def speak(lab, http, **options):
    fields = {name: options.pop(name) for name in ("sample_rates", "formats") if name in options}
    return lab.synthesize("a", voice=Voice.parse({**http.VOICE, **fields}), **options)


def test_027_ids_are_sent_in_lower_case(server, lab, http, wav):
    server.script(http.reply(body=wav, content_type="audio/wav"))
    lab.synthesize("a", voice=http.VOICE_ID.upper())
    assert server.requests[0].json["voice_id"] == http.VOICE_ID


def test_035_the_rate_of_a_voice_with_one_is_never_sent(server, lab, http):
    with pytest.raises(InvalidRequestError, match="has one rate"):
        speak(lab, http, sample_rates=[24_000], sample_rate=24_000)
    assert server.requests == []


def test_032_034_037_039_options_of_speech(server, lab, http, clip):
    server.script(http.reply(body=clip.encode("ogg"), content_type="audio/ogg"))
    both = {"sample_rates": [16_000, 24_000], "formats": ["ogg", "wav"]}
    speak(lab, http, **both, format="ogg", sample_rate=24_000, temperature=0.0)
    sent = server.requests[0].json
    assert sent["sample_rate"] == 24_000  # only the service knows its providers
    assert sent["temperature"] == 0.0
    assert "stream" not in sent
    speak(lab, http, **both, format="ogg")
    assert set(server.requests[1].json) == {"voice_id", "text", "format"}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"language": "ja-JP"}, {"language": "ja"}),
        ({"language": "de"}, {"language": "de"}),
        ({"vad": "1"}, {"vad": "on"}),
        ({"vad": 0}, {"vad": "off"}),
        ({"session_id": "x" * 128}, {"session_id": "x" * 128}),
    ],
)
def test_064_067_071_what_is_sent_for_other_spellings(server, lab, http, wav, given, sent):
    server.script(http.reply(body={"text": "a"}))
    lab.transcribe(wav, **given)
    assert {name: value for name, value in server.requests[0].json.items() if name != "audio"} == sent


def test_078_079_082_either_form_of_a_transcript(server, lab, http, wav):
    timed = {"start": 0, "end": 1, "text": "b"}
    server.script(http.reply(body={"text": "a"}))
    plain = lab.transcribe(wav, vad="segments")
    assert (plain.text, plain.pieces, plain.confidence, len(plain.segments)) == ("a", None, None, 0)
    server.script(http.reply(body={"text": "a", "segments": [timed]}))
    assert len(lab.transcribe(wav).segments) == 1
    server.script(http.reply(body={"segments": [{**timed, "end": -1}]}))
    odd = lab.transcribe(wav, vad="segments")
    assert (odd.text, odd.pieces[0].end) == ("b", -1)
    with pytest.raises(SegmentError):
        _ = odd.segments
    server.script(http.reply(body={"text": "", "confidence": 0}))
    assert (lab.transcribe(wav).text, lab.transcribe(wav).confidence) == ("", 0)
    server.script(http.reply(body={"language": "en"}))
    with pytest.raises(ContractError, match="neither text nor segments"):
        lab.transcribe(wav)


def test_092_098_100_translations_of_others(server, lab, http):
    choice = {"message": {"role": "model", "content": "Hi"}, "finish_reason": "length"}
    server.script(http.reply(body={"choices": [choice], "model": "another"}))
    result = lab.translate("a", source_lang="x-any", target_lang="en-GB", model="mine")
    assert (result.text, result.model, result.usage) == ("Hi", "another", None)
    assert b"x-any" in server.requests[0].body
    assert server.requests[0].path == "/translate/"
