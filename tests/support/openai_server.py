"""OpenAI's wire format, as it is documented, in front of the embedded service: no vendor can be asked in a test."""

import asyncio
import json
import re
from contextlib import contextmanager
from email import message_from_bytes

from speechlab.client import AsyncClient
from support.translator import Wire

KEY = "sk-of-the-test"
VOICES = {"alloy": "heart", "nova": "mei"}


class OpenAIServer:
    """Answers ``/v1/audio/speech``, ``/v1/audio/transcriptions`` and ``/v1/chat/completions``."""

    def __init__(self, service):
        self.service = service
        self.asked = []
        self.fault = None
        self.lab = None

    async def answer(self, head, body):
        if self.lab is None:  # on the loop of the server
            self.lab = AsyncClient(self.service.base_url, api_key=self.service.api_key)
        if self.fault is not None:
            return reply(*self.fault)
        if f"Bearer {KEY}".encode() not in head:
            message = f"Incorrect API key provided: {KEY[:3]}***."
            return reply(
                401,
                {"error": {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}},
            )
        path = head.split(b" ")[1].decode()
        makes = {
            "/v1/audio/speech": self.speech,
            "/v1/audio/transcriptions": self.transcription,
            "/v1/chat/completions": self.chat,
        }
        return await makes[path](head, body)

    async def speech(self, head, body):
        asked = json.loads(body)
        assert set(asked) - {"instructions", "speed"} == {"model", "input", "voice", "response_format"}
        self.asked.append(asked)
        kind = {"opus": "ogg"}.get(asked["response_format"], asked["response_format"])
        clip = await self.lab.synthesize(asked["input"], voice=VOICES[asked["voice"]], format=kind)
        return reply(200, clip.encoded, f"audio/{kind}")

    async def transcription(self, head, body):
        kind = re.search(rb"(?i)content-type: *([^\r]*)", head)[1]
        parts = {}
        for part in message_from_bytes(b"Content-Type: " + kind + b"\r\n\r\n" + body).walk():
            if not part.is_multipart():
                name = part.get_param("name", header="content-disposition")
                value = part.get_payload(decode=True)
                parts[name] = parts[name] + b" " + value if name in parts else value
                assert name != "file" or part.get_filename() in {
                    "audio.wav",
                    "audio.mp3",
                    "audio.ogg",
                    "audio.flac",
                }
        audio = parts.pop("file")
        asked = {name: value.decode() for name, value in parts.items()}
        self.asked.append(asked)
        verbose = asked["response_format"] == "verbose_json"
        if asked["model"] == "streams":
            events = [
                ("delta", {"delta": "Good "}),
                ("delta", {"delta": "morning."}),
                ("done", {"text": "Good morning."}),
            ]
            lines = [
                f"data: {json.dumps({'type': f'transcript.text.{kind}', **told})}\n\n"
                for kind, told in events
            ]
            return reply(200, "".join(lines).encode(), "text/event-stream")
        heard = await self.lab.transcribe(
            audio, language=asked.get("language"), vad="segments" if verbose else "off"
        )
        if not verbose:
            return reply(200, {"text": heard.text, "usage": {"type": "duration", "seconds": 1}})
        segments = [
            {
                "id": number,
                "seek": 0,
                "start": piece.start,
                "end": piece.end,
                "text": f" {piece.text}",
                "tokens": [1],
            }
            for number, piece in enumerate(heard.pieces)
        ]
        told = {
            "task": "transcribe",
            "language": "english",
            "duration": 1.0,
            "text": heard.text,
            "segments": segments,
        }
        if "word" in asked.get("timestamp_granularities[]", ""):
            first = heard.pieces[0]
            told["words"] = [{"word": first.text.split()[0], "start": first.start, "end": first.end}]
        return reply(200, told)

    async def chat(self, head, body):
        asked = json.loads(body)
        self.asked.append(asked)
        system, user = (message["content"] for message in asked["messages"])
        codes = {"Japanese": "ja", "English": "en", "Chinese": "zh"}
        source, target = (codes[name] for name in re.search(r"from (\w+) into (\w+)\.", system).groups())
        done = await self.lab.translate(user, source_lang=source, target_lang=target)
        common = {"id": "chatcmpl-1", "created": 1, "model": asked["model"]}
        if not asked.get("stream"):
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": done.text},
                "finish_reason": "stop",
            }
            usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
            return reply(200, {**common, "object": "chat.completion", "choices": [choice], "usage": usage})
        deltas = [
            {"role": "assistant", "content": ""},
            {"content": done.text[:3]},
            {"content": done.text[3:]},
            {},
        ]
        chunks = [
            {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
        ]
        chunks[-1]["choices"][0]["finish_reason"] = "stop"
        chunks.append(
            {
                **common,
                "choices": [],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
            }
        )
        events = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
        return reply(200, events + b"data: [DONE]\n\n", "text/event-stream")


def reply(status, body, kind="application/json"):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"HTTP/1.1 {status} X",
        f"Content-Type: {kind}",
        f"Content-Length: {len(content)}",
        "x-request-id: req_1",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


@contextmanager
def openai_server(service):
    """Run one; gives it and its base URL."""
    server = OpenAIServer(service)
    with Wire(server.answer) as wire:
        yield server, f"http://127.0.0.1:{wire.port}/v1"
        if server.lab is not None:
            asyncio.run_coroutine_threadsafe(server.lab.aclose(), wire.loop).result(10)
