"""What the service adds to its engines, and how late its event loop is under load.

    python benchmarks/service.py [--budget 20] [--only kokoro] [--json FILE]

Each request is made to the engine itself, in this process, and through a service in a process of its own, in turns.
What counts is the median of the ratios of neighbors, with its interval, and the processor seconds of both sides
(of the service with its children), which others on the machine disturb least. Times differ between machines and days.
Takes some four minutes and 2 GB of memory: every model is there twice.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import json
import os
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from speechlab.audio import encode, resample
from speechlab.engines import RecognitionOptions, TranslationJob, create
from speechlab.service import ServiceConfig, run_service, voice_uuid

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


class Cpu:
    """Processor time of processes, in seconds; counted by the system in ticks of 10 ms."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def spent(self) -> float:
        """What the process and its children have taken so far."""
        total = 0.0
        for process in [self._process, *self._process.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
        return total


def in_turns(
    what: str,
    raw: Callable[[], float],
    served: Callable[[], float],
    budget_s: float,
    cpu: tuple[Cpu, Cpu] | None,
) -> dict[str, Any]:
    """Run both in turns, once without counting.

    Returns:
        Medians of both, the median of the ratios of neighbors with its 95% interval (by resampling), the median of
        the differences, and the processor seconds of each for one request.
    """
    raw(), served()
    until, pairs, spent = time.monotonic() + budget_s, [], [0.0, 0.0]

    def one(side: int, task: Callable[[], float]) -> float:
        if cpu is None:
            return task()
        before = cpu[side].spent()
        seconds = task()
        spent[side] += cpu[side].spent() - before
        return seconds

    while len(pairs) < 5 or time.monotonic() < until:
        # Each goes first half of the time, so that neither always finds the caches warm.
        if len(pairs) % 2:
            second = one(1, served)
            pairs.append((one(0, raw), second))
        else:
            pairs.append((one(0, raw), one(1, served)))
    both = np.array(pairs)
    ratios, more = both[:, 1] / both[:, 0], (both[:, 1] - both[:, 0]) * 1000
    again = np.random.default_rng(0).choice(ratios, (4_000, len(ratios)))
    low, high = np.percentile(np.median(again, axis=1), [2.5, 97.5])
    return {
        "what": what,
        "pairs": len(pairs),
        "engine_s": float(np.median(both[:, 0])),
        "service_s": float(np.median(both[:, 1])),
        "ratio": float(np.median(ratios)),
        "ratio_low": float(low),
        "ratio_high": float(high),
        "more_ms": float(np.median(more)),
        "engine_cpu_s": spent[0] / len(pairs) if cpu else None,
        "service_cpu_s": spent[1] / len(pairs) if cpu else None,
    }


def overheads(client: Client, budget_s: float, pid: int, only: str = "") -> Iterator[dict[str, Any]]:
    """Compare whole requests, and first pieces."""
    cpu = Cpu(os.getpid()), Cpu(pid)
    for name, text in (("kokoro", SHORT), ("hibari", TEXT)):
        if only not in name:
            continue
        engine = create(name)
        voice = engine.voices[0].name
        fields = {"voice_id": voice_uuid(name, voice), "text": text, "format": "wav"}
        body = json.dumps(fields).encode()
        yield in_turns(
            f"speech, {name}",
            lambda e=engine, v=voice, t=text: timed(lambda: list(e.synthesize(t, v))),
            lambda b=body: client.post("/tts", b)[2],
            budget_s,
            cpu,
        )
        stream = json.dumps({**fields, "format": "pcm", "stream": True}).encode()
        yield in_turns(
            f"speech, {name}: first audio",
            lambda e=engine, v=voice, t=text: first_piece(e, v, t),
            lambda b=stream: client.post("/tts", b)[1],
            budget_s,
            None,  # the service goes on to the end of the text, and the engine here does not
        )
        engine.close()
    if only in "whisper":
        speaker, ears = create("hibari"), create("whisper")
        spoken = resample(np.concatenate(list(speaker.synthesize(TEXT, "heart"))), 24_000, ASR_RATE)
        recording = base64.b64encode(encode(spoken, "flac", ASR_RATE)).decode()
        body = json.dumps({"audio": recording, "language": "en"}).encode()
        options = RecognitionOptions(language="en")
        yield in_turns(
            f"recognition, whisper, {len(spoken) / ASR_RATE:.0f} s",
            lambda: timed(lambda: ears.recognize(spoken, options)),
            lambda: client.post("/asr/srt/audio_llm", body)[2],
            budget_s,
            cpu,
        )
        ears.close()
    if only in "gemma":
        translator, job = create("gemma"), TranslationJob(SOURCE, "en", "ja")
        data, kind = form(text=SOURCE, source_lang="en", target_lang="ja")
        yield in_turns(
            "translation, gemma",
            lambda: timed(lambda: list(translator.translate(job))),
            lambda: client.post("/translate/", data, kind)[2],
            budget_s,
            cpu,
        )
        translator.close()


def seconds(value: float | None) -> str:
    """A cell of the table."""
    return f"{'-':>8}" if value is None else f"{value:>8.3f}"


def first_piece(engine: Any, voice: str, text: str) -> float:
    """Return the seconds until an engine's first piece."""
    pieces = engine.synthesize(text, voice)
    took = timed(lambda: next(pieces))
    pieces.close()
    return took


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
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for each comparison")
    parser.add_argument("--only", default="", help="only the engine of this name, and no loads")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds under each load")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = ServiceConfig(port=0, data_dir=Path(folder))
        with run_service(config, process=True) as service:
            compared, late = [], []
            print(
                f"{'':<30}{'pairs':>6}{'engine s':>10}{'service s':>10}{'ratio':>7}{'95%':>15}{'more ms':>9}"
                f"{'CPU s':>8}{'CPU s':>8}"
            )
            client = Client(service.base_url, service.api_key)
            for found in overheads(client, options.budget, service.pid, options.only):
                compared.append(found)
                print(
                    f"{found['what']:<30}{found['pairs']:>6}{found['engine_s']:>10.3f}{found['service_s']:>10.3f}"
                    f"{found['ratio']:>7.3f}{found['ratio_low']:>8.3f}{found['ratio_high']:>7.3f}"
                    f"{found['more_ms']:>9.1f}{seconds(found['engine_cpu_s'])}{seconds(found['service_cpu_s'])}",
                    flush=True,
                )
            loads = (
                ()
                if options.only
                else lateness(lambda: Client(service.base_url, service.api_key), options.seconds)
            )
            print(f"\n{'GET /healthz while':<44}{'p50 ms':>8}{'p95 ms':>8}{'max ms':>8}")
            for found in loads:
                late.append(found)
                print(
                    f"{found['while']:<44}{found['p50_ms']:>8.1f}{found['p95_ms']:>8.1f}{found['max_ms']:>8.1f}",
                    flush=True,
                )
    if options.json:
        options.json.write_text(json.dumps({"overhead": compared, "lateness": late}, indent=2) + "\n")


if __name__ == "__main__":
    main()
