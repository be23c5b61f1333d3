"""Speech that is checked before it is shipped, by planted truth: what is found, taken again for nothing, and bounded.

Two staged voices have faults at a known rate: they lose, repeat and misread words, are cut off, clipped, silent, too
slow, and speak with another pitch. A recognizer errs in one of twenty recordings. For `--part bound`, batches have
wrong lines that no check found, and samples of them are heard without an error. For `--part readings`, a voice
misreads 100 Japanese words. `--part words` has the errors of the times of words (`words.py`).
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
from words import measure_words

import speechlab as sl
from speechlab.text import find_on_reading, split_morphemes

RATE = 16_000
KINDS = ("lose", "repeat", "misread", "cut", "clip", "silent", "slow", "drift")
VOCABULARY = (
    "river window market garden silver morning letter winter paper station doctor yellow pocket simple orange "
    "mountain table kitchen corner village hammer summer pencil ladder basket"
)
WORDS = VOCABULARY.split()
# Words that no dictionary has, and others with one usual reading.
RARE = ["鬼滅", "起温", "猫鉄", "湖壁", "霧橋論", "砂港", "銀箱", "氷舟", "雷庭", "鋼樹"]
COMMON = (
    "佐藤 鈴木 高橋 田中 伊藤 渡辺 山本 中村 小林 加藤 吉田 山田 山口 松本 井上 木村 斎藤 "
    "清水 山崎 池田 橋本 阿部 石川 山下 中島 石井 小川 前田 岡田 長谷川 藤田 後藤 近藤 "
    "村上 遠藤 青木 坂本 福田 太田 西村 藤井 岡本 藤原 中野 三浦 金子 原田 松田 竹内 中川 "
    "中山 和田 石田 森田 上田 柴田 酒井 横山 宮崎 宮本 内田 高木 谷口 安藤 丸山 今井 高田 "
    "藤本 武田 村田 上野 杉山 増田 菅原 大塚 小島 千葉 久保 松井 岩崎 桜井 野口 松尾 野村 "
    "木下 菊地 佐野 大西 杉本 新井 浜田 市川 小山 水野 古川 島田 札幌 仙台 横浜 名古屋 "
    "京都 大阪 神戸 広島 福岡 長崎 鹿児島 青森 岩手 秋田 山形 福島 茨城 栃木 群馬 埼玉 "
    "東京 新潟 富山 福井 山梨 長野 岐阜 静岡 愛知 三重 滋賀 奈良 鳥取 島根 岡山 徳島 香川 "
    "愛媛 高知 佐賀 熊本 電車 学校 会社 病院 図書館 飛行機 自動車 新聞 雑誌 電話 写真 映画 "
    "音楽 料理 野菜 果物 牛乳 紅茶 珈琲 砂糖 醤油 味噌 豆腐 納豆 天気 台風 地震 津波 火山 "
    "温泉 神社 寺院 教会 公園 動物園 水族館 美術館 博物館 銀行 郵便局 警察 空港 切符 改札 "
    "時刻表 会議 資料 計画 予算 契約 営業 "
)
NAMES = [*RARE, *COMMON.split()]
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


class ReadingStage:
    """A voice that misreads 100 Japanese words unless they are in kana, and a recognizer that errs in words.

    The recognizer never understands 20 other words, in any spelling, and confuses others at a rate.
    """

    def __init__(self, slips: float, seed: int) -> None:
        self.random, self.slips = random.Random(seed), slips
        self.kana = {word: self.read(word) for word in NAMES}
        order = self.random.sample(NAMES, len(NAMES))
        self.misread = {
            word: self.random.choice(("ポンタ", "ガリモ", "ズネベ", "ヌコピ")) for word in order[:100]
        }
        self.unknown = [form for word in order[100:120] for form in (word, *forms(self.kana[word]))]
        self.said: list[str] = []
        voices = {"mei": "Japanese"}
        self.lab = sl.system(
            "staged reader", synthesize=self.speak, voices=voices, version=f"{seed}", concurrency=1
        )
        self.recognizer = sl.system("staged ear", transcribe=self.recognize, version=f"{seed} {slips}")

    @staticmethod
    def read(word: str) -> str:
        """Return the reading of the dictionary; of words that it lacks, that of their characters."""
        if word in RARE:
            return "".join(map(find_on_reading, word))
        return "".join(part.reading for part in split_morphemes(word))

    def speak(self, text: str, voice: str) -> sl.AudioClip:  # noqa: ARG002 - there is one
        """Speak a text, whose length is the number of what was said."""
        for word, other in self.misread.items():
            text = text.replace(word, other)
        self.said.append(text)
        return sl.AudioClip(np.full(999 + len(self.said), 0.1, np.float32), RATE)

    def recognize(self, audio: sl.AudioClip) -> str:
        """Return what was said, with errors."""
        text = self.said[audio.frames - 1_000]
        for form in self.unknown:
            text = text.replace(form, "モゴ")
        for word, kana in self.kana.items():
            for form in (word, kana):
                if form in text and self.random.random() < self.slips:
                    text = text.replace(form, self.random.choice(("ルル", "ヤマネ", "はしご")))
        return text


def forms(kana: str) -> tuple[str, str]:
    """Return katakana, and the same as hiragana."""
    return kana, "".join(chr(ord(sign) - 0x60) if "ァ" <= sign <= "ヶ" else sign for sign in kana)


def measure_readings(slips: float, seed: int) -> None:
    """Print how many of 100 misread words are found and get their right spelling, and how many others are taken."""
    stage = ReadingStage(slips, seed)
    pairs = zip(NAMES, NAMES[7:] + NAMES[:7], strict=True)
    frame = pd.DataFrame({"text": [f"昨日は{one}で{other}を見ました。" for one, other in pairs]})
    with tempfile.TemporaryDirectory() as store:
        options = {"recognizer": stage.recognizer, "store": store, "progress": False, "words": 400}
        report = sl.evaluate.readings(stage.lab, frame, "mei", language="ja", **options)
    table = report.table[report.table["verdict"] != "not judged"]
    found, misread = set(table["word"]), set(stage.misread)
    right = {entry.word for entry in report.lexicon if entry.spoken in forms(stage.kana[entry.word])}
    print(
        f"readings, {slips:.0%} of words confused: {len(found & misread)} of 100 found, {len(right & misread)} "
        f"repaired; {len(found - misread)} of {len(NAMES) - 100} others taken for misread; {len(stage.said)} calls",
        flush=True,
    )


PARTS = {
    "readings": lambda options: measure_readings(options.slips, options.seed),
    "check": lambda options: measure_check(options.lines, options.seed),
    "bound": lambda options: measure_bound(options.studies),
    "words": lambda options: measure_words(long=options.long),
}


def main() -> None:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*PARTS], action="append")
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--slips", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="words: also ten minutes in one recording")
    options = parser.parse_args()
    for part in options.part or PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
