"""A realtime service that says exactly what a test scripts."""

import asyncio
import base64
import json

PIECES = (b"abcdefgh", b"abcd", b"abcdef")
CREATED = {"type": "session.created", "session": {"id": "sess_1", "service": "x/tts", "sample_rate": 24000}}


class Script:
    """A realtime service: configures, then plays a script for each text; `sent` is what clients said."""

    def __init__(self):
        self.sent = []
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.headers = []
        self.refusals = []
        self.handshake_s = 0.0
        self.created = [CREATED]
        self.speaks = []
        self.port = 0

    async def handshake(self, connection, request):
        self.headers.append((request.path, dict(request.headers.raw_items())))
        await asyncio.sleep(self.handshake_s)
        if self.refusals:
            return self.refusals.pop(0)
        return None

    async def handle(self, ws):
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            async for message in ws:
                assert isinstance(message, str), "a client must not send binary frames"
                said = json.loads(message)
                self.sent.append(said)
                if said["type"] == "session.update":
                    steps = self.created
                else:
                    steps = self.speaks.pop(0) if len(self.speaks) > 1 else self.speaks[0]
                await self.play(ws, steps, said)
        finally:
            self.open -= 1

    async def play(self, ws, steps, said):
        for step in steps(said) if callable(steps) else steps:
            if callable(step):
                step(ws)
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, int):
                if step == 1006:
                    ws.transport.abort()
                else:
                    await ws.close(step, "because")
            else:
                await ws.send(step if isinstance(step, (bytes, str)) else json.dumps(step))


def start(said, **fields):
    return {
        "type": "tts.audio.start",
        "id": said["id"],
        "request_id": "req_1",
        "content_type": "audio/pcm",
        **fields,
    }


def done(said, **fields):
    totals = {"audio_bytes": sum(map(len, PIECES)), "chunks": len(PIECES)}
    return {"type": "tts.audio.done", "id": said["id"], "request_id": "req_1", **totals, **fields}


def usage(said, status="completed", **fields):
    counted = {"input_chars": 1, "input_bytes": 3, "audio_bytes": 17, "status": status, "final": True}
    return {"type": "tts.usage", "request_id": "req_1", "client_id": said["id"], "usage": counted, **fields}


def error(code, **fields):
    return {"type": "tts.error", "code": code, "message": f"about {code}", **fields}


def spoken(said):
    return [start(said), *PIECES, done(said), usage(said)]


def deltas(said, numbers=(0, 1, 2)):
    pieces = [
        {"type": "tts.audio.delta", "id": said["id"], "seq": n, "audio": base64.b64encode(piece).decode()}
        for n, piece in zip(numbers, PIECES, strict=True)
    ]
    return [start(said), *pieces, done(said), usage(said)]
