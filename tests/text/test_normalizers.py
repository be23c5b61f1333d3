"""The results of each normaliser, and the texts that it must keep."""

import csv
import pickle
import re
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.text import NORMALIZERS, Normalizer, Step, characters, language_code, normalizer, words

ANY_TEXT = st.text(max_size=40) | st.text(
    "あがﾊﾞー～か゛1２,.、。三〇千 \u3000ab'’$%é😀\u200d\ufe0f", max_size=30
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", ""),
        ("今日は、いい天気です。", "今日はいい天気です"),
        ("午後３時、１．５倍。", "午後三時一点五倍"),
        ("三時", "三時"),
        ("1.5倍", "一点五倍"),
        ("15倍", "十五倍"),
        ("1,000円", "千円"),
        ("¥1,000", "千円"),
        ("一千円", "千円"),
        ("百二十三円と123円", "百二十三円と百二十三円"),
        ("二〇二四年と2024年", "二千二十四年と二千二十四年"),
        ("3億5000万", "三億五千万"),
        ("1000万と一千万", "千万と千万"),
        ("50%", "五十パーセント"),
        ("090-1234", "零九零千二百三十四"),
        ("2023，2024年", "二千二十三二千二十四年"),
        ("1.2.3", "1.2.3"),
        ("15:30", "十五時三十分"),
        ("9:00", "九時"),
        ("2:1で勝つ", "二対一で勝つ"),
        ("-5℃", "マイナス五度"),
        ("千葉で一緒に", "千葉で一緒に"),
        ("二三人", "二三人"),
        ("090-1234-5678", "零九零一二三四五六七八"),
        ("〇九〇一二三四五六七八", "零九零一二三四五六七八"),
        ("(03) 1234-5678へ", "零三一二三四五六七八へ"),
        ("$100", "百ドル"),
        ("€100", "百ユーロ"),
        ("＄1.5億と100£", "一点五億ドルと百ポンド"),
        ("US$20", "二十米ドル"),
        ("₿5", "₿五"),
        ("C++とC", "cプラスプラスとc"),
        ("R&D", "rアンドd"),
        ("えーと、今日は", "今日は"),
        ("えー、あのー、はい", "はい"),
        ("えー本当", "えー本当"),
        ("考えっと", "考えっと"),
        ("サ－バ－", "サーバー"),
        ("すごーーーい", "すごーい"),
        ("すご〜い", "すごーい"),
        ("API　Ｔｅｓｔ", "apitest"),
        ("笑😀️", "笑"),
        ("ｶﾞｷﾞｸﾞ", "ガギグ"),
        ("か゛", "が"),
        ("がぎぐげご", "がぎぐげご"),
        ("か\u3099", "が"),
        ("図書館 東京都 學校", "図書館東京都學校"),
    ],
)
def test_japanese(written, expected):
    assert normalizer("ja")(written) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("語音識別軟體", "语音识别软体"),
        ("你好，世界！", "你好世界"),
        ("２０２４年", "二千零二十四年"),
        ("二零二四年", "二千零二十四年"),
        ("两千零二十四", "二千零二十四"),
        ("50%", "百分之五十"),
        ("1.5倍", "一点五倍"),
        ("105 110 15 10000 100010", "一百零五一百一十十五一万十万零一十"),
        ("一起去，千万别忘", "一起去千万别忘"),
        ("两个人", "两个人"),
        ("2个人2点半2月2楼", "两个人两点半二月二楼"),
        ("12个", "十二个"),
        ("$100", "一百美元"),
        ("€100和¥100", "一百欧元和一百元"),
        ("HK$5", "五港元"),
        ("-5", "负五"),
        ("₿5", "₿五"),
    ],
)
def test_chinese(written, expected):
    pytest.importorskip("opencc")
    assert normalizer("zh")(written) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("It’s £20, Mr. Brown!", "it is £20 mister brown"),
        ("Don't. Don’t.", "do not do not"),
        ("three thousand five hundred dollars", "$3500"),
        ("uh, hmm", ""),
        ("the colour [noise] (laughs)", "the color"),
        ("one hundred and five", "105"),
        ("Wait... What?", "wait what"),
        ("Wait...", "wait"),
    ],
)
def test_english(written, expected):
    assert normalizer("en")(written) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(
            ("zh", text)
            for text in [
                "全国统一零售价",
                "单一零件",
                "唯一零食",
                "三零售",
                "星期一零点",
                "周一三五",
                "七零八落",
                "七七八八",
            ]
        ),
        *(("zh", text) for text in ["中国大陆", "陆续", "队伍", "放肆", "乾隆", "於潜"]),
        *(
            ("ja", text)
            for text in ["統一零細企業", "人参百グラム", "古参", "大陸", "拾う", "壱岐", "iphone五s"]
        ),
    ],
)
def test_the_characters_of_numbers_stay_in_words(name, text):
    pytest.importorskip("opencc")
    assert normalizer(name)(text) == text


