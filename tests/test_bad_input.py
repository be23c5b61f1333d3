"""Bad input, over a real socket: each mistake has an error of its own, which says what to do.

What the client can know is refused before anything is sent; the same mistake, sent all the same, is refused by the
service. Both answers are looked at.
"""

from __future__ import annotations

import base64

import pytest

import speechlab as sl
from support.sockets import nobody

pytestmark = pytest.mark.engines

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def heart(lab):
    return lab.voices()["heart"]


@pytest.fixture(scope="module")
def mei(lab):
    return lab.voices()["mei"]


def speech(voice, **changes):
    return {"voice_id": voice.id, "text": "Hello.", "format": "wav", **changes}


def refused_here(call, *, parameter, words):
    with pytest.raises(sl.InvalidRequestError) as caught:
        call()
    assert caught.value.parameter == parameter
    assert words in str(caught.value)


def refused_there(lab, fields, *, status=400, words, path="/tts"):
    reply = lab.request("POST", path, json=fields)
    assert reply.status == status, reply.text
    assert words in reply.json()["error"]


def test_unknown_voice(lab, heart):
    refused_here(
        lambda: lab.synthesize("Hello.", voice="Nobody"), parameter="voice_id", words="fits no voice"
    )
    refused_there(lab, speech(heart, voice_id=NOBODY), words="voice")
    refused_there(lab, speech(heart, voice_id="heart"), words="is not a UUID")


def test_unsupported_format_and_rate(lab, heart, mei):
    refused_here(lambda: lab.synthesize("Hi.", voice=heart, format="aac"), parameter="format", words="'aac'")
    refused_there(lab, speech(heart, format="aac"), words="mp3, wav, ogg, pcm, flac")
    refused_here(
        lambda: lab.synthesize("Hi.", voice=heart, sample_rate=12345), parameter="sample_rate", words="12,345"
    )
    refused_there(lab, speech(heart, sample_rate=12345), words="12,345")
    refused_here(
        lambda: lab.synthesize("こんにちは。", voice=mei, sample_rate=24000),
        parameter="sample_rate",
        words="one rate",
    )
    refused_there(lab, speech(heart, format="flac", stream=True), words="cannot stream")


def test_empty_and_long_texts(lab, heart):
    for text, words in (("", "empty"), ("\N{IDEOGRAPHIC SPACE}", "empty"), ("a" * 5001, "5,001 characters")):
        refused_here(lambda text=text: lab.synthesize(text, voice=heart), parameter="text", words=words)
        refused_there(lab, speech(heart, text=text), words=words)


def test_audio_that_is_not_audio(lab, tmp_path):
    (tmp_path / "letter.wav").write_text("Dear Sir or Madam")
    with pytest.raises(sl.InvalidRequestError, match="WAV, OGG, MP3 and FLAC"):
        lab.transcribe(tmp_path / "letter.wav")
    with pytest.raises(FileNotFoundError, match=r"gone\.wav"):
        lab.transcribe(tmp_path / "gone.wav")
    path = "/asr/srt/audio_llm"
    refused_there(
        lab,
        {"audio": base64.b64encode(b"Dear Sir or Madam").decode()},
        words="Unsupported audio format",
        path=path,
    )
    refused_there(lab, {"audio": "Dear Sir"}, words="Invalid base64 audio data", path=path)
    refused_there(lab, {}, words="No audio data provided", path=path)


def test_a_damaged_recording(lab, heart):
    data = lab.synthesize("Hello there.", voice=heart, format="flac").encoded
    broken = data[: len(data) // 2]
    refused_there(
        lab,
        {"audio": base64.b64encode(broken).decode()},
        words="Unsupported audio format",
        path="/asr/srt/audio_llm",
    )


def test_a_wrong_key(live_service):
    for key in ("sl:wrong", "no-colon"):
        with sl.Client(base_url=live_service.base_url, api_key=key) as stranger:
            with pytest.raises(sl.AuthenticationError) as caught:
                stranger.voices()
            assert (caught.value.status, caught.value.code) == (401, 104)
            assert caught.value.message == "Authentication error: Invalid token"
            assert caught.value.advice.startswith("give a valid key")
            assert caught.value.request_id == caught.value.headers["x-request-id"]
            assert key not in str(caught.value)


def test_nobody_listens():
    with (
        nobody() as address,
        sl.Client(base_url=f"http://{address}", api_key="sl:any", max_retries=0) as lab,
    ):
        with pytest.raises(sl.APIConnectionError, match="check base_url") as caught:
            lab.voices()
        assert address in str(caught.value)


def test_no_such_host():
    lab = sl.Client(base_url="https://speech.invalid", api_key="sl:any", max_retries=0)
    with lab, pytest.raises(sl.APIConnectionError, match=r"speech\.invalid"):
        lab.voices()
