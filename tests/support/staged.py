"""A service whose engines fail on purpose, for what no real engine does when asked."""

import threading
from collections.abc import Callable
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from speechlab.engines import EngineVoice, Recognition, RecognitionSegment, TranslationDelta
from speechlab.errors import EngineError, InvalidRequestError, ModelError
from speechlab.service import (
    Database,
    Ledger,
    Provider,
    ServedEngine,
    ServiceConfig,
    UsageRow,
    run_service,
    voice_uuid,
)
from support.clients import KEY, Http, Reply, form_body, talking
from support.clock import eventually

CANARY = "kanarienvogel"


@dataclass
class StagedVoice:
    """A synthesizer that does what the test needs: waits, fails, counts."""

    model: str = "staged-1"
    sample_rate: int = 24_000
    piece_s: float = 0.5
    calls: list[dict[str, Any]] = field(default_factory=list)
    begun: int = 0
    closed: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    voices: tuple[EngineVoice, ...] = tuple(
        EngineVoice(name, ("en",), "Neutral", f"staged to be {name}")
        for name in ("plain", "gated", "broken", "breaks-later", "no-model", "bug", "endless", "picky")
    )

    def check_text(self, text: str, voice: str) -> None:
        if voice == "picky":
            raise InvalidRequestError("this voice does not read such a text", parameter="text", rule="2.2")

    def synthesize(self, text: str, voice: str, *, temperature: float | None = None) -> Any:
        self.calls.append({"text": text, "voice": voice, "temperature": temperature})
        if voice == "no-model":
            raise ModelError(f"the weights at /home/{CANARY}/model.bin are damaged; reinstall them")
        if voice == "bug":
            raise KeyError(text)
        return self._pieces(voice)

    def _pieces(self, voice: str) -> Any:
        piece = np.full(round(self.sample_rate * self.piece_s), 0.1, dtype=np.float32)
        self.begun += 1
        try:
            if voice == "broken":
                raise EngineError("the engine failed before its first sound")
            yield piece
            if voice == "gated":
                assert self.gate.wait(20)
            if voice == "breaks-later":
                raise EngineError("the engine failed after its first sound")
            while voice == "endless":
                yield piece
            yield piece
        finally:
            self.closed += 1


@dataclass
class StagedRecognizer:
    """A recognizer that records how it was asked; a loud first sample stands for a failure."""

    model: str = "staged-ears"
    languages: tuple[str, ...] = ("ja", "en", "zh")
    calls: list[tuple[np.ndarray, Any]] = field(default_factory=list)
    fault: Exception | None = None
    hears: Callable[[float], str] = lambda duration_s: "heard"
    """The text of a recording, by its length in seconds."""

    def recognize(self, samples: np.ndarray, options: Any) -> Recognition:
        self.calls.append((samples, options))
        if self.fault is not None:
            raise self.fault
        duration = len(samples) / 16_000
        text = self.hears(duration)
        pieces = (RecognitionSegment(0.0, duration, text),) if options.vad == "segments" else ()
        return Recognition(text, options.language or "en", 0.5, pieces)


@dataclass
class StagedTranslator:
    """A translator that echoes, so that what goes through the service can be followed."""

    model: str = "staged/echo"
    languages: tuple[str, ...] = ("ja", "en", "zh")
    says: Callable[[Any], str] = lambda job: job.text
    """The translation of a job, without its quotation marks."""
    jobs: list[Any] = field(default_factory=list)
    begun: int = 0
    closed: int = 0
    gate: threading.Event = field(default_factory=threading.Event)

    def translate(self, job: Any) -> Any:
        self.jobs.append(job)
        self.begun += 1
        try:
            if job.text.startswith("broken"):
                raise EngineError("the engine failed before its first word")
            yield TranslationDelta("«")
            if job.text.startswith("gated"):
                assert self.gate.wait(20)
            if job.text.startswith("breaks later"):
                raise EngineError("the engine failed after its first word")
            yield TranslationDelta(self.says(job))
            yield TranslationDelta("»", len(job.text), 3)
        finally:
            self.closed += 1