# Without the additions of this package: signs of money after their number or apart from it, and minus signs.
PIECES = "don't it's twenty five hundred oh double point $7 20% 1,000 3.5 colour mr. and a half uh [x] (y) ."
ASCII_WORDS = st.lists(st.sampled_from(PIECES.split()), max_size=12).map(" ".join)


@given(
    ASCII_WORDS
    | st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="`$-"), max_size=20)
)
def test_english_agrees_with_whisper(text):
    assume(not re.search(r"0\d\d", text))  # the zeros of codes are kept
    whisper = pytest.importorskip("whisper_normalizer.english").EnglishTextNormalizer()
    try:
        expected = " ".join(word for word in whisper(text).split() if word.strip(".$¢€£%"))
    except Exception:  # the package fails on some nonsense; this normaliser must not
        normalizer("en")(text)
        return
    assert normalizer("en")(text) == expected


def test_basic_keeps_accents_and_decimals():
    assert normalizer("basic")("L'été, ça!  1.5\u3000x.") == "l été ça 1.5 x"
    assert normalizer("de").id == "basic-v5"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("€100", "100 €"),
        ("100 €, bitte", "100 € bitte"),
        ("$1,000.50", "1,000.50 $"),
        ("50%", "50 %"),
        ("-5 Grad", "−5 grad"),
        ("10-5 e-mail", "10 5 e mail"),
    ],
)
def test_basic_keeps_signs_that_are_spoken(written, expected):
    assert normalizer("basic")(written) == expected


