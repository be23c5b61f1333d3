"""``/ws/tts/realtime`` over real sockets: what a session says, in which order, with which figures."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import time

import pytest
import soundfile

from speechlab.contract import CONTENT_TYPES, AudioFormat
from speechlab.service import Database, Ledger, voice_uuid

TEXT = "A short sentence. And another one, to be heard after it."


def joined(events) -> bytes:
    return b"".join(
        event if isinstance(event, bytes) else base64.b64decode(event["audio"], validate=True)
        for event in events
        if isinstance(event, bytes) or event["type"] == "tts.audio.delta"
    )


def kinds(events) -> list[str]:
    return ["audio" if isinstance(event, bytes) else event["type"] for event in events]


@pytest.mark.slow
def test_114_125_126_a_session_on_the_real_engine(live, talk, hibari):
    with talk(live) as client:
        assert client.silent(0.5)  # 125
        created = client.configure(voice_id=hibari.upper(), format="wav")
        session = created["session"]
        assert set(created) == {"type", "session"}
        assert session.pop("id")
        assert session == {
            "service": "speechlab/tts",
            "voice_id": hibari,
            "format": "wav",
            "sample_rate": 24_000,
            "model": session["model"],
        }
        assert session["model"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mp3", "wav", "ogg", "pcm"])
@pytest.mark.parametrize("transport", [None, "binary", "base64_json"])
def test_140_to_146_every_format_over_both_transports(live, talk, hibari, name, transport):
    with talk(live) as client:
        created = client.configure(
            voice_id=hibari, format=name, sample_rate=16_000, audio_transport=transport
        )["session"]
        requests = set()
        for number in (1, 2):
            events = client.speak(TEXT, id=f"c{number}")
            start, *audio, done, usage = events
            base64_json = transport == "base64_json"
            assert start == {
                "type": "tts.audio.start",
                "id": f"c{number}",
                "request_id": start["request_id"],
                "format": name,
                "content_type": CONTENT_TYPES[AudioFormat(name)],
                "sample_rate": 16_000,
                "voice_id": hibari,
                "model": created["model"],
                "audio_transport": "base64_json" if base64_json else "binary",
            }
            assert set(kinds(audio)) == {"tts.audio.delta" if base64_json else "audio"}
            if base64_json:
                assert [delta["seq"] for delta in audio] == list(range(len(audio)))
                assert {(delta["id"], delta["request_id"]) for delta in audio} == {
                    (f"c{number}", start["request_id"])
                }
            data = joined(audio)
            assert done == {
                "type": "tts.audio.done",
                "id": f"c{number}",
                "request_id": start["request_id"],
                "audio_bytes": len(data),
                "chunks": len(audio),
            }
            assert usage == {
                "type": "tts.usage",
                "request_id": start["request_id"],
                "session_id": created["id"],
                "client_id": f"c{number}",
                "model": created["model"],
                "usage": {
                    "input_chars": len(TEXT),
                    "input_bytes": len(TEXT),
                    "audio_bytes": len(data),
                    "status": "completed",
                    "final": True,
                },
            }
            requests.add(start["request_id"])
            if name != "pcm":
                _, rate = soundfile.read(io.BytesIO(data))
                assert rate == 16_000
        assert len(requests) == 2


@pytest.mark.slow
def test_142_both_transports_and_http_give_the_same_audio(live, talk, hibari):
    whole = live.speak(voice_id=hibari, text=TEXT, format="pcm").body
    for transport in ("binary", "base64_json"):
        with talk(live) as client:
            client.configure(voice_id=hibari, format="pcm", audio_transport=transport)
            assert joined(client.speak(TEXT)) == whole


def test_044_audio_comes_before_the_synthesis_ends(staged, talk):
    with talk(staged.http) as client:
        client.configure(voice_id=staged.voice("gated"), format="pcm")
        client.send(type="tts.speak", text="a")
        assert client.event()["type"] == "tts.audio.start"
        assert len(client.event()) == 24_000
        assert client.silent(0.2)
        staged.speaker.gate.set()
        assert kinds(client.until_usage()) == ["audio", "tts.audio.done", "tts.usage"]


def test_145_usage_counts_code_points_and_bytes(staged, talk):
    with talk(staged.http) as client:
        client.configure(voice_id=staged.voice("plain"), format="wav")
        usage = client.speak("𠮷é a")[-1]
        assert (usage["usage"]["input_chars"], usage["usage"]["input_bytes"]) == (4, 8)
        assert usage["client_id"] is None


def test_038_134_temperature_reaches_provider_q_alone(staged, talk):
    for given, got in ((None, 0.5), (0.0, 0.0), (1.25, 1.25)):
        with talk(staged.http) as client:
            client.configure(voice_id=staged.voice("plain", "q"), format="pcm", temperature=given)
            client.speak("a")
            assert staged.q.calls[-1]["temperature"] == got
    with talk(staged.http) as client:
        client.configure(voice_id=staged.voice("plain"), format="pcm", temperature=1.0)
        client.speak("a")
        assert staged.speaker.calls[-1]["temperature"] is None


REFUSED = [
    ({"voice_id": "00000000-0000-4000-8000-000000000000"}, "staged", "unknown_voice_id"),
    ({"format": "flac"}, "staged", "unsupported_streaming_format"),
    ({"format": "wav"}, "silent", "unsupported_streaming_format"),
    ({"format": "ogg", "sample_rate": 24_000}, "q", "unsupported_sample_rate"),
    ({"sample_rate": 24_000}, "mono-rate", "unsupported_sample_rate"),
    ({"sample_rate": 11_025}, "staged", "unsupported_sample_rate"),
    ({"audio_transport": "udp"}, "staged", "unsupported_audio_transport"),
    ({"temperature": "hot"}, "staged", "invalid_message"),
]


def test_129_to_134_refused_settings_and_then_good_ones(staged, talk):
    with talk(staged.http) as client:
        for number, (fields, provider, code) in enumerate(REFUSED):
            session = {"voice_id": staged.voice("plain", provider), "format": "wav"} | fields
            client.send(type="session.update", id=f"u{number}", session=session)
            error = client.event()
            assert (error["type"], error["code"], error["id"]) == ("tts.error", code, f"u{number}")
        client.send(type="tts.speak", text="too early")
        assert client.event()["code"] == "session_not_configured"
        client.configure(voice_id=staged.voice("plain"), format="wav")
        client.send(type="session.update", session=5)
        assert client.event()["code"] == "session_already_configured"
        assert kinds(client.speak("a"))[-1] == "tts.usage"
    assert [call["text"] for call in staged.speaker.calls] == ["a"]


def test_135_without_an_engine_there_is_no_tts_service(stage, talk):
    with stage(with_engines=False) as service, talk(service.http) as client:
        client.send(type="session.update", session={"voice_id": service.voice("plain"), "format": "wav"})
        assert client.event()["code"] == "tts_service_unavailable"


def test_008_135_a_key_that_may_not_use_the_provider(live, stage, talk, tmp_path):
    from speechlab.service import KeyStore

    with stage(data_dir=tmp_path) as service:
        with contextlib.closing(Database(tmp_path)) as database:
            _, key = KeyStore(database).create_key("limited", providers=["q"])
        with talk(service.http, key=key) as client:
            session = {"voice_id": service.voice("plain"), "format": "aac"}
            client.send(type="session.update", session=session)
            assert client.event()["code"] == "service_access_denied"
            client.configure(voice_id=service.voice("plain", "q"), format="wav")
            assert client.speak("a")[-1]["usage"]["status"] == "completed"


def test_147_148_failures_are_told_exactly_and_the_session_goes_on(stage, talk, tmp_path):
    with stage(data_dir=tmp_path) as service:
        for voice, status in (
            ("broken", "backend_error"),
            ("no-model", "backend_error"),
            ("breaks-later", "partial_backend_error"),
        ):
            for transport in ("binary", "base64_json"):
                with talk(service.http) as client:
                    client.configure(voice_id=service.voice(voice), format="pcm", audio_transport=transport)
                    for _ in range(2):
                        start, *audio, error, usage = client.speak("a", id="s")
                        assert start["type"] == "tts.audio.start"
                        assert (error["code"], error["id"]) == ("backend_request_failed", "s")
                        assert "/home" not in error["message"]
                        assert usage["request_id"] == start["request_id"]
                        sent = len(joined(audio))
                        assert bool(sent) == (status == "partial_backend_error")
                        assert (usage["usage"]["status"], usage["usage"]["audio_bytes"]) == (status, sent)
    with contextlib.closing(Database(tmp_path)) as database:
        rows = Ledger(database).list_rows()
    assert [row.status for row in rows] == ["backend_error"] * 8 + ["partial_backend_error"] * 4
    assert {row.transport for row in rows} == {"websocket"}


def test_017_150_rejected_texts_cost_nothing_and_spoken_ones_do(stage, talk, tmp_path):
    with stage(data_dir=tmp_path, tts_text_limit=10) as service, talk(service.http) as client:
        client.configure(voice_id=service.voice("plain"), format="pcm")
        for text, code in (
            ("", "empty_text"),
            (" \u3000", "empty_text"),
            (None, "empty_text"),
            (5, "invalid_message"),
            ("a" * 11, "tts_text_too_long"),
        ):
            client.send(type="tts.speak", id="s", text=text)
            error = client.event()
            assert (error["code"], error["id"]) == (code, "s")
        audio = joined(client.speak("𠮷" * 10))
        client.send(type="tts.speak", id=5, text="a")
        assert "id" not in client.event()
    with contextlib.closing(Database(tmp_path)) as database:
        (row,) = Ledger(database).list_rows()
    assert (row.operation, row.transport, row.provider, row.status) == (
        "tts",
        "websocket",
        "staged",
        "completed",
    )
    assert (row.characters, row.input_bytes, row.audio_bytes) == (10, 40, len(audio))
    assert row.audio_s == 1.0


def test_149_a_second_text_meanwhile_is_refused_and_harms_nothing(staged, talk):
    with talk(staged.http) as client:
        client.configure(voice_id=staged.voice("gated"), format="pcm")
        client.send(type="tts.speak", id="one", text="a")
        assert client.event()["type"] == "tts.audio.start"
        assert isinstance(client.event(), bytes)
        for text in ("b", "", 5):
            client.send(type="tts.speak", id="two", text=text)
            error = client.event()
            assert (error["code"], error["id"]) == ("synthesis_in_progress", "two")
        client.send(type="session.update", id="three", session={})
        assert client.event()["code"] == "session_already_configured"
        client.raw("nonsense")
        assert client.event()["code"] == "invalid_json"
        staged.speaker.gate.set()
        _, done, usage = client.until_usage()
        assert (done["id"], done["chunks"], usage["client_id"]) == ("one", 2, "one")
        assert [call["text"] for call in staged.speaker.calls] == ["a"]


def test_152_164_limits_of_the_key_and_of_the_service(stage, talk):
    with stage(key_requests_per_minute=1) as service, talk(service.http) as client:
        client.configure(voice_id=service.voice("plain"), format="pcm")
        client.speak("a")
        client.send(type="tts.speak", id="s", text="b")
        error = client.event()
        assert (error["code"], error["id"]) == ("rate_limited", "s")
    with stage(service_requests_per_minute={"tts": 2}) as service:
        # 164: sessions of a key share quotas, and share them with HTTP (section 5.5).
        with talk(service.http) as one, talk(service.http) as two:
            for client in (one, two):
                client.configure(voice_id=service.voice("plain"), format="pcm")
            one.speak("a")
            assert service.http.speak(voice_id=service.voice("plain"), text="b", format="pcm").status == 200
            two.send(type="tts.speak", text="c")
            assert two.event()["code"] == "service_rate_limited"
        assert len(service.speaker.calls) == 2


def test_152_a_full_queue_is_backend_unavailable(stage, talk, tmp_path):
    with stage(queue_limit=1, data_dir=tmp_path) as service, contextlib.ExitStack() as stack:
        busy, client = (stack.enter_context(talk(service.http)) for _ in range(2))
        for one in (busy, client):
            one.configure(voice_id=service.voice("gated"), format="pcm")
        busy.send(type="tts.speak", text="a")
        assert busy.event()["type"] == "tts.audio.start"
        client.send(type="tts.speak", id="s", text="b")
        error = client.event()
        assert (error["code"], error["id"]) == ("backend_unavailable", "s")
        assert client.silent(0.1)
        service.speaker.gate.set()
        busy.until_usage()
        assert kinds(client.speak("c"))[-1] == "tts.usage"
    with contextlib.closing(Database(tmp_path)) as database:
        assert len(Ledger(database).list_rows()) == 2


def test_157_router_errors_leave_the_session_as_it_is(staged, talk):
    with talk(staged.http) as client:
        for configured in (False, True):
            if configured:
                client.configure(voice_id=staged.voice("plain"), format="pcm")
            for text, code in (
                ("", "invalid_json"),
                ("{", "invalid_json"),
                ("\ufeff{}", "invalid_json"),
                ("[" * 100_000, "invalid_json"),
                ("[1]", "missing_message_type"),
                ('{"type": 5}', "missing_message_type"),
                ('{"type": "x"}', "unknown_message_type"),
            ):
                client.raw(text)
                error = client.event()
                assert (error["type"], error["code"]) == ("router.error", code)
        assert kinds(client.speak("a"))[-1] == "tts.usage"


def test_159_a_message_over_the_limit_is_refused_and_the_connection_stays(staged, talk):
    with talk(staged.http) as client:
        for size in (128 * 1024 + 1, 256 * 1024):
            client.raw(json.dumps({"type": "tts.speak", "text": "a"}).ljust(size))
            assert client.event()["code"] == "tts_control_frame_too_large"
        client.configure(voice_id=staged.voice("plain"), format="pcm")
        escaped = "\\ud842\\udfb7" * 5_000
        client.raw(f'{{"type": "tts.speak", "text": "{escaped}"}}')
        assert client.until_usage()[-1]["usage"]["input_chars"] == 5_000
        client.raw(json.dumps({"type": "tts.speak", "text": "a"}).ljust(128 * 1024))
        assert client.until_usage()[-1]["usage"]["input_chars"] == 1


@pytest.mark.slow
def test_164_two_sessions_at_once_get_each_their_own_audio(live, talk):
    voices = [voice_uuid("hibari", "heart")] * 3
    texts = [TEXT * (number + 1) for number in range(3)]
    expected = [live.speak(voice_id=v, text=t, format="pcm").body for v, t in zip(voices, texts, strict=True)]
    with talk(live) as one, talk(live) as two, talk(live) as three:
        clients = (one, two, three)
        for client, voice in zip(clients, voices, strict=True):
            client.configure(voice_id=voice, format="pcm")
        for client, text in zip(clients, texts, strict=True):
            client.send(type="tts.speak", text=text)
        got = [joined(client.until_usage()) for client in clients]
    assert got == expected


@pytest.mark.slow
def test_a_session_left_unconfigured_is_closed_and_a_configured_one_is_not(stage, talk):
    with stage(ws_idle_s=0.4) as service, talk(service.http) as client, talk(service.http) as other:
        other.configure(voice_id=service.voice("plain"), format="pcm")
        client.raw("{}")
        client.event()
        assert client.closed() == 1008
        time.sleep(0.5)
        assert kinds(other.speak("a"))[-1] == "tts.usage"
