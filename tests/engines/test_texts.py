"""Pure parts of the engines: chunks, scripts, numbers, prompts and placeholders, and the sound of pieces."""

import re
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.engines import ReadHere, TranslationJob
from speechlab.engines._chunks import (
    Piece,
    chunk_text,
    estimate_spoken_length,
    split_sentences,
    split_to_limit,
)
from speechlab.engines._sherpa.phonemes import read_text, select_known
from speechlab.engines._speech.phonemes import split_scripts
from speechlab.engines._speech.synthesis import speak_pieces, trim_silence_and_fade
from speechlab.engines._translation.llama import cut_for_translation, strip_stream
from speechlab.engines._translation.prompts import Terms, build_chat_messages, build_few_shot_prompt
from speechlab.errors import EngineError, MissingDependencyError
from speechlab.text import reading

TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from("。、！？.,!? \n　「」（）あいう漢字ABCabc019'’…—:;😀"), st.characters(codec="utf-8")
    ),
    max_size=100,
)


@given(TEXTS, st.floats(1, 60), st.floats(5, 100), st.integers(1, 40))
def test_pieces_joined_are_the_text_and_none_is_too_large(text, first, limit, most):
    pieces = [piece.text for piece in chunk_text(text, first=first, limit=limit)]
    parts = split_to_limit(text, most)
    assert "".join(pieces) == "".join(parts) == "".join(split_sentences(text)) == text
    assert all(piece and estimate_spoken_length(piece) <= limit + 1e-6 for piece in pieces)
    assert all(0 < len(part) <= most for part in parts)
    assert "".join(piece.text for piece in chunk_text(text)) == text


@pytest.mark.timeout(100)  # in linear time it takes a moment; otherwise longer than anybody waits
def test_long_texts_are_cut_in_linear_time():
    for unit in ("あ", "a", "a ", "あ、", "1", "\n", "。"):
        text = unit * 20_000
        assert "".join(piece.text for piece in chunk_text(text)) == text


def test_where_texts_are_cut():
    for expected in (
        [],
        ["はい。"],
        ["おはようございます、", "今日は三つの話題を順番にお伝えします。", "最初は天気です。"],
        ["Dr. Smith paid 3.50 dollars. ", "He left."],
        ["「はい。」", "と言った。次です。"],
        ["…。はい。そうです、", "今日はいい天気です。"],  # what is not spoken begins no piece of its own
    ):
        assert [piece.text for piece in chunk_text("".join(expected))] == expected


def test_runs_go_to_the_reader_of_their_script():
    for runs in (
        [],
        [("en", "Hello 330.")],
        [("ja", "これは"), ("en", "GPT-4 turbo"), ("ja", "です。")],
    ):
        assert split_scripts("".join(text for _, text in runs)) == runs
    assert split_scripts("ＡＰＩを3回") == [("en", "API"), ("ja", "を3回")]


@given(st.text(alphabet="あ漢ABc 1、。-'ー", max_size=60))
def test_runs_joined_are_the_text(text):
    assert "".join(run for _, run in split_scripts(text)) == text


def test_terms_are_hidden_whole_and_longest_first():
    terms = Terms(["art", "art lab", "日本"], "the art lab in 日本語, a party")
    assert terms.hide_terms("the art lab in 日本語, a party") == "the KW1 in KW3語, a party"
    assert terms.list_used_terms("the art of 日本") == ("art", "日本")
    assert terms.restore_terms("kw 1, KW-3 and KW12") == "art lab, 日本 and KW12"
    terms = Terms(["a.b\\1"], "KW1 means a.b\\1")  # placeholders do not collide with the text
    assert terms.hide_terms("KW1 means a.b\\1") == "KW1 means KX1"
    assert terms.restore_terms("KX1!") == "a.b\\1!"


@given(st.lists(st.text(min_size=1, max_size=8), max_size=20), st.text(max_size=80))
def test_hiding_and_showing_terms_loses_nothing_that_was_a_term(words, text):
    terms = Terms(words, text)
    for word in terms.list_used_terms(text):
        assert word in text


def test_prompts_hold_the_text_the_languages_and_the_context():
    job = TranslationJob("x", "ja", "en", (), "line one\nline two")
    prompt = build_few_shot_prompt("これ", job, "KW1")
    assert prompt.endswith("Context: line one line two\n\nJapanese: これ\nEnglish:")
    assert "We save the data with KW1." in prompt
    system, user = build_chat_messages("これ", job, ("KW1",))
    assert user == {"role": "user", "content": "これ"}
    assert all(part in system["content"] for part in ("Japanese", "KW1", "line one line two"))


