"""Small language models as translators, by llama.cpp (xllamacpp).

The library starts an HTTP server for each model. This module calls it in process only. The server therefore listens
on a Unix socket in a private folder, whose name is removed once it listens, and has a random key. On systems without
such sockets it listens on a loopback port, and the random key keeps others out.

A text is translated line by line, which keeps line breaks, and a line in sentences, which allows any length.
"""

from __future__ import annotations

import os
import queue
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from speechlab._require import require
from speechlab.engines._chunks import cut_long, estimate_spoken_length, split_sentences
from speechlab.engines._devices import Device, choose_device, find_llama_problem
from speechlab.engines._protocols import TranslationDelta, TranslationJob, checkpoint
from speechlab.engines._translation.prompts import (
    LANGUAGE_NAMES,
    Terms,
    build_chat_messages,
    build_few_shot_prefix,
    build_few_shot_prompt,
    compute_token_budget,
)
from speechlab.engines._weights.formats import GGUF_FORMAT
from speechlab.engines._weights.hub import find_or_fetch_model
from speechlab.engines._weights.names import HubName, parse_model_name
from speechlab.engines._weights.official import find_official_source
from speechlab.engines._weights.specs import GEMMA_270M, ModelSpec
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import EngineError, ModelError

_PIECE_LIMIT = 150.0
_GROUP_LIMIT = 120.0
# More layers than any model has.
_ALL_LAYERS = 999


def cut_for_translation(text: str, *, by_sentence: bool, target: str) -> Iterator[tuple[str, bool]]:
    """Cut a text into pieces to translate (True), and pieces to copy (False), such as line breaks and spaces."""
    joint = " " if target == "en" else ""
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        inner = body.strip()
        start = body.index(inner) if inner else 0
        if not any(char.isalnum() for char in inner):
            yield line, False
            continue
        if start:
            yield body[:start], False
        first = True
        for sentence in _group_sentences(inner, by_sentence=by_sentence):
            if not any(char.isalnum() for char in sentence):
                yield sentence, False
                continue
            if not first and joint:
                yield joint, False
            first = False
            yield sentence, True
        trailing = line[start + len(inner) :]
        if trailing:
            yield trailing, False


def _group_sentences(line: str, *, by_sentence: bool) -> Iterator[str]:
    group = ""
    for sentence in split_sentences(line):
        for sentence_piece in cut_long(sentence, _PIECE_LIMIT):
            if group and (by_sentence or estimate_spoken_length(group + sentence_piece) > _GROUP_LIMIT):
                yield group.strip()
                group = ""
            group += sentence_piece
    if group.strip():
        yield group.strip()


def strip_stream(parts: Iterator[str]) -> Iterator[str]:
    """Remove white space around the whole text; white space is held back until text follows it."""
    held = ""
    begun = False
    for part in parts:
        text = held + part if begun else (held + part).lstrip()
        stripped = text.rstrip()
        held = text[len(stripped) :]
        if stripped:
            begun = True
            yield stripped


# Placeholder for a text; no text begins with it.
_PLACEHOLDER_TEXT = "§"