ALIKE = [
    ("ja", "US$100", "100米ドル"),
    ("ja", "100US$", "百米ドル"),
    ("ja", "プランはA$5", "プランは五豪ドル"),
    ("ja", "NT$5とHK$5", "5台湾ドルと5香港ドル"),
    ("ja", "赤字-$5", "赤字マイナス5ドル"),
    ("ja", "$-5", "-$5"),
    ("ja", "気温は-5℃", "気温はマイナス五度"),
    ("ja", "気温-5度", "気温マイナス5度"),
    ("ja", "長征-5号", "長征5号"),
    ("ja", "±3‰", "プラスマイナス三パーミル"),
    ("ja", "100US$-200US$", "US$100、US$200"),
    ("ja", "０９０（１２３４）５６７８", "090-1234-5678"),
    ("ja", "090ー1234ー5678", "〇九〇一二三四五六七八"),
    ("ja", "10²³", "10の23乗"),
    ("ja", "10⁻³", "10のマイナス3乗"),
    ("ja", "5〜10分", "五、十分"),
    ("ja", "二、三十人", "二三十人"),
    ("ja", "1万、2万", "1万2万"),
    ("ja", "ジョン・スミス", "ジョンスミス"),
    ("zh", "10²³", "10的23次方"),
    ("zh", "100US$-200US$", "US$100、US$200"),
    ("zh", "第2个", "第二个"),
    ("zh", "2 个", "两个"),
    ("zh", "好的，2天后见", "好的两天后见"),
    ("zh", "他说：2个，2个", "他说两个两个"),
    ("zh", "5%，10%", "百分之五百分之十"),
    ("basic", "5A$-10A$", "A$5, A$10"),
    ("basic", "10²³", "10 23"),
    ("en", "100US$-200US$", "US$100, US$200"),
    ("en", "10⁻³", "10 -3"),
    ("zh", "US$100", "$100"),
    ("zh", "HK$100", "100港元"),
    ("zh", "A$100", "100澳元"),
    ("zh", "气温-5度", "气温负五度"),
    ("zh", "气温为-5℃", "气温为负五摄氏度"),
    ("zh", "长征-5号", "长征五号"),
    ("zh", "5‰", "千分之五"),
    ("zh", "15:00", "十五点"),
    ("zh", "00:00", "零点"),
    ("zh", "07:05", "七点零五分"),
    ("ja", "07:00", "七時"),
    ("ja", "㈱田中", "株式会社田中"),
    ("ja", "鈴木(有)", "鈴木有限会社"),
    ("basic", "US$100", "100 us$"),
    ("basic", "$-5", "-$5"),
    ("en", "US$1.5 million", "1.5 million US dollars"),
    ("en", "100 $", "one hundred dollars"),
    ("en", "100 €", "one hundred euros"),
    ("en", "¥20", "twenty yen"),
    ("en", "₿5", "5 bitcoin"),
    ("en", "-5 degrees", "minus five degrees"),
    ("en", "$ 5, $ 6", "$5, $6"),
    *(
        ("ja", one, other)
        for one, other in [
            ("½カップ", "二分の一カップ"),
            ("1½カップ", "1 1/2カップ"),
            ("¾", "3/4"),
            ("金壱萬参千円也", "金13,000円也"),
            ("弐拾円", "20円"),
            ("2h30min", "2時間30分"),
            ("10s", "10秒"),
            ("1万2000人", "12000人"),
        ]
    ),
    *(
        ("zh", one, other)
        for one, other in [
            ("½杯", "1/2杯"),
            ("2½小时", "二又二分之一小时"),
            ("伍仟元整", "5000元整"),
            ("壹佰元", "100元"),
            ("壹拾万伍仟圆整", "105000元整"),
            ("叁佰元伍角", "300元5角"),
            ("重2kg", "重两公斤"),
            ("2h", "两小时"),
            ("30min", "三十分钟"),
            ("3万5", "35000"),
            ("1亿200万", "102000000"),
            ("3万20", "30020"),
            ("乾安縣", "乾安县"),
            ("餅乾很乾燥", "饼干很干燥"),
            ("乾杯", "干杯"),
        ]
    ),
    ("tr", "IĞDIR İSTANBUL", "ığdır istanbul"),
    ("az", "İLK BAKI", "ilk bakı"),
    ("de", "İstanbul", "istanbul"),
    ("en", "the code is 007123", "the code is zero zero seven one two three"),
    ("en", "at 08:30", "at 8:30"),
    *((name, "$5-$10", "$5, $10") for name in ("basic", "en", "ja", "zh")),
    *((name, "5€-10€", "€5, €10") for name in ("basic", "en", "ja", "zh")),
    *((name, "¥5-¥10", "¥5, ¥10") for name in ("basic", "en", "ja", "zh")),
    *((name, "10%-20%", "10%, 20%") for name in ("basic", "en", "ja", "zh")),
    *((name, "10℃-15℃", "10℃, 15℃") for name in ("basic", "en", "ja", "zh")),
]


@pytest.mark.parametrize(("name", "one", "other"), ALIKE)
def test_signs_and_their_names_give_the_same_text(name, one, other):
    assert normalizer(name)(one) == normalizer(name)(other)


