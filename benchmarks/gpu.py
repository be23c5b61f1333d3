"""Real-time factors of the engines by device, beside the bare library; for a machine with an NVIDIA GPU.

    python benchmarks/gpu.py                                        # Whisper base, on all devices
    python benchmarks/gpu.py --model large-v3-turbo --seconds 600
    python benchmarks/gpu.py --kokoro fp16                          # and Kokoro of a precision

The speech is hibari's. Each time is the better of two, without the load. The bare library has other settings of the
search, so that its texts differ a little.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import soxr
from faster_whisper import WhisperModel

from speechlab.engines import RecognitionOptions, create, describe_gpus, list_gpus
from speechlab.errors import SpeechLabError

if TYPE_CHECKING:
    from collections.abc import Callable

SENTENCES = (
    "The first train to the city leaves early in the morning.",
    "Please bring your own lunch because the shop is closed.",
    "It rained all night, and the river rose by half a meter.",
    "Nobody knew why the lights went out before the concert began.",
)


def make_speech(seconds: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Speech of about this length, at 16 kHz."""
    voice = create("hibari")
    spoken = [np.concatenate(list(voice.synthesize(sentence, "heart"))) for sentence in SENTENCES]
    once = np.concatenate([part for sound in spoken for part in (sound, np.zeros(12_000, dtype=np.float32))])
    samples = np.asarray(soxr.resample(once, voice.sample_rate, 16_000), dtype=np.float32)
    return np.tile(samples, max(1, round(seconds * 16_000 / len(samples))))


def measure_best(work: Callable[[], object]) -> float:
    """Seconds of the faster of two."""
    times = []
    for _ in range(2):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def measure_recognizer(model: str | None, device: str, sound: Any) -> None:
    """Print the factor of the engine, and that of faster-whisper with the same model, numbers and language."""
    engine = create("whisper", **({"model": model} if model else {}), device=device)
    engine.load()
    options = RecognitionOptions(language="en")
    seconds = len(sound) / 16_000
    ours = measure_best(lambda: engine.recognize(sound, options)) / seconds
    kind = engine._whisper.model.compute_type  # noqa: SLF001
    folder = engine._prepare_model_folder()  # noqa: SLF001
    index = int(device.partition(":")[2] or 0)
    bare = WhisperModel(
        str(folder), device=device.partition(":")[0], device_index=index, compute_type=kind, cpu_threads=2
    )
    theirs = measure_best(lambda: list(bare.transcribe(sound, language="en", beam_size=5)[0])) / seconds
    print(f"{engine.model:<44} {device:<8} {kind:<14} {ours:>8.4f} {theirs:>8.4f}", flush=True)
    engine.close()


def measure_voice(precision: str, device: str) -> None:
    """Print the factor of Kokoro."""
    engine = create("kokoro", precision=precision, device=device)
    engine.load()
    voice = engine.voices[0].name

    def speak() -> int:
        return sum(len(piece) for text in SENTENCES for piece in engine.synthesize(text, voice))

    seconds = speak() / engine.sample_rate
    factor = measure_best(speak) / seconds
    print(f"{engine.model:<44} {device:<8} {precision:<14} {factor:>8.4f}        -", flush=True)
    engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", help="a usual size of Whisper, a folder or a repository (default: the pinned base)"
    )
    parser.add_argument("--kokoro", metavar="PRECISION", help="measure Kokoro of this precision too")
    parser.add_argument("--seconds", type=float, default=120.0, help="length of the speech (default 120)")
    arguments = parser.parse_args()
    print(f"GPU: {describe_gpus()}")
    sound = make_speech(arguments.seconds)
    print(f"{len(sound) / 16_000:.0f} s of speech; seconds of work for one second")
    print(f"{'model':<44} {'device':<8} {'numbers':<14} {'engine':>8} {'library':>8}")
    for device in ("cpu", *(f"cuda:{index}" for index in range(len(list_gpus())))):
        try:
            measure_recognizer(arguments.model, device, sound)
            if arguments.kokoro:
                measure_voice(arguments.kokoro, device)
        except SpeechLabError as error:
            print(f"{device}: {error}")


if __name__ == "__main__":
    main()
