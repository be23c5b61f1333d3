"""Nothing about one key or one text reaches another key, the metrics, the log or the files; what operators see."""

import contextlib
import json

import numpy as np
import pytest

from speechlab.audio import encode
from speechlab.service import Database, KeyStore, ServiceConfig, run_service
from support.clients import KEY, Http, talking
from support.staged import CANARY

OPERATOR = "ops:the-key-of-the-operator"
SECRET_TEXT = f"{CANARY}-of-the-text"


def everything(http: Http, voices: list[str], text: str, request_id: str) -> list[str]:
    """Ask for everything, rightly and wrongly, and return all that came back."""
    wav = encode(np.full(8_000, 0.1, dtype=np.float32), "wav", 16_000)
    own = {"X-Request-Id": request_id}
    replies = [
        *(http.speak(voice_id=voice, text=text, format="wav") for voice in voices),
        *(http.speak(voice_id=voice, text=text, format="pcm", stream=True) for voice in voices[:2]),
        http.speak(voice_id=text, text=text, format=text),
        http.recognize(wav, hotwords=[text]),
        http.recognize(wav, language=text),
        http.translate(text=text, source_lang="en", target_lang="ja", context=text),
        http.translate(text=f"broken {text}", source_lang="en", target_lang="ja"),
        http.translate(text=f"breaks later {text}", source_lang="en", target_lang="ja", stream="true"),
        http.translate(text=text, source_lang=text, target_lang="ja"),
        http.request("GET", "/tts/voices", headers=own),
        http.request("GET", "/readyz"),
        http.request("GET", "/metrics"),
        http.request("GET", f"/tts/{text.replace(chr(32), chr(45))}"),
        http.request("POST", "/tts", f'{{"{text}'.encode()),
    ]
    came = [f"{reply.headers} {reply.body!r}" for reply in replies]
    with talking(http) as client:
        client.configure(voice_id=voices[0], format="pcm")
        came += [str(event) for event in client.speak(text, id="one") if isinstance(event, dict)]
        client.raw(json.dumps({"type": text}))
        came.append(str(client.event()))
    return came


@pytest.mark.slow
def test_nothing_of_one_key_reaches_another(stage, tmp_path, caplog):
    caplog.set_level("DEBUG", logger="speechlab")
    with (
        stage(data_dir=tmp_path, operator_keys=(OPERATOR,)) as service,
        contextlib.closing(Database(tmp_path)) as database,
    ):
        stored, key = KeyStore(database).create_key(f"{CANARY} of the name")
        voices = [
            service.voice(name) for name in ("plain", "broken", "breaks-later", "bug", "no-model", "picky")
        ]
        everything(Http(service.http.base_url, key), voices, SECRET_TEXT, f"{CANARY}-of-the-id")
        logged = str([vars(record) for record in caplog.records])
        told = "\n".join(everything(service.http, voices, "An ordinary text.", "an-ordinary-id"))
        watched = Http(service.http.base_url, OPERATOR)
        metrics = watched.request("GET", "/metrics").body.decode()
        ready = watched.request("GET", "/readyz").body.decode()
    secrets = (key, key.partition(":")[2], KEY, KEY.partition(":")[2], OPERATOR, SECRET_TEXT)
    assert [secret for secret in (*secrets, stored.key_id, CANARY) if secret in told] == []
    assert [secret for secret in (*secrets, f"{CANARY} of the name") if secret in metrics + ready] == []
    assert stored.key_id in metrics  # operators know keys by their ids
    assert [secret for secret in (*secrets, f"{CANARY} of the name") if secret in logged] == []
    for path in tmp_path.iterdir():
        held = path.read_bytes()
        assert [secret for secret in secrets if secret.encode() in held] == [], path.name


@pytest.fixture
def watched(stage):
    with stage(operator_keys=(OPERATOR,)) as service:
        yield service


def test_operators_see_metrics_and_open_nothing_else(watched, error_body, talk):
    error_body(watched.http.request("GET", "/metrics"), 403, "ErrPermissionDenied")
    operator = Http(watched.http.base_url, OPERATOR)
    assert operator.request("GET", "/metrics").status == 200
    error_body(operator.speak(**watched.fields()), 403, "ErrPermissionDenied")
    error_body(operator.request("GET", "/tts/voices"), 403, "ErrPermissionDenied")
    with pytest.raises(Exception, match="401"), talk(watched.http, OPERATOR):
        pass


def test_a_key_that_was_made_up_is_an_operators_too():
    with run_service(ServiceConfig(port=0, recognizer="", translator="")) as service:
        http = Http(service.base_url, service.api_key)
        assert http.request("GET", "/metrics").status == http.request("GET", "/tts/voices").status == 200


def test_probes_need_no_key_and_are_told_yes_or_no(watched, stage, error_body):
    for key in (None, "sl:of-nobody-at-all", KEY):
        assert watched.http.request("GET", "/readyz", key=key).json() == {"status": "ready"}
        assert watched.http.request("GET", "/healthz", key=key).json() == {"status": "ok"}
    assert watched.http.request("GET", "/readyz", key=OPERATOR).json()["engine"] == "staged"
    with stage(with_engines=False, operator_keys=(OPERATOR,)) as empty:
        for key, told in ((None, "the service is not ready"), (OPERATOR, "engine")):
            reply = empty.http.request("GET", "/readyz", key=key)
            assert told in error_body(reply, 503, "ErrOverloaded")["error"]


def test_paths_are_in_no_metrics_and_no_log(watched, caplog):
    caplog.set_level("DEBUG", logger="speechlab")
    before = len(watched.http.request("GET", "/metrics", key=OPERATOR).body)
    for number in range(5):
        for start in ("/tts/", "/asr/srt/audio_llm/", "/translate/", "/ws/tts/realtime/", "/"):
            for key, status in ((None, 401), (KEY, 404)):
                assert watched.http.request("GET", f"{start}{CANARY}{number}", key=key).status == status
    after = watched.http.request("GET", "/metrics", key=OPERATOR).body
    assert CANARY not in after.decode()
    assert len(after) < before + 3_000
    assert CANARY not in str([vars(record) for record in caplog.records])
