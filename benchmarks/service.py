"""What the service adds to its engines, and how late its event loop is under load.

    python benchmarks/service.py [--budget 15] [--json FILE]

Each request is made to the engine itself, in this process, and through a service in a process of its own, in turns.
The best time of each is compared, which others on the machine disturb least. What counts are the ratios of one run:
times differ between machines and days. Takes some three minutes and 2 GB of memory: every model is there twice.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.audio import encode, resample
from speechlab.engines import RecognitionOptions, TranslationJob, create
from speechlab.service import ServiceConfig, running, voice_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TEXT = (
    "The quick brown fox jumps over the lazy dog, and then it rests for a while beside the old stone bridge. "
    "Nobody saw it come, and nobody saw it go. In the evening the river was quiet again, and the lights of the "
    "town lay on the water."
)
SHORT = "こんにちは。今日はいい天気です。"
SOURCE = (
    "The meeting begins tomorrow at nine in the morning. Please bring the report and two copies of the plan."
)
ASR_RATE = 16_000


class Client:
    """One connection to the service."""

    def __init__(self, base_url: str, key: str) -> None:
        host, _, port = base_url.removeprefix("http://").partition(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=300)
        self._key = key

    def post(self, path: str, body: bytes, kind: str = "application/json") -> tuple[bytes, float, float]:
        """Return the body, and the seconds until its first and its last byte."""
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": kind}
        started = time.perf_counter()
        self._connection.request("POST", path, body, headers)
        reply = self._connection.getresponse()
        data = reply.read(1)
        first = time.perf_counter() - started
        data += reply.read()
        if reply.status != 200:
            raise RuntimeError(f"{path} answered {reply.status}: {data[:300]!r}")
        return data, first, time.perf_counter() - started

    def get(self, path: str) -> float:
        """Return the seconds of a small request."""
        started = time.perf_counter()
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {self._key}"})
        self._connection.getresponse().read()
        return time.perf_counter() - started


def form(**fields: str) -> tuple[bytes, str]:
    """Write fields as multipart/form-data."""
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in fields.items()
    ]
    return ("".join(parts) + "--b--\r\n").encode(), "multipart/form-data; boundary=b"


def timed(task: Callable[[], Any]) -> float:
    """Return the seconds that a task takes."""
    started = time.perf_counter()
    task()
    return time.perf_counter() - started


def in_turns(raw: Callable[[], float], served: Callable[[], float], budget_s: float) -> tuple[float, float]:
    """Run both in turns, once without counting, and return the best time of each."""
    raw(), served()
    until, pairs = time.monotonic() + budget_s, []
    while len(pairs) < 3 or time.monotonic() < until:
        # Each goes first half of the time, so that neither always finds the caches warm.
        if len(pairs) % 2:
            second = served()
            pairs.append((raw(), second))
        else:
            pairs.append((raw(), served()))
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def overheads(client: Client, budget_s: float) -> Iterator[dict[str, Any]]:
    """Compare whole requests, and first pieces."""
    for name, text in (("kokoro", SHORT), ("hibari", TEXT)):
        engine = create(name)
        voice = engine.voices[0].name
        fields = {"voice_id": voice_uuid(name, voice), "text": text, "format": "wav"}
        body = json.dumps(fields).encode()
        yield row(
            f"speech, {name}",
            *in_turns(
                lambda e=engine, v=voice, t=text: timed(lambda: list(e.synthesise(t, v))),
                lambda b=body: client.post("/tts", b)[2],
                budget_s,
            ),
        )
        stream = json.dumps({**fields, "format": "pcm", "stream": True}).encode()
        yield row(
            f"speech, {name}: first audio",
            *in_turns(
                lambda e=engine, v=voice, t=text: first_piece(e, v, t),
                lambda b=stream: client.post("/tts", b)[1],
                budget_s,
            ),
        )
        spoken = resample(np.concatenate(list(engine.synthesise(text, voice))), engine.sample_rate, ASR_RATE)
        engine.close()
    ears, options = create("whisper"), RecognitionOptions(language="en")
    recording = base64.b64encode(encode(spoken, "flac", ASR_RATE)).decode()
    body = json.dumps({"audio": recording, "language": "en"}).encode()
    yield row(
        f"recognition, whisper, {len(spoken) / ASR_RATE:.0f} s",
        *in_turns(
            lambda: timed(lambda: ears.recognise(spoken, options)),
            lambda: client.post("/asr/srt/audio_llm", body)[2],
            budget_s,
        ),
    )
    ears.close()
    translator, job = create("gemma"), TranslationJob(SOURCE, "en", "ja")
    data, kind = form(text=SOURCE, source_lang="en", target_lang="ja")
    yield row(
        "translation, gemma",
        *in_turns(
            lambda: timed(lambda: list(translator.translate(job))),
            lambda: client.post("/translate/", data, kind)[2],
            budget_s,
        ),
    )
    translator.close()


def first_piece(engine: Any, voice: str, text: str) -> float:
    """Return the seconds until an engine's first piece."""
    pieces = engine.synthesise(text, voice)
    seconds = timed(lambda: next(pieces))
    pieces.close()
    return seconds


