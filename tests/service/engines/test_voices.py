"""The voice catalogue."""

import pytest

from speechlab.engines import EngineVoice
from speechlab.service import Provider, ServedEngine, run_service, voice_uuid
from support.clients import Http
from support.staged import staged_config


@pytest.mark.engines
def test_s22_voices_have_the_same_ids_on_every_machine(live):
    ids = {voice["id"] for voice in live.request("GET", "/tts/voices").json()["voices"]}
    assert voice_uuid("hibari", "heart") == "53d1acf3-1ef1-5583-bcf8-dda6184fe486"
    expected = {("kokoro", "jf_alpha"), ("q", "q_kumo"), ("hibari", "heart"), ("openjtalk", "mei")}
    assert {voice_uuid(*names) for names in expected} <= ids


def test_s26_only_what_can_speak_is_listed_and_at_once(staged, error_body, hibari):
    staged.http.request("GET", "/tts/voices")
    staged.speaker.voices = (*staged.speaker.voices, EngineVoice("late", ("en",), "Female", "came later"))
    ids = {voice["id"] for voice in staged.http.request("GET", "/tts/voices").json()["voices"]}
    assert {staged.voice("plain"), staged.voice("late")} <= ids
    assert staged.speak("late").status == 200
    assert hibari not in ids
    body = error_body(staged.http.speak(voice_id=hibari, text="x", format="wav"), 400, "ErrUnknownVoice")
    assert hibari in body["error"]


def test_s26_a_broken_engine_does_not_silence_the_others(error_body):
    class Speaks:
        voices = (EngineVoice("one", ("en",), "Female", "speaks"),)

    def broken():
        raise OSError("no such library")

    bad, good = (
        ServedEngine(name, "synthesizer", create, Provider(name))
        for name, create in (("broken", broken), ("whole", Speaks))
    )
    with run_service(staged_config(bad, good)) as service:
        listed = Http(service.base_url).request("GET", "/tts/voices").json()["voices"]
        assert [voice["id"] for voice in listed] == [voice_uuid("whole", "one")]
        fields = {"voice_id": voice_uuid("broken", "one"), "text": "x", "format": "wav"}
        error_body(Http(service.base_url).speak(**fields), 400, "ErrUnknownVoice")
    with run_service(staged_config(bad)) as service:
        reply = Http(service.base_url).request("GET", "/tts/voices")
        assert "no such library" not in error_body(reply, 500, "ErrInternal")["error"]


def test_s7_s53_s86_services_that_are_off_are_404(stage, error_body):
    with stage(with_engines=False, key_requests_per_minute=1) as service:
        for method, path, where in 2 * (
            ("GET", "/tts/voices", "tts"),
            ("POST", "/tts", "tts"),
            ("POST", "/asr/srt/audio_llm", "asr"),
            ("POST", "/translate/", "translate"),
        ):
            reply = service.http.request(method, path, b"not json" if method == "POST" else None)
            assert error_body(reply, 404, "ErrServiceNotFound")["context"] == [where]
