"""Transcripts with sclite's markings, against sclite itself."""

import random

import pandas as pd
import pytest

from speechlab.errors import InvalidRequestError
from speechlab.metrics import confusions, error_rate, score, summarize
from support import adversarial, nist

# Without words that have a marking of sclite.
ODD_WORDS = [word for word in adversarial.WORDS if not set("{}();/*@\\") & set(word)]

ODD = [
    "@",
    "a;b",
    "a;",
    "a\\;b",
    "b*",
    "*",
    "a**",
    ";a",
    "\\",
    "b\\",
    "a/b",
    "(a",
    "b)",
    "()",
    "(a)*",
    "-",
    "--",
]


def marked(random_, words, longest, marks, depth=0):
    parts = []
    for _ in range(random_.randrange(longest)):
        dice = random_.random()
        if "alternates" in marks and dice < 0.25 and depth < 2:
            inner = [marked(random_, words, 3, marks, depth + 1) for _ in range(random_.randrange(1, 4))]
            parts.append("{ " + " / ".join(text or "@" for text in inner) + " }")
        elif "optional" in marks and dice < 0.4:
            parts.append(f"({random_.choice(words)})")
        elif "fragments" in marks and dice < 0.6:
            word = random_.choice(words)
            parts.append(random_.choice([f"{word[:1]}-", f"-{word[-1:]}", f"{word}-", f"-{word}"]))
        elif "odd" in marks and dice < 0.7:
            parts.append(random_.choice(ODD if depth == 0 else ODD[:10]))
        else:
            parts.append(random_.choice(words))
    return " ".join(parts)


ALL = {"alternates", "optional", "fragments", "odd"}
LATIN = ["abc", "abd", "bbc", "xbc", "ab"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "reference", "hypothesis"),
    [
        (list("abc"), {"alternates"}, set()),
        (list("abcde"), {"alternates"}, {"alternates"}),
        (list("abc"), {"optional"}, set()),
        (list("abc"), {"alternates", "optional"}, {"alternates", "optional"}),
        (LATIN, {"fragments"}, {"fragments"}),
        (LATIN, {"fragments", "optional"}, {"fragments", "optional"}),
        (list("ab"), {"odd"}, {"odd"}),
        (LATIN, ALL, ALL),
        (["é", "がが", "日本", "語", "日", "😀", "שלום"], {"alternates", "optional"}, {"optional"}),
        (["é", "がが", "日本", "語", "日"], {"fragments", "optional"}, {"fragments"}),
        (ODD_WORDS, {"alternates", "optional"}, {"alternates", "optional"}),
        (ODD_WORDS, {"fragments", "optional"}, {"fragments"}),
    ],
)
def test_counts_agree_with_the_program(tmp_path, words, reference, hypothesis):
    nist.sctk()
    random_ = random.Random(7)
    pairs = [
        (marked(random_, words, 9, reference), marked(random_, words, 9, hypothesis)) for _ in range(600)
    ]
    references, hypotheses = map(list, zip(*pairs, strict=True))
    fragments = "fragments" in reference
    result = error_rate(references, hypotheses, counts="sclite-fragments" if fragments else "sclite")
    theirs = nist.sclite_counts(tmp_path, references, hypotheses, "-D", *(["-F"] if fragments else []))
    assert list(map(tuple, result.counts_by_utterance.tolist())) == theirs


def test_counts_agree_on_a_long_marked_transcript(tmp_path):
    nist.sctk()
    random_ = random.Random(8)
    words = [f"w{i}" for i in range(40)]
    said = marked(random_, words, 2, {"alternates"}) + " ".join(
        marked(random_, words, 12, {"alternates", "optional"}) for _ in range(30)
    )
    heard = " ".join(random_.choices(words, k=200))
    result = error_rate(said, heard, counts="sclite")
    assert [tuple(result.counts_by_utterance[0])] == nist.sclite_counts(tmp_path, [said], [heard], "-D")