APART = [
    ("ja", "US$100", "$100"),
    ("ja", "US$100", "A$100"),
    ("ja", "AUS$100", "US$100"),
    ("ja", "10度-15度", "10度マイナス15度"),
    ("ja", "3時−5時", "3時マイナス5時"),
    ("zh", "HK$100", "100港币"),
    ("zh", "¥100", "JP¥100"),
    ("basic", "US$100", "$100"),
    ("en", "US$100", "$100"),
    ("en", "-5", "5"),
    ("en", "100 €", "100 $"),
    ("zh", "第2天", "2天"),
    ("zh", "乾安县", "干安县"),
    ("tr", "ısı", "isi"),
    *((name, "007123", "7123") for name in ("basic", "en", "ja", "tr", "zh")),
    ("en", "room B007", "room B7"),
    *((name, "5〜10", "50") for name in ("ja", "zh")),
    *((name, "10/2", "12") for name in ("ja", "zh")),
    *((name, "3/100", "300") for name in ("ja", "zh")),
    *((name, "100、20", "120") for name in ("ja", "zh")),
    *((name, "1.5〜2", "1.52") for name in ("ja", "zh")),
    *((name, "10、1.5", "11.5") for name in ("ja", "zh")),
    *((name, "10²³", "1023") for name in ("basic", "en", "ja", "zh")),
    *((name, "10²", "12") for name in ("basic", "en", "ja", "zh")),
    *((name, "10⁻³", "10³") for name in ("basic", "en", "ja", "zh")),
    *((name, "3²", "32") for name in ("basic", "en", "ja", "zh")),
    *((name, "1½", "11/2") for name in ("basic", "en", "ja", "zh")),
]


@pytest.mark.parametrize(("name", "one", "other"), APART)
def test_different_sums_and_numbers_give_different_texts(name, one, other):
    assert normalizer(name)(one) != normalizer(name)(other)


@pytest.mark.parametrize("name", ["basic", "en", "ja", "zh"])
def test_sums_in_different_currencies_stay_different(name):
    """A sum in another currency, or in none, is another text."""
    rules = normalizer(name)
    sums = [f"{sign}100" for sign in ("$", "€", "£", "¥", "₩", "₽", "₿", "")]
    assert len({rules(text) for text in sums}) == len(sums)


def test_cantonese_is_normalised_as_chinese():
    assert normalizer("yue") is normalizer("zh")


@pytest.mark.parametrize("name", NORMALIZERS)
@given(text=ANY_TEXT)
def test_any_text_is_accepted(name, text):
    rules = normalizer(name)
    once = rules(text)
    assert rules(text) == once
    trail = rules.explain(text)
    assert [step for step, _, _ in trail] == [step.name for step in rules.steps]
    assert (trail[-1][2] if trail else text) == once
    if name != "none":
        assert once == once.strip() or name == "ja-reading"


@pytest.mark.parametrize("name", ["ja", "zh", "basic"])
@given(text=ANY_TEXT)
def test_normalising_twice_changes_only_numbers(name, text):
    # Two numerals can become one number once the characters between them are removed. Nothing else may change.
    plain = "".join(c for c in text if not c.isnumeric())
    rules = normalizer(name)
    once = rules(plain)
    assert rules(once) == once or any(f in plain for f in "ーえあうん-~〜～℃%¥°")


@given(text=ANY_TEXT, name=st.sampled_from(NORMALIZERS))
def test_spans_point_to_the_original_text(text, name):
    rules = normalizer(name)
    normalized, spans = rules.spans(text)
    assert normalized == rules(text)
    assert len(spans) == len(normalized)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(a[0] <= b[0] for a, b in pairwise(spans))


def test_spans_of_a_number():
    text = "It costs fifty five dollars"
    normalized, spans = normalizer("en").spans(text)
    start = normalized.index("55")
    assert text[slice(*spans[start])] == "fifty five dollars"


@given(st.text("がぎぐげござじずぜぞだばびぶべぼぱぴぷぺぽガヴ", min_size=1, max_size=10))
def test_dakuten_survive(text):
    assert normalizer("ja")(unicodedata.normalize("NFD", text)) == unicodedata.normalize("NFC", text)


@given(st.integers(0, 10**12))
def test_all_spellings_of_a_number_agree(number):
    for name in ("ja", "zh"):
        rules = normalizer(name)
        assert rules(f"{number}") == rules(f"{number:,}") == rules(rules(f"{number}")), name