class LlamaEngine:
    """A GGUF model as a :class:`~speechlab.engines.Translator`.

    Args:
        model: A pinned model, the path of a ``.gguf`` file or of a folder with one, or a repository of the hub,
            ``owner/name[@revision][:file]``; for the file, its quantization such as ``Q4_K_M`` is enough.
        model_id: Id of the model for clients, of the form ``vendor/name``; by default made from the file's name.
        prompt: ``"few-shot"`` for base models, ``"chat"`` for models with a chat template.
        store: Model store of pinned models; the user's cache by default.
        threads: Threads of one inference; by default half of the cores. The threads of llama.cpp wait for each other
            at every step: on a core that other work uses, two threads are up to four times slower than one.
        context_tokens: Size of the model's window in tokens.
        gpu_layers: Number of layers on the GPU; by default all if ``device`` chooses one.
        simplified: Convert Chinese output to simplified characters, if OpenCC is installed.
        device: ``"auto"`` (a GPU, if machine and libraries can), ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        allow_download: Whether a named model is fetched if it is not here.
    """

    def __init__(
        self,
        model: ModelSpec | str | Path = GEMMA_270M,
        *,
        model_id: str | None = None,
        prompt: Literal["few-shot", "chat"] = "chat",
        store: ModelStore | None = None,
        threads: int | None = None,
        context_tokens: int = 4096,
        gpu_layers: int | None = None,
        simplified: bool = True,
        device: str = "auto",
        allow_download: bool = True,
    ) -> None:
        self._store = store or ModelStore()
        self._source = (
            find_official_source(model, self._store) or model
            if isinstance(model, ModelSpec)
            else parse_model_name(model, {})
        )
        self._device = device
        self._allow_download = allow_download
        self._id = model_id
        self._prompt = prompt
        self._threads = threads or max(1, (os.cpu_count() or 2) // 2)
        self._context_tokens = context_tokens
        self._gpu_layers = gpu_layers
        self._simplified = simplified
        self._server: Any = None
        self._converter: Any = None
        self._primed = ""

    @property
    def model(self) -> str:
        """Id of the model, of the form ``vendor/name``."""
        if self._id is not None:
            return self._id
        if isinstance(self._source, HubName):
            return self._source.repository
        return f"local/{self._source.name if isinstance(self._source, ModelSpec) else self._source.stem}"

    @property
    def languages(self) -> Sequence[str]:
        """Codes of the languages between which it translates."""
        return tuple(LANGUAGE_NAMES)

    def find_model(self) -> None:
        """Find the model, joined and with the right hash, without loading it; the first time takes seconds."""
        choose_device(self._device, find_llama_problem)
        self._prepare_model_file()

    def load(self) -> None:
        """Load the model now instead of on first use: 2 to 5 s, and longer the first time, when it is joined."""
        if self._server is None:
            path = self._prepare_model_file()
            device = choose_device(self._device, find_llama_problem)
            self._server = _start_server(path, self._threads, self._context_tokens, device, self._gpu_layers)

    def close(self) -> None:
        """Release the model; the next use loads it again."""
        self._server = None
        self._primed = ""

    def translate(self, job: TranslationJob) -> Iterator[TranslationDelta]:
        """Translate, token by token (see the protocol).

        A sentence with keywords comes in one piece, after a check: if the model lost a term, the sentence is
        translated again in another way. The last piece names the terms that are still missing.
        """
        for code in (job.source, job.target):
            if code not in LANGUAGE_NAMES:
                raise EngineError(
                    f"the language {code!r} is not translated here; choose from: {', '.join(LANGUAGE_NAMES)}"
                )
        self.load()
        return self._translate_pieces(job)

    def _prepare_model_file(self) -> Path:
        if isinstance(self._source, ModelSpec):
            return next(iter(self._store.ensure_files(self._source).values()))
        return find_or_fetch_model(
            self._source, GGUF_FORMAT, self._store, allow_download=self._allow_download
        ).main

    def _translate_pieces(self, job: TranslationJob) -> Iterator[TranslationDelta]:
        counts = [0, 0]
        terms = Terms(job.keywords, job.text)
        lost: dict[str, None] = {}
        for text, translatable in cut_for_translation(
            job.text, by_sentence=self._prompt == "few-shot", target=job.target
        ):
            if not translatable:
                yield TranslationDelta(text)
                continue
            used_terms = terms.list_used_terms(text)
            if used_terms:
                translation = self._translate_keeping_terms(text, used_terms, terms, job, counts)
                lost.update(dict.fromkeys(word for word in used_terms if word not in translation))
                yield TranslationDelta(translation)
            else:
                for delta in strip_stream(self._stream_piece_translation(text, job, (), counts)):
                    yield TranslationDelta(self._simplify_if_chinese(delta, job.target))
        yield TranslationDelta("", counts[0], counts[1], tuple(lost))

    def _translate_keeping_terms(
        self, text: str, wanted: Sequence[str], terms: Terms, job: TranslationJob, counts: list[int]
    ) -> str:
        """Translate a piece with terms: with placeholders first, and with the terms themselves if that fails."""
        if not any(character.isalnum() for character in terms.remove_terms(text)):
            return text  # only terms, which a model would not leave unchanged
        hidden = terms.hide_terms(text)
        marks = tuple(terms.hide_terms(word) for word in wanted)
        best, best_score = "", -1
        for source, copied in ((hidden, marks), (text, tuple(wanted))):
            raw = "".join(strip_stream(self._stream_piece_translation(source, job, copied, counts)))
            text_shown = terms.restore_terms(self._simplify_if_chinese(raw, job.target))
            score = sum(word in text_shown for word in wanted)
            if score > best_score:
                best, best_score = text_shown, score
            if score == len(wanted):
                break
        return best

    def _stream_piece_translation(
        self, text: str, job: TranslationJob, marks: Sequence[str], counts: list[int]
    ) -> Iterator[str]:
        """Yield the text of one piece as the model generates it, and add its tokens to ``counts``."""
        # The model's memory is set up again below, so another text may be translated in between.
        checkpoint()
        chat = self._prompt == "chat"
        request: dict[str, Any] = {"temperature": 0.0, "stream": True, "stop": ["\n"], "cache_prompt": True}
        if chat:
            request |= {
                "messages": build_chat_messages(text, job, marks),
                "max_tokens": compute_token_budget(text),
                "stream_options": {"include_usage": True},
            }
            self._prime_model_memory(
                {"messages": build_chat_messages(_PLACEHOLDER_TEXT, job, marks), "max_tokens": 1}
            )
        else:
            prompt = build_few_shot_prompt(text, job, marks[0] if marks else None)
            request |= {"prompt": prompt, "n_predict": compute_token_budget(text)}
            self._prime_model_memory(
                {"prompt": build_few_shot_prefix(job) + _PLACEHOLDER_TEXT, "n_predict": 1}
            )
        for chunk in _stream_chunks(self._server, request, chat=chat):
            usage = chunk.get("usage")
            if usage:
                counts[0] += int(usage.get("prompt_tokens", 0))
                counts[1] += int(usage.get("completion_tokens", 0))
            for choice in chunk.get("choices", ()):
                piece = choice.get("delta", {}).get("content") if chat else choice.get("text")
                if piece:
                    yield piece

    def _prime_model_memory(self, request: dict[str, Any]) -> None:
        """Set the model's memory to one state before each piece: the instructions only.

        The library reuses the common beginning of the last prompt and the next one. That saves most of the time. But
        the length of the common part determines the batches of the rest, and so the last bits of the sums: a sentence
        would be translated differently from call to call. A tiny request in between makes the common part the same
        each time. It is computed again only if the instructions change.
        """
        key = repr(request)
        chat = self._prompt == "chat"
        reuse = {"temperature": 0.0, "cache_prompt": key == self._primed, "stream": True}
        for _ in _stream_chunks(self._server, request | reuse, chat=chat):
            pass
        self._primed = key

    def _simplify_if_chinese(self, text: str, target: str) -> str:
        if target != "zh" or not self._simplified:
            return text
        if self._converter is None:
            self._converter = require("opencc").OpenCC("t2s")
        return str(self._converter.convert(text))


def _start_server(
    path: Path, threads: int, context_tokens: int, device: Device, gpu_layers: int | None
) -> Any:
    library = require("xllamacpp")
    params = library.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context_tokens
    params.n_parallel = 1
    # Without it, a model with a sliding window (Gemma) reads the examples again for each sentence.
    params.swa_full = True
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_gpu_layers = (_ALL_LAYERS if device.kind == "cuda" else 0) if gpu_layers is None else gpu_layers
    if device.kind == "cuda" and device.index:
        params.split_mode = library.llama_split_mode.LLAMA_SPLIT_MODE_NONE
        params.main_gpu = device.index
    params.fit_params = False
    params.offline = True
    params.warmup = False
    params.verbosity = -1
    # The library would keep up to 8 GB of old prompts in memory.
    params.cache_ram_mib = 0
    params.ui = False
    params.endpoint_slots = False
    params.api_keys = [secrets.token_urlsafe(32)]
    private = Path(tempfile.mkdtemp(prefix="speechlab-llama-")) if os.name == "posix" else None
    if private is not None:
        params.hostnames = [str(private / "s.sock")]
    try:
        return library.Server(params)
    except Exception as error:
        raise ModelError(f"llama.cpp cannot load {path}: {error}; is it a complete GGUF file?") from error
    finally:
        if private is not None:
            # No client connects to the socket. Without a name, no other process can.
            shutil.rmtree(private, ignore_errors=True)


def _stream_chunks(server: Any, request: dict[str, Any], *, chat: bool) -> Iterator[dict[str, Any]]:
    """Run a blocking request in a thread, and yield its chunks; closing the iterator stops the model."""
    chunks: queue.SimpleQueue[dict[str, Any] | BaseException | None] = queue.SimpleQueue()
    stop = threading.Event()

    def queue_chunk_and_check_stop(chunk: dict[str, Any]) -> bool:
        chunks.put(chunk)
        return stop.is_set()

    def run_request() -> None:
        try:
            handle = server.handle_chat_completions if chat else server.handle_completions
            answer = handle(request, queue_chunk_and_check_stop)
            if isinstance(answer, dict):
                chunks.put(answer)
            chunks.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            chunks.put(error)

    thread = threading.Thread(target=run_request, name="speechlab-llama", daemon=True)
    thread.start()
    try:
        while (chunk := chunks.get()) is not None:
            if isinstance(chunk, BaseException):
                raise EngineError(f"the language model failed: {type(chunk).__name__}") from chunk
            if "error" in chunk:
                fault = chunk["error"]
                raise EngineError(f"the language model refused: {fault.get('message', 'no reason given')}")
            yield chunk
    finally:
        stop.set()
        thread.join(60.0)
