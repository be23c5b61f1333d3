"""The process in which sherpa-onnx runs: it makes one model, then answers messages until its input ends.

The library ends its process, or crashes, on models that it cannot use. Then this process ends, and its parent reports
it with the last lines of the standard error.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np

from speechlab._children import read_message, write_message
from speechlab._require import require

Reply = tuple[dict[str, Any], bytes]
Answer = Callable[[dict[str, Any], bytearray], Reply]

SAMPLE_RATE = 16_000


class _Recognizers:
    """The recognizer of the language that was asked for last."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._factory = getattr(require("sherpa_onnx").OfflineRecognizer, fields["factory"])
        self._can_switch = fields["factory"] == "from_whisper"
        self._takes_language = fields["takes_language"]
        self._options = fields["options"]
        self._language: str | None = None
        self._recognizer: Any = None

    def get(self, language: str) -> Any:
        """Return the recognizer, set to a language; empty identifies it."""
        if self._language == language:
            return self._recognizer
        if self._recognizer is not None and self._can_switch:
            self._recognizer.config.model_config.whisper.language = language
            self._recognizer.recognizer.set_config(self._recognizer.config)
        else:
            self._recognizer = None  # two of them may be more than the memory
            added = {"language": language} if self._takes_language else {}
            self._recognizer = self._factory(**self._options, **added)
        self._language = language
        return self._recognizer


def _make_recognizer(fields: dict[str, Any]) -> tuple[dict[str, Any], Answer]:
    recognizers = _Recognizers(fields)

    def recognize(asked: dict[str, Any], data: bytearray) -> Reply:
        recognizer = recognizers.get(asked["language"])
        stream = recognizer.create_stream()
        stream.accept_waveform(SAMPLE_RATE, np.frombuffer(data, dtype=np.float32))
        recognizer.decode_stream(stream)
        result = stream.result
        fields = {
            "text": result.text,
            "tokens": list(result.tokens),
            "times": [float(time) for time in result.timestamps],
            "log_probabilities": [float(value) for value in getattr(result, "ys_log_probs", ())],
            "language": result.lang,
        }
        return fields, b""

    recognizers.get("")
    return {}, recognize


def _make_voice(fields: dict[str, Any]) -> tuple[dict[str, Any], Answer]:
    library = require("sherpa_onnx")
    model_class = getattr(library, f"OfflineTts{fields['kind']}ModelConfig")
    model = library.OfflineTtsModelConfig(
        **{fields["kind"].lower(): model_class(**fields["options"])}, num_threads=fields["threads"]
    )
    config = library.OfflineTtsConfig(model=model, max_num_sentences=1, **fields["rules"])
    if not config.validate():
        raise ValueError("sherpa-onnx refuses the files of the voice")
    voice = library.OfflineTts(config)

    def speak(asked: dict[str, Any], _: bytearray) -> Reply:
        generation = library.GenerationConfig()
        generation.sid = asked["speaker"]
        if asked.get("phonemes"):
            generation.phoneme_codepoints = [[ord(char) for char in asked["phonemes"]]]
        sound = voice.generate(asked["text"], generation)
        return {"sample_rate": sound.sample_rate}, np.asarray(sound.samples, dtype=np.float32).tobytes()

    return {"sample_rate": voice.sample_rate, "speakers": voice.num_speakers}, speak


_MAKERS = {"recognizer": _make_recognizer, "voice": _make_voice}


def main() -> None:
    for name in {"SIGINT", "SIGTERM", "SIGHUP"} & set(signal.Signals.__members__):
        signal.signal(
            signal.Signals[name], signal.SIG_IGN
        )  # the parent ends this process by closing its input
    # The library prints to the standard output.
    source, sink = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    first = read_message(source)
    if first is None:
        return
    fields, _ = first
    try:
        described, answer = _MAKERS[fields["make"]](fields)
    except Exception as error:  # noqa: BLE001 - the library may raise anything, and the parent reports it
        write_message(sink, {"failed": f"{type(error).__name__}: {error}"})
        return
    if fields["make"] == "voice":  # its further messages quote the text, without bound
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.dup2(2, 1)
    write_message(sink, described)
    while (message := read_message(source)) is not None:
        try:
            reply, data = answer(*message)
        except Exception as error:  # noqa: BLE001 - as above
            reply, data = {"failed": f"{type(error).__name__}: {error}"}, b""
        write_message(sink, reply, data)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the parent has ended
        main()
    os._exit(0)  # nothing has to be cleaned up