@given(st.text(alphabet="あ。 \n\r\tab.!、", max_size=80))
def test_pieces_keep_every_line_break_and_every_word(text):
    cut = list(cut_for_translation(text, by_sentence=True, target="ja"))
    copied = "".join(piece for piece, _ in cut)
    assert "".join(copied.split()) == "".join(text.split())
    assert [char for char in copied if char in "\r\n"] == [char for char in text if char in "\r\n"]
    assert not any("\n" in piece for piece, translatable in cut if translatable)


@given(st.lists(st.text(alphabet="a  \n", max_size=4)))
def test_tidy_is_strip_of_the_whole(parts):
    assert "".join(strip_stream(iter(parts))) == "".join(parts).strip()


def test_trim_leaves_speech_a_margin_and_no_click():
    sound = np.concatenate([np.zeros(5000), np.full(2400, 0.5), np.zeros(9000)]).astype(np.float32)
    trimmed = trim_silence_and_fade(sound, 24_000)
    assert (trimmed.size, trimmed.dtype) == (2400 + 2 * 720, np.float32)
    assert (trimmed[0], trimmed[-1]) == (0, 0)
    assert trim_silence_and_fade(np.zeros(100, dtype=np.float32), 24_000).size == 0


def test_pauses_go_between_heard_pieces_only():
    pieces = [Piece("…", 0.3), Piece("a", 0.15), Piece("!", 0.35), Piece("b", 0.3)]

    def speak(text):
        return np.full(2400 if text.isalpha() else 0, 0.5, dtype=np.float32)

    first, second = list(speak_pieces(pieces, speak, 24_000))
    assert first.size == 2400
    assert second.size == 2400 + round(0.35 * 24_000)
    assert [chunk.size for chunk in speak_pieces([Piece("!", 0.3)], speak, 24_000)] == [7200]


COUNTERS = "時分秒年人個本匹枚冊台回階歳円杯度番羽頭点位着件泊号倍名箱曲"
COUNTED = [
    *(f"{number}月" for number in range(1, 13)),
    *(f"5月{number}日" for number in range(1, 32)),
    *(f"{number}つ" for number in range(1, 10)),
    *(f"{number}{counter}" for counter in COUNTERS for number in (*range(1, 11), 14, 20, 100, 300, 8000)),
]
# The reading is that of 二十歳 (ハタチ); the voices say ニジュッサイ, which is right as well.
COUNTED.remove("20歳")
IN_WORDS = {
    "4月": "しがつ", "４月２０日": "しがつはつか", "2つ": "ふたつ", "7人": "しちにん",
    "34.5度": "さんじゅうよんてんごど", "1.08倍": "いってんゼロはちばい",
    "1,234円": "せんにひゃくさんじゅうよえん",
    "10〜20分": "じゅうからにじゅっぷん", "007": "ゼロゼロなな", "第①回": "だいいっかい",
    "\U0010ff034月": "しがつ",
}  # fmt: skip


@pytest.mark.engines
def test_kokoro_reads_numbers_as_openjtalk_does():
    """It knows months, days, counters and decimal points."""
    reader = ReadHere()

    def say(text):
        """Phonemes without joints, and with one sign for an n, whatever follows it, and one for a long i."""
        phonemes = re.sub("[ɴɲmŋ]", "n", re.sub("[ ,.:]", "", reader.japanese(text)))
        return phonemes.replace("ii", "iː").replace("ei", "eː")

    expected = {text: reading(text) for text in COUNTED} | IN_WORDS
    assert not [text for text, said in expected.items() if say(text) != say(said)]


def test_texts_are_read_for_the_alphabet_of_the_voice(monkeypatch):
    assert read_text("Grüße", "text", "", "de", ReadHere()) == "Grüße"
    assert select_known("Grüßä x", {*"grüse", "a", "\u0308"}) == "grüa\u0308"  # only what the voice has
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(MissingDependencyError, match="'de' needs the program espeak-ng"):
        read_text("Grüße", "espeak", "de", "de", ReadHere())
    pytest.importorskip("hibari")
    assert read_text("Go home, now.", "espeak", "en-us", "en", ReadHere()) == "ɡˌoʊ hˈoʊm, nˈaʊ."


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_espeak_reads_clauses_and_keeps_their_marks():
    read = read_text("Guten Morgen, liebe Leute! Wie geht's?", "espeak", "de", "de", ReadHere())
    assert [mark for mark in read if mark in ",!?."] == [",", "!", "?"]
    assert read.startswith("ɡˈuːtən mˈɔ")
    with pytest.raises(EngineError, match="cannot read a piece of 3 characters with the voice 'xx'"):
        read_text("abc", "espeak", "xx", "xx", ReadHere())
