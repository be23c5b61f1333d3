"""Speech that is checked before it is shipped, by planted truth: what is found, taken again for nothing, and bounded.

Two staged voices have faults at a known rate: they lose, repeat and misread words, are cut off, clipped, silent, too
slow, and speak with another pitch. A recognizer errs in one of twenty recordings. For `--part bound`, batches have
wrong lines that no check found, and samples of them are heard without an error.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import tempfile
import time
from collections import Counter

import numpy as np
import pandas as pd

import speechlab as sl

RATE = 16_000
KINDS = ("lose", "repeat", "misread", "cut", "clip", "silent", "slow", "drift")
VOCABULARY = (
    "river window market garden silver morning letter winter paper station doctor yellow pocket simple orange "
    "mountain table kitchen corner village hammer summer pencil ladder basket"
)
WORDS = VOCABULARY.split()
PITCHES = {"ada": 210.0, "bob": 120.0}
LETTER_S, MARK, BITS = 0.03, 4 / 32_767, 20


class Stage:
    """Voices with faults at a rate, and a recognizer that knows the words of each sound and errs at another rate."""

    def __init__(self, faults: float, slips: float, seed: int) -> None:
        self.random, self.faults, self.slips = random.Random(seed), faults, slips
        self.said: list[list[str]] = []
        self.planted: dict[str, list[str | None]] = {}
        self.lab = sl.system(
            "staged voices", synthesize=self.speak, voices=dict.fromkeys(PITCHES, "English"), version="1"
        )
        self.recognizer = sl.system("staged recognizer", transcribe=self.recognize, version="1")

    def speak(self, text: str, voice: str) -> sl.AudioClip:
        """Speak a text, sometimes with a fault."""
        fault = self.random.choice(KINDS) if self.random.random() < self.faults else None
        self.planted.setdefault(text, []).append(fault)
        words = text.lower().strip(".").split()
        place = self.random.randrange(len(words))
        if fault == "lose":
            del words[place]
        elif fault == "repeat":
            words += words[-2:]
        elif fault == "misread":
            words[place] = self.random.choice([word for word in WORDS if word not in words])
        pitch = PITCHES[voice] * self.random.uniform(0.97, 1.03) * (1.45 if fault == "drift" else 1.0)
        letter_s = LETTER_S * self.random.uniform(0.93, 1.07) * (1.9 if fault == "slow" else 1.0)
        sound = np.concatenate([tone(word, pitch, letter_s) for word in words])
        if fault == "cut":
            sound, words = sound[: -RATE // 10], words[:-1]
        else:
            sound = np.append(sound, np.zeros(RATE // 10))
        if fault == "clip":
            sound = np.clip(8 * sound, -1, 1)
        if fault == "silent":
            sound, words = 0 * sound, []
        self.said.append(words)
        mark = [1, *(1 if bit == "1" else -1 for bit in f"{len(self.said) - 1:0{BITS}b}")]
        return sl.AudioClip(np.concatenate([np.multiply(mark, MARK), np.zeros(RATE // 10), sound]), RATE)

    def recognize(self, clip: sl.AudioClip) -> str:
        """Return the words of a sound, of which one is sometimes wrong."""
        steps = np.rint(clip.samples * 32_767).astype(int)
        bits = steps[np.flatnonzero(steps)[0] + 1 :][:BITS]
        words = [*self.said[int("".join("1" if bit > 0 else "0" for bit in bits), 2)]]
        chance = random.Random(hashlib.sha256(clip.samples.tobytes()).digest())
        if words and chance.random() < self.slips:
            words[chance.randrange(len(words))] = chance.choice(WORDS)
        return " ".join(words)


def tone(word: str, pitch: float, letter_s: float) -> np.ndarray:
    """Return the sound of a word, in which each letter has its own spectrum."""
    times = np.arange(round(RATE * letter_s)) / RATE
    letters = []
    for letter in word:
        levels = np.random.default_rng(ord(letter)).uniform(0, 1, 12) ** 3
        wave = sum(level * np.sin(2 * np.pi * pitch * (at + 1) * times) for at, level in enumerate(levels))
        letters.append(0.2 * wave / np.abs(wave).max())
    sound = np.concatenate(letters)
    edge = np.minimum(np.arange(len(sound)), len(sound) - np.arange(len(sound)))
    return sound * np.minimum(1, edge / (RATE // 30))


def measure_check(lines: int, seed: int) -> None:
    """Print how many faults are found, and how many lines are taken again for nothing."""
    stage, chance = Stage(0.1, 0.05, seed), random.Random(seed + 1)
    texts = [" ".join(chance.sample(WORDS, chance.randint(4, 6))).capitalize() + "." for _ in range(lines)]
    frame = pd.DataFrame({"text": texts, "voice": [*PITCHES] * (lines // 2), "language": "en"})
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as store:
        made = sl.batch.synthesize(
            frame, stage.lab, check=stage.recognizer, takes=3, store=store, progress=False
        )
        taken_s, spoken = time.perf_counter() - began, len(stage.said)
        again = sl.batch.synthesize(
            frame, stage.lab, check=stage.recognizer, takes=3, store=store, progress=False
        )
    same = again[["key", "check", "why"]].equals(made[["key", "check", "why"]])
    planted = pd.Series([stage.planted[text][0] for text in texts])
    shipped = pd.Series([stage.planted[text][take] for text, take in zip(texts, made["take"], strict=True)])
    flagged = (made["takes"] > 1).to_numpy()
    faulty, fine = planted.notna().to_numpy(), planted.isna().to_numpy()
    found, needless = int((faulty & flagged).sum()), int((fine & flagged).sum())
    is_ready = (made["check"] == "ready").to_numpy()
    print(f"seed {seed}: {lines} lines, {faulty.sum()} with a fault, {taken_s:.0f} s, {spoken} calls")
    print(f"  found {found} ({found / faulty.sum():.1%}), missed {dict(Counter(planted[faulty & ~flagged]))}")
    print(f"  taken again for nothing {needless} of {fine.sum()} ({needless / fine.sum():.1%})")
    print(f"  ready {is_ready.sum()}, of these with a fault {(is_ready & shipped.notna()).sum()}")
    print(f"  the same again: {len(stage.said) - spoken} calls, equal {same}")


def measure_bound(studies: int) -> None:
    """Print how often the bound holds, for batches of several sizes with wrong lines that no check found."""
    chance = np.random.default_rng(1)
    for lines, heard, most in ((500, 60, 30), (40, 30, 6)):
        held, bounds = 0, []
        for _ in range(studies):
            keys = [hashlib.sha256(chance.bytes(8)).hexdigest() for _ in range(lines)]
            facts = {
                "audio": "x",
                "duration_s": 1.0,
                "status": "ok",
                "error": None,
                "transcript": "",
                "why": None,
            }
            made = pd.DataFrame({"text": keys, "key": keys, "check": "ready", "take": 0, "takes": 1}).assign(
                **facts
            )
            wrong = set(chance.choice(keys, chance.integers(0, most + 1), replace=False))
            sample = sl.evaluate.acceptance(made).sample(heard).frame
            decided = sample.assign(note=["wrong" if key in wrong else "right" for key in sample["key"]])
            report = sl.evaluate.acceptance(made, decided)
            bounds.append(int(report.tables["bound"]["bound"].iloc[0]))
            held += len(wrong - set(decided["key"])) <= bounds[-1]
        middle = np.median(bounds)
        print(
            f"{lines} lines, {heard} heard: the bound holds in {held} of {studies}; median {middle:.0f}",
            flush=True,
        )


PARTS = {
    "check": lambda options: measure_check(options.lines, options.seed),
    "bound": lambda options: measure_bound(options.studies),
}


def main() -> None:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*PARTS], action="append")
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for part in options.part or PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
