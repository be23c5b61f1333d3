"""Errors of the times of words (``sl.align``) on known edges, and the seconds of one core for each second of sound.

It is the part ``words`` of ``ship.py``; with ``--long`` also of ten minutes of speech in one recording.

Sentences of single words have a known edge between any two: each word is spoken alone, its silence cut, and the words
are joined. Of whole sentences the engines tell the times: OpenJTalk the length of each label, hibari the frames of
each phoneme. There the space between two words has one or two frames of 25 ms, whose middle is their edge, and the
last phoneme has the silence after it, so that the last end of a sentence is left out. Of the Chinese recordings of
the package only the edges at their joins are known. The constants of the alignment were estimated on other sentences.
"""

from __future__ import annotations

import re
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import soxr

import speechlab as sl

if TYPE_CHECKING:
    from collections.abc import Iterable

RATE = 16_000
GOAL_MEDIAN_S, GOAL_NEAR, GOAL_FACTOR = 0.04, 0.9, 0.3

ENGLISH = """
my sister opened a small bakery near the station
the captain waited for better weather before sailing
children in this village learn three languages at school
we finally repaired the broken clock in the hall
his uncle sells fresh vegetables at the market every Saturday
a heavy box of old books fell from the shelf
nurses worked all night without a single break
the museum closes early during the winter months
please turn left after the second traffic light
her first novel became popular in several countries
farmers hope for rain before the end of summer
the new bridge connects both sides of the city
I forgot my umbrella on the crowded bus
most visitors enjoy the view from the tower
the teacher explained the problem with great patience
someone painted the garden fence dark green
""".strip().splitlines()
JAPANESE = """
弟 は 毎朝 牛乳 を 飲みます
駅 から 学校 まで 自転車 で 十分 です
この 店 の 料理 は とても 美味しい
昨日 買った 靴 が もう 壊れました
祖母 は 庭 で 野菜 を 育てて います
新しい 橋 が 来年 の 春 に 完成 します
電話 の 音 が 隣 の 部屋 から 聞こえます
週末 は 家族 と 海 へ 行く 予定 です
重い 荷物 を 二階 に 運んで ください
大学 で 歴史 と 経済 を 学んで います
猫 が 屋根 の 上 で 眠って います
財布 を どこ か に 忘れて しまいました
医者 は 薬 を 一日 三回 飲む ように 言いました
雨 の 音 を 聞きながら 手紙 を 書きました
夏 の 夜 は 花火 が 綺麗 です
彼 の 話 を 最後 まで 聞いて ください
""".strip().splitlines()


class Spoken(NamedTuple):
    """A sentence: its sound at 16 kHz, its text, and the known starts and ends by the place in the text."""

    sound: Any
    text: str
    starts: dict[int, float]
    ends: dict[int, float]


def cut_silence(sound: Any) -> Any:
    """Return a sound without the silence around it, faded in 2 ms."""
    loud = np.flatnonzero(np.abs(sound) > 0.01 * np.abs(sound).max())
    kept = sound[loud[0] : loud[-1] + 1].copy()
    ramp = np.linspace(0, 1, min(32, len(kept)))
    kept[: len(ramp)] *= ramp
    kept[-len(ramp) :] *= ramp[::-1]
    return kept


