"""Kokoro reads numbers as OpenJTalk does, which knows months, days, counters and decimal points."""

from __future__ import annotations

import re

import pytest

from speechlab.engines import ReadHere
from speechlab.text import reading

pytestmark = pytest.mark.engines

COUNTERS = "時分秒年人個本匹枚冊台回階歳円杯度番羽頭点位着件泊号倍名箱曲"
COUNTED = [
    *(f"{number}月" for number in range(1, 13)),
    *(f"5月{number}日" for number in range(1, 32)),
    *(f"{number}つ" for number in range(1, 10)),
    *(f"{number}{counter}" for counter in COUNTERS for number in (*range(1, 11), 14, 20, 100, 300, 8000)),
]
COUNTED.remove(
    "20歳"
)  # the reading is that of 二十歳 (ハタチ); the voices say ニジュッサイ, which is right as well


def sounds(phonemes):
    """Phonemes without joints, and with one sign for an n, whatever follows it, and one for a long i."""
    return re.sub("[ɴɲmŋ]", "n", re.sub("[ ,.:]", "", phonemes)).replace("ii", "iː").replace("ei", "eː")


def test_whatever_is_counted_is_read_as_it_is_said():
    reader = ReadHere()
    wrong = [
        text for text in COUNTED if sounds(reader.japanese(text)) != sounds(reader.japanese(reading(text)))
    ]
    assert not wrong


def test_numbers_are_read_in_words():
    reader = ReadHere()
    for text, said in {
        "4月": "しがつ", "４月２０日": "しがつはつか", "2つ": "ふたつ", "7人": "しちにん",
        "34.5度": "さんじゅうよんてんごど", "1.08倍": "いってんゼロはちばい",
        "1,234円": "せんにひゃくさんじゅうよえん",
        "10〜20分": "じゅうからにじゅっぷん", "007": "ゼロゼロなな", "第①回": "だいいっかい",
        "\U0010ff034月": "しがつ",
    }.items():  # fmt: skip
        assert sounds(reader.japanese(text)) == sounds(reader.japanese(said)), text
