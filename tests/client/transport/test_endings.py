"""Programs that end without closing anything, and processes that fork: nothing is printed, nothing is left."""

import subprocess
import sys

import pytest

from support.clock import eventually
from support.samples import TRANSLATED

PROGRAM = """
import asyncio, gc, os
from speechlab.client import AsyncClient, Client

def options(): return {"base_url": URL, "transport": WIRE}
def text(lab): return lab.translate("a", source_lang="ja", target_lang="en")
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # in one piece, from either process
def stream(lab): return lab.stream_speech("a", voice=VOICE, format="pcm")
"""
WIRES = ["httpx2", "aiohttp"]
ENDINGS = {
    "a client, a stream and one that was opened": """
lab, second, third = (Client(**options()) for _ in range(3))
print(text(lab).text)
pieces = stream(second)
print(len(next(iter(pieces))))
opened = stream(third).__enter__()
""",
    "a client that outlives its loop": """
lab = AsyncClient(**options())
async def main():
    print((await text(lab)).text)
asyncio.run(main())
asyncio.run(main())
""",
    "a client that is let go": """
import psutil, time
lab = Client(**options())
print(text(lab).text)
del lab
gc.collect()
until = time.monotonic() + 10
while any(c.raddr for c in psutil.Process().net_connections("tcp")) and time.monotonic() < until:
    time.sleep(0.01)
print(*[c.status for c in psutil.Process().net_connections("tcp") if c.raddr])
""",
    "a stream of a loop that ended, let go": """
async def main():
    pieces = stream(AsyncClient(**options()))
    async for piece in pieces:
        print(len(piece))
        break
asyncio.run(main())
""",
    "daemon threads in a call and in a batch": """
import tempfile, threading
from speechlab import batch
began = threading.Semaphore(0)
lab = Client(**options(), on_event=lambda event: event.kind == "request" and began.release())
def call():
    try:
        text(lab)
    finally:
        text(lab)
def run():
    given = dict(store=tempfile.mkdtemp(), source_lang="en", target_lang="ja", progress=False)
    batch.translate([dict(text="b")], lab, **given)
for work in call, run:
    threading.Thread(target=work, daemon=True).start()
for _ in range(3): began.acquire()
""",
    "a fork": """
lab = Client(**options())
say(text(lab).text)
child = os.fork()
say(text(lab).text)
if child:
    say(os.waitpid(child, 0)[1], text(lab).text)
""",
}
PRINTED = {
    "a client, a stream and one that was opened": ["Hello", "1000"],
    "a client that outlives its loop": ["Hello", "Hello"],
    "a client that is let go": ["Hello", ""],
    "a stream of a loop that ended, let go": ["1000"],
    "daemon threads in a call and in a batch": [],
    "a fork": ["Hello", "Hello", "Hello", "0 Hello"],
}


def run(server, http, wires, *codes):
    """Run each of the codes on each of the wires, in one program that ends with all that they leave."""

    def answer(request):
        if request.path == "/tts/voices":
            return [http.reply(body={"voices": [http.VOICE]})]
        if request.path == "/tts":
            return [*http.chunked(bytes(1000), end=False), 60.0]
        return [60.0, http.reply(body=TRANSLATED)] if "daemon" in codes[0] else [http.reply(body=TRANSLATED)]

    server.script(answer)
    given = {"URL": server.base_url, "VOICE": http.VOICE_ID}
    left = [({**given, "WIRE": wire}, PROGRAM + code) for code in codes for wire in wires]
    program = f"left = {left!r}\nfor names, code in left:\n    exec(code, names)"
    return subprocess.run(
        [sys.executable, "-c", program], timeout=60, capture_output=True, text=True, check=False
    )


ALONE = ["daemon threads in a call and in a batch", "a fork"]
"""What waits for a minute, and what goes on in two processes, of which each would do the work of the other wire."""
TOGETHER = ["a client that is let go", *sorted({*ENDINGS} - {*ALONE, "a client that is let go"})]
"""The first of these looks at the connections of its process, of which the others leave some."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "endings", [TOGETHER, *([ending] for ending in ALONE)], ids=lambda endings: endings[-1]
)
def test_what_is_not_closed_ends_in_silence(server, http, endings):
    for wires in [[wire] for wire in WIRES] if "fork" in endings[0] else [WIRES]:
        done = run(server, http, wires, *(ENDINGS[ending] for ending in endings))
        assert done.stderr == ""
        assert done.returncode == 0
        assert done.stdout.splitlines() == [
            line for ending in endings for line in PRINTED[ending] * len(wires)
        ]
        assert eventually(lambda: not server.active, 20)  # before what the server has to say is over