def join_sounds(parts: list[Any], texts: list[str], separator: str) -> Spoken:
    """Join sounds without silences between them."""
    silence = np.zeros(RATE // 5, dtype=np.float32)
    at, place = len(silence), 0
    starts, ends = {}, {}
    for part, text in zip(parts, texts, strict=True):
        starts[place], ends[place + len(text)] = at / RATE, (at + len(part)) / RATE
        at, place = at + len(part), place + len(text) + len(separator)
    return Spoken(np.concatenate([silence, *parts, silence]), separator.join(texts), starts, ends)


def speak_single_words(name: str, voice: str, sentences: Iterable[str], separator: str) -> list[Spoken]:
    """Speak each word alone."""
    engine = sl.engines.create(name)
    known: dict[str, Any] = {}
    spoken = []
    for sentence in sentences:
        words = sentence.split()
        for word in words:
            if word not in known:
                sound = np.concatenate(list(engine.synthesize(word, voice)))
                known[word] = cut_silence(soxr.resample(sound, engine.sample_rate, RATE).astype(np.float32))
        spoken.append(join_sounds([known[word] for word in words], words, separator))
    return spoken


def speak_with_openjtalk(sentences: Iterable[str]) -> list[Spoken]:
    """Speak whole sentences: the sound of a label alone is as long as in its sentence."""
    import pyopenjtalk

    spoken = []
    for sentence in sentences:
        text = sentence.replace(" ", "")
        labels = pyopenjtalk.extract_fullcontext(text)
        sound, rate = pyopenjtalk.synthesize(labels)
        edges = np.cumsum([0, *(len(pyopenjtalk.synthesize([label])[0]) for label in labels)]) / rate
        at, starts, ends = 1, {}, {}
        for word in pyopenjtalk.g2p_mapping(text):
            first, last = word["char_span"]
            starts[first], ends[last] = edges[at], edges[at + len(word["phonemes"])]
            at += len(word["phonemes"])
        if at == len(labels) - 1:  # without a pause within
            resampled = soxr.resample(np.asarray(sound) / 43_000, rate, RATE).astype(np.float32)
            spoken.append(Spoken(resampled, text, starts, ends))
    return spoken


def speak_with_hibari(sentences: Iterable[str]) -> list[Spoken]:
    """Speak whole sentences with a model that also gives the frames of each phoneme."""
    import hibari
    import onnxruntime

    voice = hibari.Hibari()
    # A message of protobuf that follows another one is merged with it: here a graph with one more output.
    name = b"/Clip_output_0"
    value = b"\x0a" + bytes([len(name)]) + name
    graph = b"\x62" + bytes([len(value)]) + value
    model = Path(voice.model_path).read_bytes() + b"\x3a" + bytes([len(graph)]) + graph
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    spoken = []
    for text in sentences:
        (phonemes,) = voice.phonemize(text)
        inputs = {"ids": np.array([voice.ids(phonemes)]), "speed": np.ones(1, dtype=np.float32)}
        *parts, frames = session.run(None, inputs)
        sound = hibari.dsp.synth(*(part[0] for part in parts), np.random.default_rng(0))
        edges = np.cumsum([0, *frames.ravel()]) / frames.sum() * len(sound) / voice.sample_rate
        words = text.split()
        said = phonemes.split(" ")
        if len(said) != len(words):
            continue
        at, place, starts, ends = 1, 0, {}, {}
        for word, sounds in zip(words, said, strict=True):
            count = sum(sign in voice.vocab for sign in sounds)
            starts[place] = (edges[at - (place > 0)] + edges[at]) / 2
            ends[place + len(word)] = (edges[at + count] + edges[at + count + 1]) / 2
            at, place = at + count + 1, place + len(word) + 1
        del ends[len(text)]
        spoken.append(
            Spoken(soxr.resample(sound, voice.sample_rate, RATE).astype(np.float32), text, starts, ends)
        )
    return spoken


def join_chinese() -> list[Spoken]:
    """Join the Chinese recordings of the package in pairs."""
    table = sl.datasets.zh_speech()
    table = table[table["duration_s"] < 8]
    sounds = [
        cut_silence(sl.AudioClip.from_file(path).to_mono().resample(RATE).samples.ravel())
        for path in table["audio"]
    ]
    texts = table["text"].tolist()
    pairs = [(one, other) for one in range(len(texts)) for other in range(len(texts)) if one != other]
    return [join_sounds([sounds[one], sounds[other]], [texts[one], texts[other]], "") for one, other in pairs]


def measure(name: str, spoken: list[Spoken], language: str) -> bool:
    """Print the errors of a set, and return whether it reaches the goal."""
    clips = [sl.AudioClip(each.sound, RATE) for each in spoken]
    started = time.process_time()
    tables = sl.align(clips, [each.text for each in spoken], language=language)
    worked_s = time.process_time() - started
    doubted = count_doubts(clips, [each.text for each in spoken], language)
    wrong = count_doubts(clips, [each.text for each in (*spoken[1:], spoken[0])], language)
    errors = []
    for row, each in enumerate(spoken):
        place = 0
        for word in tables[tables["row"] == row].itertuples():
            place = each.text.index(word.word, place)
            if place in each.starts:
                errors.append(word.start - each.starts[place])
            place += len(word.word)
            if place in each.ends:
                errors.append(word.end - each.ends[place])
    sizes = np.abs(errors)
    median, near = float(np.median(sizes)), float((sizes <= 0.1).mean())
    factor = worked_s / sum(clip.duration_s for clip in clips)
    is_reached = median <= GOAL_MEDIAN_S and near >= GOAL_NEAR and factor <= GOAL_FACTOR
    print(
        f"{name:32} {len(sizes):5} edges  median {1000 * median:3.0f} ms (bias {1000 * np.median(errors):+3.0f})  "
        f"within 100 ms {near:6.1%}  95th {1000 * np.quantile(sizes, 0.95):4.0f} ms  "
        f"{factor:.2f} s of CPU a second  {'reached' if is_reached else 'missed'}\n"
        f"{'':32} of {len(clips)} right texts {doubted} are doubted, of {len(clips)} others {wrong}",
        flush=True,
    )
    return is_reached


def count_doubts(clips: list[sl.AudioClip], texts: list[str], language: str) -> int:
    """Return of how many recordings the warning says that their text is hardly what is said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sl.align(clips, texts, language=language, progress=False)
    found = [re.search(r"the text of (\d+) of", str(warning.message)) for warning in caught]
    return sum(int(match[1]) for match in found if match)


def join_long(spoken: list[Spoken], separator: str, seconds: float) -> Spoken:
    """Join sentences with pauses of 0.4 s to one recording of at least this length."""
    pause = np.zeros(round(0.4 * RATE), dtype=np.float32)
    parts, texts, starts, ends, at, place = [], [], {}, {}, 0, 0
    while at < seconds * RATE:
        each = spoken[len(texts) % len(spoken)]
        starts |= {place + key: at / RATE + value for key, value in each.starts.items()}
        ends |= {place + key: at / RATE + value for key, value in each.ends.items()}
        parts += [each.sound, pause]
        texts.append(each.text)
        at, place = at + len(each.sound) + len(pause), place + len(each.text) + len(separator)
    return Spoken(np.concatenate(parts), separator.join(texts), starts, ends)


def measure_words(*, long: bool) -> None:
    """Measure all sets."""
    sl.align(
        sl.AudioClip(speak_single_words("hibari", "heart", ["hello there"], " ")[0].sound, RATE),
        "hello there",
        language="en",
    )
    told = {"en": speak_with_hibari(ENGLISH), "ja": speak_with_openjtalk(JAPANESE)}
    reached = [
        measure("English, hibari, single words", speak_single_words("hibari", "heart", ENGLISH, " "), "en"),
        measure("English, hibari tells", told["en"], "en"),
        measure(
            "Japanese, OpenJTalk, single words", speak_single_words("openjtalk", "mei", JAPANESE, ""), "ja"
        ),
        measure("Japanese, OpenJTalk tells", told["ja"], "ja"),
        measure("Chinese, joins of recordings", join_chinese(), "zh"),
        measure("English, Kokoro, single words", speak_single_words("kokoro", "jm_kumo", ENGLISH, " "), "en"),
        measure(
            "Japanese, Kokoro, single words",
            speak_single_words("kokoro", "jf_tebukuro", JAPANESE, ""),
            "ja",
        ),
    ]
    if long:
        reached += [
            measure("English, ten minutes", [join_long(told["en"], " ", 600)], "en"),
            measure("Japanese, ten minutes", [join_long(told["ja"], "", 600)], "ja"),
        ]
    print(f"{sum(reached)} of {len(reached)} sets reach the goals")