def used(folder) -> list[UsageRow]:
    """The rows that a service has written into its folder."""
    with closing(Database(folder)) as database:
        return Ledger(database).list_rows()


NO_ENGINES = {
    name: {"enabled": False}
    for name in ("kokoro", "q", "hibari", "openjtalk", "whisper", "gemma", "qwen", "llama")
}


def staged_config(*engines: ServedEngine, **settings: Any) -> ServiceConfig:
    """Settings of a service that has these engines alone, and whose key is an operator's too."""
    named = {engine.kind: engine.name for engine in engines}
    usual = {
        "port": 0,
        "api_keys": (KEY,),
        "operator_keys": (KEY,),
        "engines": NO_ENGINES,
        "recognizer": named.get("recognizer", ""),
        "translator": named.get("translator", ""),
    }
    return ServiceConfig(**{**usual, **settings}, extra_engines=engines)


@dataclass
class Staged:
    """A service whose engines are staged."""

    http: Http
    speaker: StagedVoice
    q: StagedVoice
    ears: StagedRecognizer
    translator: StagedTranslator

    def voice(self, name: str, provider: str = "staged") -> str:
        return voice_uuid(provider, name)

    def fields(self, voice: str = "plain", **fields: Any) -> dict[str, Any]:
        """What is sent to have a voice speak."""
        return {"voice_id": self.voice(voice), "text": "Hi.", "format": "pcm", **fields}

    def speak(self, voice: str = "plain", *, http: Http | None = None, **fields: Any) -> Reply:
        return (http or self.http).speak(**self.fields(voice, **fields))

    def asking(self, voice: str, **fields: Any):
        """A socket on which a voice has been asked to speak."""
        return self.http.raw_json("/tts", self.fields(voice, **fields))

    def translate(self, text: str = "Hi.", *, http: Http | None = None, **fields: str) -> Reply:
        return (http or self.http).translate(text=text, source_lang="en", target_lang="ja", **fields)

    @contextmanager
    def talk(self, voice: str = "plain", *, key: str | None = None, **session: Any):
        """A realtime connection that is configured for a voice."""
        with talking(self.http, key) as client:
            client.configure(**{"voice_id": self.voice(voice), "format": "pcm", **session})
            yield client

    def translating(self, text: str, **fields: str):
        """A socket on which a translation has been asked for."""
        pair = {"source_lang": "en", "target_lang": "ja"}
        body, kind = form_body([*({"text": text} | pair | fields).items()])
        head = (
            "POST /translate/ HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {key}\n"
            f"Content-Type: {kind}\nContent-Length: {len(body)}\nConnection: close\n"
        )
        return self.http.raw(head, body)

    def reset(self) -> None:
        """Let what runs come to its end, and forget all of it."""
        engines = (self.speaker, self.q, self.translator)
        for engine in engines:
            engine.gate.set()
        assert eventually(lambda: all(engine.begun == engine.closed for engine in engines))
        for engine in engines:
            engine.begun, engine.closed, engine.gate = 0, 0, threading.Event()
        for calls in (self.speaker.calls, self.q.calls, self.translator.jobs, self.ears.calls):
            calls.clear()
        self.speaker.piece_s, self.ears.fault = StagedVoice.piece_s, None
        self.speaker.voices = StagedVoice.voices


@contextmanager
def staged_service(*, with_engines: bool = True, **settings: Any):
    speaker, q, ears, translator = StagedVoice(), StagedVoice(), StagedRecognizer(), StagedTranslator()
    engines = (
        ServedEngine("staged", "synthesizer", lambda: speaker, Provider("staged", heavy=False)),
        ServedEngine("q", "synthesizer", lambda: q, heavy=False),
        ServedEngine("mono-rate", "synthesizer", lambda: q, Provider("mono-rate", sample_rates=(24_000,))),
        ServedEngine("ears", "recognizer", lambda: ears, heavy=False),
        ServedEngine("echo", "translator", lambda: translator, heavy=False),
    )
    with run_service(staged_config(*(engines if with_engines else ()), **settings)) as service:
        yield Staged(Http(service.base_url), speaker, q, ears, translator)
        speaker.gate.set()
        translator.gate.set()
