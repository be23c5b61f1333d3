"""Pure parts of the engines: scripts, prompts and placeholders, and the sound of pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.engines import TranslationJob
from speechlab.engines._chunks import Piece
from speechlab.engines._speech.phonemes import split_scripts
from speechlab.engines._speech.synthesis import speak_pieces, trim_silence_and_fade
from speechlab.engines._translation.llama import cut_for_translation, strip_stream
from speechlab.engines._translation.prompts import Terms, build_chat_messages, build_few_shot_prompt


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("", []),
        ("Hello 330.", [("en", "Hello 330.")]),
        ("SpeechLabの声", [("en", "SpeechLab"), ("ja", "の声")]),
        ("これはGPT-4 turboです。", [("ja", "これは"), ("en", "GPT-4 turbo"), ("ja", "です。")]),
        ("ＡＰＩを3回", [("en", "API"), ("ja", "を3回")]),
    ],
)
def test_runs_go_to_the_reader_of_their_script(text, runs):
    assert split_scripts(text) == runs


@given(st.text(alphabet="あ漢ABc 1、。-'ー", max_size=60))
def test_runs_joined_are_the_text(text):
    assert "".join(run for _, run in split_scripts(text)) == text


def test_terms_are_hidden_whole_and_longest_first():
    terms = Terms(["art", "art lab", "日本"], "the art lab in 日本語, a party")
    assert terms.hide_terms("the art lab in 日本語, a party") == "the KW1 in KW3語, a party"
    assert terms.list_used_terms("the art of 日本") == ("art", "日本")
    assert terms.restore_terms("kw 1, KW-3 and KW12") == "art lab, 日本 and KW12"


def test_placeholders_do_not_collide_with_the_text():
    terms = Terms(["a.b\\1"], "KW1 means a.b\\1")
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
    assert "Japanese" in system["content"]
    assert "KW1" in system["content"]
    assert "line one line two" in system["content"]


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
    assert trimmed.size == 2400 + 2 * 720
    assert trimmed[0] == 0
    assert trimmed[-1] == 0
    assert trimmed.dtype == np.float32
    assert trim_silence_and_fade(np.zeros(100, dtype=np.float32), 24_000).size == 0


def test_pauses_go_between_heard_pieces_only():
    pieces = [Piece("…", 0.3), Piece("a", 0.15), Piece("!", 0.35), Piece("b", 0.3)]

    def speak(text):
        return np.full(2400 if text.isalpha() else 0, 0.5, dtype=np.float32)

    first, second = list(speak_pieces(pieces, speak, 24_000))
    assert first.size == 2400
    assert second.size == 2400 + round(0.35 * 24_000)
    assert [chunk.size for chunk in speak_pieces([Piece("!", 0.3)], speak, 24_000)] == [7200]
