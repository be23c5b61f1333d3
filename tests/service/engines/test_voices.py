"""The voice catalogue."""

from __future__ import annotations

import uuid

import pytest

from speechlab.contract import AudioFormat, Gender, VoiceList
from speechlab.engines import EngineVoice
from speechlab.service import Provider, ServedEngine, voice_uuid


def test_s20_s22_s23_the_catalogue_is_as_described(live):
    reply = live.request("GET", "/tts/voices")
    assert set(reply.json()) == {"voices"}
    voices = reply.json()["voices"]
    assert len(voices) >= 9
    for voice in voices:
        assert list(voice) == [
            "id", "description", "language", "gender", "formats", "sample_rates", "streaming",
        ]  # fmt: skip
        assert str(uuid.UUID(voice["id"])) == voice["id"]
        assert voice["gender"] in set(Gender)
        assert voice["formats"]
        assert set(voice["formats"]) <= set(AudioFormat)
        assert len(set(voice["formats"])) == len(voice["formats"])
        assert all(type(rate) is int and rate > 0 for rate in voice["sample_rates"])
        assert 24_000 in voice["sample_rates"]
        assert voice["streaming"] is True
        assert set(voice["language"].split(", ")) <= {"ja", "en"}
    assert len({voice["id"] for voice in voices}) == len(voices)
    assert VoiceList.parse(reply.json()).voices[0].sample_rates


def test_s22_ids_are_the_same_on_every_machine(live):
    ids = {voice["id"] for voice in live.request("GET", "/tts/voices").json()["voices"]}
    assert voice_uuid("hibari", "heart") == "53d1acf3-1ef1-5583-bcf8-dda6184fe486"
    expected = {("kokoro", "jf_alpha"), ("q", "q_kumo"), ("hibari", "heart"), ("openjtalk", "mei")}
    assert {voice_uuid(*names) for names in expected} <= ids


def test_s26_only_what_can_speak_is_listed_and_the_rest_is_unknown(staged, error_body, hibari):
    ids = {voice["id"] for voice in staged.http.request("GET", "/tts/voices").json()["voices"]}
    assert staged.voice("plain") in ids
    assert hibari not in ids
    body = error_body(staged.http.speak(voice_id=hibari, text="x", format="wav"), 400, "ErrUnknownVoice")
    assert hibari in body["error"]


def test_s26_a_voice_that_is_added_later_can_be_used_at_once(staged):
    staged.http.request("GET", "/tts/voices")
    staged.speaker.voices = (*staged.speaker.voices, EngineVoice("late", ("en",), "Female", "came later"))
    ids = {voice["id"] for voice in staged.http.request("GET", "/tts/voices").json()["voices"]}
    assert staged.voice("late") in ids
    assert staged.http.speak(voice_id=staged.voice("late"), text="x", format="wav").status == 200


def test_s26_an_engine_that_cannot_be_made_does_not_silence_the_others():
    from speechlab.service._engines.lanes import EngineLane
    from speechlab.service._engines.sharing import FairTurns
    from speechlab.service._engines.threads import Threads
    from speechlab.service._engines.voices import Catalogue

    class Speaks:
        voices = (EngineVoice("one", ("en",), "Female", "speaks"),)

    def broken():
        raise OSError("no such library")

    def lane(name, create):
        entry = ServedEngine(name, "synthesizer", create, Provider(name))
        return EngineLane(entry, Threads(), FairTurns(), concurrency=1, queue_limit=1)

    catalogue = Catalogue([lane("broken", broken), lane("whole", Speaks)])
    assert [voice["id"] for voice in catalogue.build_listing()["voices"]] == [voice_uuid("whole", "one")]
    assert catalogue.find_voice(voice_uuid("whole", "one")) is not None
    assert catalogue.find_voice(voice_uuid("broken", "one")) is None
    with pytest.raises(OSError, match="no such library"):
        Catalogue([lane("broken", broken)]).build_listing()


def test_s53_s86_services_that_are_not_registered_are_404(stage, error_body):
    with stage(with_engines=False) as service:
        for method, path, where in (
            ("GET", "/tts/voices", "tts"),
            ("POST", "/tts", "tts"),
            ("POST", "/asr/srt/audio_llm", "asr"),
            ("POST", "/translate/", "translate"),
        ):
            body = error_body(
                service.http.request(method, path, b"not json" if method == "POST" else None),
                404,
                "ErrServiceNotFound",
            )
            assert body["context"] == [where]