@pytest.mark.parametrize(
    ("reference", "hypothesis", "counts", "text"),
    [
        ("{ a / b / @ } c", "b c", (2, 0, 0, 0), "b c"),
        ("{ a / b / @ } c", "c", (1, 0, 0, 0), "c"),
        ("{ a { b / c } / d } e", "a c e", (3, 0, 0, 0), "a c e"),
        ("(uh) hello", "hello", (2, 0, 0, 0), "(uh) hello"),
        ("hello", "hello (laugh)", (2, 0, 0, 0), "hello (laugh)"),
        ("(uh) hello", "oh hello", (1, 1, 0, 0), "[-(uh)-]{+oh+} hello"),
    ],
)
def test_known_cases(reference, hypothesis, counts, text):
    result = error_rate(reference, hypothesis, counts="sclite")
    assert tuple(result.counts_by_utterance[0]) == counts
    assert result.alignments[0].text == text
    assert result.alignments[0].html
    assert result.reference_length == sum(counts[:3])


def test_fragments_count_only_on_request():
    assert error_rate("wor- is", "word is", counts="sclite").errors == 1
    assert error_rate("wor- is", "word is", counts="sclite-fragments").errors == 0
    assert error_rate("Wor- is", "word is", counts="sclite-fragments", language="en").errors == 0
    for rules in (str.lower, "none", "basic"):  # some keep a hyphen, some take it away
        kept = error_rate("th- is -ing", "the is ring", counts="sclite-fragments", normalize=rules)
        assert kept.errors == 0, rules
        assert kept.references[0] == ("th-", "is", "-ing")
    assert "counts:sclite-fragments" in error_rate("wor- is", "word is", counts="sclite-fragments").signature


def test_a_normaliser_works_between_the_markings():
    result = error_rate("{ Twenty-one / 21 } Cats, (UH) go!", "21 cats go", counts="sclite", language="en")
    assert result.errors == 0
    assert result.references == [("21", "cats", "go")]  # a filler in parentheses is no word at all
    edits = error_rate("{ a / b } X, (y) z", "b q z", counts="sclite", normalize="basic").edits(equal=True)
    spans = list(zip(edits["reference_start"], edits["reference_end"], strict=True))
    assert spans == [(6, 7), (10, 11), (14, 15), (17, 18)]
    assert edits["hypothesis_start"].isna().tolist() == [False, False, True, False]


def test_parentheses_around_several_words_are_no_marking():
    result = error_rate(["a b", "(a b) c"], ["a c", "c"], counts="sclite")
    assert result.counts_by_utterance.tolist() == [[1, 1, 0, 0], [1, 0, 2, 0]]


@pytest.mark.parametrize("text", ["{ a / b", "a } b", "a{b} c", "{ } a", "{ / } a", "x { a / { b } c"])
def test_invalid_markings_are_refused(text):
    with pytest.raises(InvalidRequestError, match=r"at character \d+.*'\{ a / b / @ \}'"):
        error_rate(text, "a", counts="sclite")


def test_alternates_in_braces_need_the_unit_word():
    with pytest.raises(InvalidRequestError, match="unit='char'"):
        error_rate("{ 三 / 四 }", "三", unit="char", language="ja", counts="sclite")


def test_tables_are_scored_the_same_way():
    frame = pd.DataFrame(
        {
            "text": ["{ one / 1 } (uh) cat", "g b d a f d", "三時", None],
            "hypothesis": ["1 cat", "a h f e b d", "四時", "x"],
            "language": ["de", "de", "ja", "de"],
        }
    )
    scored = score(frame, counts="sclite")
    assert scored["errors"].tolist()[:3] == [0, 6, 1]
    assert "|counts:sclite|" in scored["signature"].tolist()[0]
    assert scored["cer"].tolist()[0] == 0
    assert scored["reference_normalized"].tolist()[0] == "1 cat"
    assert scored["alignment"].tolist()[0] == "1 (uh) cat"
    assert summarize(scored).set_index("unit")["errors"].to_dict() == {"word": 6, "char": 1}
    assert confusions(scored)["count"].sum() >= 6
    assert score(frame.iloc[1:2])["errors"].tolist() == [5]
    with pytest.raises(InvalidRequestError, match="'nist'"):
        score(frame, counts="nist")
