"""Lexicons: which words of a text are written in another way, and files of strangers."""

from __future__ import annotations

import pickle

import pytest

from speechlab.errors import InvalidRequestError, StoreError
from speechlab.text import Lexicon, LexiconEntry

HEAD = "language,word,spoken\n"


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


@pytest.mark.parametrize(
    "entries", [[("ja", "上手", "うわて"), ("ja", "上手", "じょうず")], [("ja", "上手", "")]]
)
def test_a_word_with_two_readings_is_asked(entries):
    with pytest.raises(InvalidRequestError, match=r"'上手' has .* longer parts of the text") as caught:
        Lexicon(entries).respell("上手です", "ja")
    assert caught.value.parameter == "respell"


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


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a,b,c\n", "line 1: the columns are 'a, b, c'"),
        (f"{HEAD}en,a,b\nja,x\n".encode(), "line 3: not 3 cells"),
        (f"{HEAD}en,a,b\n".encode() + b"ja,\xff,x\n", "line 3: it is not in UTF-8"),
        (f"{HEAD}ja,,x\n".encode(), "line 2: word has '', without a letter"),
        (f"{HEAD}jp,a,x\n".encode(), "line 2: 'jp' is not a language"),
        (f'{HEAD}en,a,b\n\nen,"x,y\nen,c,d\n'.encode(), "line 4: a quote"),
        (f"{HEAD}en,a,b\n".encode("utf-16"), "line 1: it is not in UTF-8; save it as UTF-8"),
        (f"{HEAD}en,=cmd(),x\n".encode(), "line 2: word has '=cmd.*formula"),
        (f"{HEAD}en,a,\u202eb\n".encode(), r"line 2: spoken has the sign '\\u202e'"),
        (f"{HEAD}en,{'a' * 201},x\n".encode(), "line 2: word has 201 characters"),
        (f'{HEAD}en,"a\nb",x\n'.encode(), "line 3: word has the sign"),
    ],
)
def test_a_file_of_a_stranger_is_an_error_at_its_line(tmp_path, data, problem):
    (tmp_path / "lexicon.csv").write_bytes(data)
    with pytest.raises(InvalidRequestError, match=problem):
        Lexicon.read(tmp_path / "lexicon.csv")


def test_what_is_no_lexicon_is_refused(tmp_path):
    with pytest.raises(InvalidRequestError, match="cannot be read"):
        Lexicon.read(tmp_path / "none.csv")
    with pytest.raises(InvalidRequestError, match=r"does not end in \.csv"):
        Lexicon().write(tmp_path / "words.xlsx")
    with pytest.raises(StoreError, match=r"words\.csv cannot be written: No such file"):
        Lexicon().write(tmp_path / "none" / "words.csv")
    assert not [*tmp_path.iterdir()]
    for entries in ("text", [("ja", "a")], [("ja", "a", 3)]):
        with pytest.raises(InvalidRequestError):
            Lexicon(entries)
