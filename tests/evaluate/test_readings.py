"""Misread words: planted in a staged voice, found through a recognizer that errs, respelled and confirmed."""

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import evaluate

# What the voice says in place of a word, unless it is in kana; 鬼滅 and 起温 are in no dictionary.
MISREAD = {
    "鬼滅": "おにめつ",
    "起温": "起こりぬる",
    "佐藤": "ポンタ",
    "名古屋": "ガリモ",
    "Siobhan": "sigh oban",
}
RIGHT = {"鬼滅": "決めつ", "起温": "キオン", "佐藤": "砂糖", "名古屋": "なごや", "Siobhan": "Shivawn"}
SPELLINGS = {"キメツ": "鬼滅", "キオン": "起温", "サトウ": "佐藤", "ナゴヤ": "名古屋", "shivawn": "Siobhan"}
TEXTS = {
    "昨日は鬼滅を見ました。": "ja",
    "名古屋で起温を測りました。": "ja",
    "佐藤さんと会議に出ます。": "ja",
    "図書館で新聞を読みました。": "ja",
    "I met Siobhan and Ms Zbyzw.": "en",
    "Guten Tag": "de",
}


@pytest.fixture
def labs():
    """A voice, and a recognizer that errs in 新聞 always, in 図書館 once, and writes right words as others do."""
    spoken = []

    def speak(text, voice):
        for spelling, word in SPELLINGS.items():
            text = text.replace(spelling, f"<{word}>")
        for word, other in MISREAD.items():
            text = text.replace(f"<{word}>", RIGHT[word]).replace(word, other)
        text = text.replace("オニホロ", "もにょもにょ").replace("おにほろ", "もにょもにょ")
        spoken.append(text)
        return np.full(999 + len(spoken), 0.1), 8_000

    def recognize(audio):
        text = spoken[audio.frames - 1_000]
        for form in ("新聞", "シンブン", "しんぶん"):
            text = text.replace(form, "新婦")
        return text.replace("図書館で新婦", "としょかに新婦")

    voices = {"mei": "Japanese, English"}
    with (
        sl.system("v", synthesize=speak, voices=voices, version="1", concurrency=1) as voice,
        sl.system("r", transcribe=recognize, version="1") as ear,
    ):
        yield voice, ear, spoken


@pytest.mark.slow
def test_misread_words_get_a_spelling_that_was_confirmed(labs, tmp_path):
    voice, ear, spoken = labs
    frame = pd.DataFrame({"text": list(TEXTS), "language": list(TEXTS.values())})
    known = {"Siobhan": "shivawn", "Sio": "see", "会": "あ"}  # the others are halves of words
    options = {"recognizer": ear, "known": known, "store": tmp_path, "progress": False}
    report = evaluate.readings(voice, frame, "mei", **options)
    assert {entry.spoken: entry.word for entry in report.lexicon} == SPELLINGS
    assert {entry.voice for entry in report.lexicon} == {"mei"}
    verdicts = dict(zip(report.table["word"], report.table["verdict"], strict=True))
    assert verdicts == dict.fromkeys(MISREAD, "repaired") | {"新聞": "not judged"}
    assert report.answer.startswith("5 words are misread: 5 repaired. On 13 words of 5 texts")
    assert "1 row has no text" in report.notes[0]
    sounds = report.table.set_index("word")[["audio", "spoken"]]
    assert sounds.loc["鬼滅"].nunique() == 2
    # five texts; a sentence for each of nine suspects; for the six that are wrong again, a sentence and two respelled
    assert len(spoken) == 5 + 9 + 6 * 3

    loaded = evaluate.Report.load(report.save(tmp_path / "report"))
    assert loaded.lexicon == report.lexicon


@pytest.mark.slow
def test_what_cannot_be_confirmed_goes_to_a_person(labs, tmp_path):
    voice, ear, _ = labs
    frame = pd.DataFrame({"text": ["昨日は鬼滅を見ました。"]})
    options = {"recognizer": ear, "store": tmp_path, "progress": False, "language": "ja"}
    report = evaluate.readings(voice, frame, "mei", known={"鬼滅": "オニホロ"}, **options)
    assert report.table[["word", "verdict"]].values.tolist() == [["鬼滅", "to be heard"]]
    assert report.lexicon == ()
    assert report.answer.startswith("1 word is misread: 1 needs an ear.")
    left = evaluate.readings(voice, frame, "mei", words=0, **options)
    assert left.notes == ("1 suspected word was not spoken again.",)


def test_a_study_in_which_every_call_fails_judges_nothing(labs, tmp_path):
    voice, *_ = labs
    with sl.system("deaf", transcribe=lambda audio: 1 / 0, version="1") as ear:
        options = {"recognizer": ear, "store": tmp_path, "progress": False, "language": "ja"}
        report = evaluate.readings(voice, pd.DataFrame({"text": ["雨"]}), "mei", **options)
    assert report.answer.startswith("No word could be judged.")
    assert "1 call of texts failed, the first: " in report.notes[-1]
