"""POST /asr/srt/audio_llm. The engine is staged where only what reaches it counts, and Whisper where words do."""

import base64

import numpy as np
import pytest

from speechlab.audio import decode, encode
from speechlab.contract import ASR_UNAVAILABLE
from speechlab.errors import EngineError, MissingDependencyError, ModelError

PATH = "/asr/srt/audio_llm"


def tone(seconds: float = 0.5, rate: int = 16_000, channels: int = 1, kind: str = "wav") -> bytes:
    wave = 0.3 * np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * 440 / rate).astype(np.float32)
    return encode(wave if channels == 1 else np.stack([wave] * channels, axis=1), kind, rate)


def test_s61_s63_faults_of_engines(staged, error_body):
    for fault in (ModelError("no weights"), MissingDependencyError("pip install it")):
        staged.ears.fault = fault
        reply = staged.http.recognize(tone())
        assert error_body(reply, 500, "ErrInternal")["error"] == ASR_UNAVAILABLE
        assert reply.headers["x-should-retry"] == "false"
        assert reply.headers["x-speechlab-reason"]
    for fault, said in (
        (EngineError("the decoder ran away"), "the decoder ran away"),
        (EngineError("/var/cache/models/whisper/model.bin: read error"), "model.bin: read error"),
        (RuntimeError("some secret text"), "RuntimeError"),
    ):
        staged.ears.fault = fault
        message = error_body(staged.http.recognize(tone()), 500, "ErrInternal")["error"]
        assert message == f"Transcription failed: {said}"
    staged.ears.fault = None
    assert staged.http.recognize(tone()).status == 200


def test_s69_s72_s74_s75_defaults_reach_the_engine(staged):
    staged.http.recognize(tone(), vad="segments")
    options = staged.ears.calls[-1][1]
    defaults = {
        "language": None, "hotwords": (), "temperature": 0.0, "top_p": 0.85, "frequency_penalty": 0.5,
        "repetition_penalty": 1.05, "vad": "segments", "min_silence_gap": 400, "segment_padding": 100,
        "initial_segment_padding_ms": 1500, "speech_pad_ms": 200, "min_segment_duration": 1.5,
    }  # fmt: skip
    assert {name: getattr(options, name) for name in defaults} == defaults
    staged.http.recognize(tone())
    assert staged.ears.calls[-1][1].vad == "off"


def test_s68_s69_s74_s75_bounds_reach_the_engine(staged):
    given = {
        "hotwords": ["東京", "SpeechLab"], "temperature": 2, "top_p": 0, "frequency_penalty": -2,
        "repetition_penalty": 2.0, "vad": "segments", "min_silence_gap": 0, "segment_padding": 5_000,
        "initial_segment_padding_ms": 0, "speech_pad_ms": 0, "min_segment_duration": 0,
    }  # fmt: skip
    assert staged.http.recognize(tone(), **given).status == 200
    options = staged.ears.calls[-1][1]
    assert {name: getattr(options, name) for name in given} == {**given, "hotwords": ("東京", "SpeechLab")}


def test_s83_the_legacy_shape_means_vad(staged):
    audio = base64.b64encode(tone()).decode()
    for part in (
        {"type": "input_audio", "input_audio": {"data": audio, "format": "wav"}},
        {"type": "audio_url", "audio_url": {"url": f"data:audio/wav;base64,{audio}"}},
    ):
        fields = {"model": "whatever", "messages": [{"role": "user", "content": [5, part]}]}
        assert staged.http.post_json(PATH, fields).json()["text"] == "heard"
        assert staged.ears.calls[-1][1].vad == "on"


@pytest.mark.slow
def test_s87_recordings_are_refused_by_their_decoded_size(stage, error_body):
    silence = encode(np.zeros(16_000 * 100, dtype=np.float32), "flac", 16_000)
    with stage(audio_seconds=10.0) as service:
        told = error_body(service.http.recognize(silence), 413, "ErrTooLarge")["error"]
        assert "10 s (audio_seconds)" in told
        assert service.ears.calls == []
        # Within the seconds, but with more channels than so much speech has.
        for dense in (tone(8.0, channels=8), tone(0.1, channels=9)):
            error_body(service.http.recognize(dense), 413, "ErrTooLarge")
        assert service.http.recognize(tone()).status == 200
    with stage(asr_body_bytes=10_000) as service:
        error_body(service.http.recognize(tone(1.0)), 413, "ErrTooLarge")


@pytest.mark.engines
def test_s66_s78_s79_real_speech_is_heard(live, hibari):
    wav = live.speak(
        voice_id=hibari, text="The train to London leaves at noon. Please do not be late.", format="mp3"
    ).body
    plain = live.recognize(wav)
    assert plain.status == 200
    assert plain.json()["language"] == "en"
    assert "london" in plain.json()["text"].lower()
    assert 0 < plain.json()["confidence"] <= 1
    assert plain.headers["x-speechlab-model"]
    timed = live.recognize(wav, vad="segments", min_segment_duration=0, language="en").json()
    assert "text" not in timed
    assert "london" in " ".join(piece["text"] for piece in timed["segments"]).lower()
    position, length = 0.0, decode(wav).duration_s + 1 / 16_000  # it was resampled for the engine
    for piece in timed["segments"]:
        assert position <= piece["start"] < piece["end"] <= length
        position = piece["end"]
