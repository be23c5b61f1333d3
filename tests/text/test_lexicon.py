"""Lexicons: which words of a text are written in another way, and files of strangers."""

import pickle

import pytest

from speechlab.text import Lexicon, LexiconEntry


@pytest.mark.parametrize(
    ("language", "entries", "text", "sent"),
    [
        ("en", "Nguyen=win", "Nguyen's cat, (Nguyen) and “Nguyen”.", "win's cat, (win) and “win”."),
        ("en", "don=dawn re=ray", "don't re-enter, don", "don't re-enter, dawn"),
        ("en", "C=see Node=nod", "C++ and C, Node.js", "C++ and see, Node.js"),
        ("en", "New=noo New_York=nooyork", "New York, New Haven", "nooyork, noo Haven"),
        ("en", "a=b b=c", "a b", "b c"),  # what was replaced stays
        ("en", "polish=polly", "Polish up. Polish people polish.", "polly up. polly people polly."),
        ("en", "other=uther", "Another OTHER Other", "Another uther uther"),  # in any case
        ("en", "polish=polly Polish=pole", "Polish polish", "pole polly"),
        ("en", "café=kaffay", "cafe\u0301", "kaffay"),
        ("ja", "京都=キョート", "東京都と京都", "東京都とキョート"),
        ("ja", "京都=ケイト 京都大学=キョーダイ", "京都大学と京都", "キョーダイとケイト"),
        ("zh", "重=崇", "重庆很重", "重庆很崇"),
        ("ja", "鬼滅=キメツ=mei", "鬼滅", "鬼滅"),  # of another voice
        ("ja", "鬼滅=オニ 鬼滅=キメツ=Joe", "鬼滅", "キメツ"),
    ],
)
def test_whole_words_are_written_as_the_longest_entry_says(language, entries, text, sent):
    lexicon = Lexicon((language, *entry.replace("_", " ").split("=")) for entry in entries.split())
    assert lexicon.respell(text, language, "joe") == sent
    assert lexicon.respell(text, "de", "joe") == text  # of another language


def test_a_file_is_read_as_it_was_written(tmp_path):
    lexicon = Lexicon([("ja-JP", " 鬼滅 ", "キメツ", "", 'a "note", long'), ("en", "SQL", "sequel", "joe")])
    path = lexicon.write(tmp_path / "lexicon.csv")
    assert path.read_text("utf-8").splitlines()[:2] == [
        "language,word,spoken,voice,note",
        "en,SQL,sequel,joe,",
    ]
    assert Lexicon.read(path) == Lexicon(sorted(lexicon))
    assert lexicon[0] == LexiconEntry("ja", "鬼滅", "キメツ", note='a "note", long')
    assert pickle.loads(pickle.dumps(lexicon)) == lexicon
    path.write_bytes("\ufeffword,language,spoken\r\n\r\n鬼滅,ja,\r\n".encode())  # of a spreadsheet
    assert Lexicon.read(path).frame()[["word", "spoken"]].values.tolist() == [["鬼滅", ""]]
