"""The adapters of docs/openai.md, against the requests and replies that these servers document; none was reached."""

import json
import re
from email import message_from_bytes
from pathlib import Path

import pytest

import speechlab as sl
from support.http_server import reply

PAGE = (Path(__file__).parents[2] / "docs" / "openai.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"\*\*([\w-]+)\*\*[^\n]*\n\n```python\n(lab = .*?)```", PAGE, re.DOTALL))
# Fields that each documents, of speech and of recognition; others are refused or ignored there.
SPEECH = {"model", "input", "voice", "response_format", "speed"}
RECOGNITION = {
    "speaches": {"file", "model", "language", "prompt", "response_format", "temperature", "timestamp_granularities[]",
                 "stream", "hotwords"},
    "LocalAI": {"file", "model", "language", "prompt", "response_format", "temperature", "timestamp_granularities[]"},
    "vLLM": {"file", "model", "language", "prompt", "response_format", "temperature", "timestamp_granularities[]"},
}  # fmt: skip
SEGMENTS = [{"id": 0, "start": 0.25, "end": 1.5, "text": " Good morning."}]
# LocalAI sends times in nanoseconds.
NANOSECONDS = [{"id": 0, "start": 250_000_000, "end": 1_500_000_000, "text": " Good morning.", "tokens": [1]}]


@pytest.fixture
def adapted(server):
    """A client as the page makes it, of the server of the test, and what the server was asked."""
    opened = []

    def build(name, transcript, sound=b""):
        asked = []

        def answer(request):
            if request.path.endswith("/audio/transcriptions"):
                head = b"Content-Type: " + request.headers["content-type"].encode() + b"\r\n\r\n"
                parts = message_from_bytes(head + request.body).get_payload()
                names = [part.get_param("name", header="content-disposition") for part in parts]
                asked.append({key: part.get_payload() for key, part in zip(names, parts, strict=True)})
                return reply(200, transcript)
            asked.append(json.loads(request.body))
            return reply(200, sound, "audio/wav")

        server.script(answer)
        code = re.sub(r"http://localhost:\d+", server.base_url, EXAMPLES[name])
        names = {"sl": sl}
        exec(compile(code, "openai.md", "exec"), names)
        opened.append(names["lab"])
        return names["lab"], asked

    yield build
    for lab in opened:
        lab.close()


def test_they_recognize_with_segments(adapted, clip):
    for name, segments in (("speaches", SEGMENTS), ("LocalAI", NANOSECONDS), ("vLLM", SEGMENTS)):
        lab, asked = adapted(
            name, {"text": " Good morning.", "language": "en", "duration": 2.0, "segments": segments}
        )
        transcript = lab.transcribe(clip, language="en", vad="segments")
        assert transcript.text.strip() == "Good morning."
        assert transcript.segments[["start", "end"]].to_numpy().tolist() == [[0.25, 1.5]]
        assert lab.transcribe(clip, language="en", hotwords=["Ada"]).text.strip() == "Good morning."
        assert all(set(fields) <= RECOGNITION[name] for fields in asked)
        assert asked[0]["response_format"] == "verbose_json"


def test_they_speak(adapted, wav):
    for name in ("speaches", "LocalAI", "Kokoro-FastAPI"):
        lab, asked = adapted(name, {}, wav)
        assert lab.synthesize("Good morning.", voice="af_heart").duration_s == pytest.approx(0.5)
        assert set(asked[0]) <= SPEECH
        assert (asked[0]["voice"], asked[0]["response_format"]) == ("af_heart", "wav")