def test_different_numbers_stay_different():
    rules = normalizer("ja")
    seen = {rules(str(number)) for number in range(20_000)}
    assert len(seen) == 20_000


PINNED = {
    "basic-v5": "029961a8",
    "en-v4": "c20261e0",
    "open-asr-v1": "7a7185d7",
    "ja-v7": "b2573fae",
    "ja-reading-v7": "70d4a45c",
    "none-v1": "e3b0c442",
    "tr-v1": "563a70be",
}


def test_signatures_are_pinned():
    """A rule that changes needs a new version: raise it, then pin the new hash here."""
    for identity, digest in PINNED.items():
        assert normalizer(identity).signature == f"{identity}#{digest}"
    assert len({normalizer(name).signature for name in NORMALIZERS}) == len(NORMALIZERS)


@pytest.mark.parametrize(
    ("name", "identity"),
    [("ja-JP", "ja-v7"), ("en_GB", "en-v4"), ("Japanese", "ja-v7"), ("EN-V4", "en-v4"), ("fr", "basic-v5")],
)
def test_normalisers_are_found_by_tag_name_and_id(name, identity):
    assert normalizer(name).id == identity


@pytest.mark.parametrize("name", ["jp", "klingon", "ja-v9", "", "cn"])
def test_errors_of_unknown_names_list_the_known_ones(name):
    with pytest.raises(InvalidRequestError) as caught:
        normalizer(name)
    assert repr(name) in str(caught.value)
    assert "ja" in str(caught.value)


@pytest.mark.parametrize("value", [None, 3, float("nan"), b"x"])
def test_only_text_is_accepted(value):
    with pytest.raises(InvalidRequestError, match="it must be a text"):
        normalizer("ja")(value)


@pytest.mark.parametrize("name", [*NORMALIZERS])
def test_normalisers_are_pickled_by_name(name):
    rules = normalizer(name)
    assert pickle.loads(pickle.dumps(rules)) is rules


def test_a_custom_normaliser_can_be_pickled_if_its_functions_can():
    mine = Normalizer("mine", 1, (Step("upper", str.upper, "upper"),))
    assert pickle.loads(pickle.dumps(mine)) == mine
    assert mine("a") == "A"


def test_repr_is_short():
    assert "Normalizer ja-v7: invisible" in repr(normalizer("ja"))
    assert repr(Normalizer("x", 2)) == "<Normalizer x-v2: no steps>"


@pytest.mark.parametrize("space", ["\t", "\n", "\u00a0", "\u3000", "\u2003", "\r\n"])
def test_any_white_space_separates_words(space):
    assert words(f"a{space}b") == ["a", "b"]


def test_characters_and_codes():
    assert characters(" a b ") == ["a", " ", "b"]
    assert language_code("zh-Hant-TW") == "zh"
    with pytest.raises(InvalidRequestError):
        language_code("jp")


def test_errors_survive_pickling():
    with pytest.raises(InvalidRequestError) as caught:
        normalizer("jp")
    assert pickle.loads(pickle.dumps(caught.value)).parameter == "normalize"


def test_open_asr_gives_the_texts_of_the_leaderboard():
    """The texts of the leaderboard's own code (huggingface/open_asr_leaderboard, d1e99b2) on texts of ours."""
    with (Path(__file__).parent / "open_asr.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    ours = normalizer("open-asr")
    assert len(rows) > 200
    assert [ours(row["text"]) for row in rows] == [row["normalized"] for row in rows]
    # The file shows the differences from Whisper's rules.
    assert sum(normalizer("en")(row["text"]) != row["normalized"] for row in rows) > 100


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("Uhm, the B B C has the dog's e-mail", "the bbc has the dog s email"),
        ("Bryan's cancellation, dunno", "brian s cancelation dunno"),
        ("a b", "a b"),
        ("a b c 5 g", "abc5g"),
    ],
)
def test_rules_of_open_asr(text, normalized):
    assert normalizer("open-asr")(text) == normalized
