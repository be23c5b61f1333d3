"""Readings through OpenJTalk."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.text import (
    count_morae,
    normalizer,
    reading,
    split_spoken_words,
    to_kana_key,
    to_reading_key,
    to_usual_kanji,
)

pytest.importorskip("pyopenjtalk")


def test_reading_and_morae():
    for text, kana, morae in (
        ("", "", 0),
        ("東京へ行く。", "トーキョーエイク", 7),
        ("3時", "サンジ", 3),
        ("1.5倍", "イッテンゴバイ", 7),
        ("1,000円", "センエン", 4),
        ("50%", "ゴジュッパーセント", 8),
        ("はい、😀元気!", "ハイゲンキ", 5),
        ("한국", "한국", None),
        ("本を", "ホンオ", 3),
        ("二十三人", "ニジューサンニン", 7),
        ("zoom Zoom ZOOM", "ズームズームズーム", 9),
        ("API api", "エーピーアイエーピーアイ", 12),
        ("キャッチボール", "キャッチボール", 6),
    ):
        assert reading(text) == kana
        assert morae is None or count_morae(text) == morae, text


def test_texts_of_one_sound_have_one_key_and_others_another():
    for one, other, is_alike in (
        ("先生", "せんせい", True),
        ("経済", "けいざい", True),
        ("大きい", "おおきい", True),
        ("2024年", "二千二十四年", True),
        ("精度", "制度", True),
        ("バイオリンを", "バイオリンを。", True),
        ("1.5倍", "15倍", False),
        ("ビル", "ビール", False),
    ):
        assert (to_reading_key(one) == to_reading_key(other)) == is_alike, (one, other)


@settings(max_examples=60, deadline=None)
@given(st.text("今日は雨箸二三zoomA。、 髙ッー", max_size=16))
def test_the_places_of_spoken_words_are_in_order(text):
    words = split_spoken_words(text)
    done = 0
    for word in words:
        assert done <= word.start < word.end <= len(text)
        done = word.end
    if words and not {"二", "三"} & set(text):  # adjacent digits are read one by one
        assert to_kana_key("".join(word.kana for word in words)) == to_reading_key(text)


def test_variant_kanji_have_a_usual_form():
    assert to_usual_kanji("髙橋﨑𠮷櫻濱國") == "高橋崎吉桜浜国"
    assert to_usual_kanji("斉斎師商着死切abcかな😀") == "斉斎師商着死切abcかな😀"


@pytest.mark.slow
def test_a_text_too_long_for_openjtalk_is_read_in_pieces():
    sentence = "今日は良い天気です。"
    assert reading(sentence * 400) == reading(sentence) * 400
    assert len(reading("今日は良い天気" * 400)) > 3_600


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=30) | st.text("あ漢1.,、。aAß😀\u200d゛ー\x00\n", max_size=20))
def test_every_text_has_a_reading(text):
    kana = reading(text)
    assert isinstance(kana, str)
    assert not any(c.isspace() for c in kana)


def test_all_threads_give_the_same_reading():
    texts = ["何の方が風", "精度が高い", "東京へ行く"] * 10
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(reading, texts)) == [reading(text) for text in texts]


def test_figures_and_signs_keep_their_places():
    """A text with figures or signs keeps the readings of all its words, and is not read again without punctuation."""
    for written, normal, kana in (
        ("0から始める", "零から始める", "ゼロ"),
        ("1つください", "一つください", "ヒトツ"),
        ("50%増えた。", "五十パーセント増えた", "ゴ"),
        ("1.5倍、です", "一点五倍です", "イッ"),
        ("5〜10分です", "五・十分です", "ゴ"),
    ):
        assert split_spoken_words(normal, written)[0].kana == kana, written


def test_the_reading_of_a_number_never_depends_on_its_form():
    write = normalizer("ja")
    for counter in (*"時分歳円度点本人日票組面畳", "文字", "行目", "拍子"):
        for number in [*range(32), 50, 99, 100, 120, 300, 600, 1_500, 8_000]:
            kanji = write(str(number)) + counter
            assert to_reading_key(kanji) == to_reading_key(f"{number}{counter}"), kanji