def row(what: str, raw_s: float, served_s: float) -> dict[str, Any]:
    """One comparison."""
    return {
        "what": what,
        "engine_s": raw_s,
        "service_s": served_s,
        "ratio": served_s / raw_s,
        "more_ms": (served_s - raw_s) * 1000,
    }


@contextmanager
def busy(tasks: list[Callable[[], Any]]) -> Iterator[None]:
    """Keep doing things, each in a thread, while the block lasts."""
    stop = threading.Event()

    def work(task: Callable[[], Any]) -> None:
        while not stop.is_set():
            task()

    threads = [threading.Thread(target=work, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def lateness(make: Callable[[], Client], seconds: float) -> Iterator[dict[str, Any]]:
    """How long a request that does nothing takes, while others do much."""
    speech = json.dumps({"voice_id": voice_uuid("hibari", "heart"), "text": TEXT, "format": "mp3"}).encode()
    slow = json.dumps({"voice_id": voice_uuid("kokoro", "jf_alpha"), "text": SHORT, "format": "mp3"}).encode()
    minutes = encode(np.zeros(ASR_RATE * 600, dtype=np.float32), "wav", ASR_RATE)
    recording = json.dumps({"audio": base64.b64encode(minutes).decode(), "vad": 1}).encode()
    data, kind = form(text=SOURCE, source_lang="en", target_lang="ja", stream="true")

    def posting(path: str, body: bytes, kind: str = "application/json") -> Callable[[], Any]:
        client = make()
        return lambda: client.post(path, body, kind)

    loads = {
        "nothing": [],
        "4 x speech, hibari": [posting("/tts", speech) for _ in range(4)],
        "speech, kokoro": [posting("/tts", slow)],
        "recordings of 10 minutes (26 MB of base64)": [posting("/asr/srt/audio_llm", recording)],
        "translation, gemma": [posting("/translate/", data, kind)],
    }
    for name, tasks in loads.items():
        probe, took = make(), []
        with busy(tasks):
            time.sleep(0.5)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                took.append(probe.get("/healthz") * 1000)
                time.sleep(0.01)
        took.sort()
        yield {
            "while": name,
            "p50_ms": took[len(took) // 2],
            "p95_ms": took[int(len(took) * 0.95)],
            "max_ms": took[-1],
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=float, default=15.0, help="seconds for each comparison")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds under each load")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = ServiceConfig(port=0, data_dir=Path(folder))
        with running(config, process=True) as service:
            compared, late = [], []
            print(f"{'':<34}{'engine s':>10}{'service s':>11}{'ratio':>8}{'more ms':>9}")
            for found in overheads(Client(service.base_url, service.api_key), options.budget):
                compared.append(found)
                print(
                    f"{found['what']:<34}{found['engine_s']:>10.3f}{found['service_s']:>11.3f}"
                    f"{found['ratio']:>8.3f}{found['more_ms']:>9.1f}",
                    flush=True,
                )
            print(f"\n{'GET /healthz while':<44}{'p50 ms':>8}{'p95 ms':>8}{'max ms':>8}")
            for found in lateness(lambda: Client(service.base_url, service.api_key), options.seconds):
                late.append(found)
                print(
                    f"{found['while']:<44}{found['p50_ms']:>8.1f}{found['p95_ms']:>8.1f}{found['max_ms']:>8.1f}",
                    flush=True,
                )
    if options.json:
        options.json.write_text(json.dumps({"overhead": compared, "lateness": late}, indent=2) + "\n")


if __name__ == "__main__":
    main()
