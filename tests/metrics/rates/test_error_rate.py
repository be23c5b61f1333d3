"""Error rates against jiwer, to the last digit, and the rules of this package."""

import math
import pickle
import random

import jiwer
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import error_rate, from_jiwer
from support import adversarial

ODD = [*adversarial.WORDS, "\x00"]
SENTENCE = st.lists(st.sampled_from(ODD), max_size=12).map(" ".join)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=6)


def list_counts(result):
    return [getattr(result, name) for name in ("hits", "substitutions", "deletions", "insertions")]


def check_against_jiwer(references, hypotheses, unit):
    ours = error_rate(references, hypotheses, unit=unit)
    theirs = (jiwer.process_words if unit == "word" else jiwer.process_characters)(references, hypotheses)
    assert ours.rate == (theirs.wer if unit == "word" else theirs.cer)
    assert list_counts(ours) == list_counts(theirs)
    assert ours.errors == ours.substitutions + ours.deletions + ours.insertions
    assert ours.reference_length == ours.hits + ours.substitutions + ours.deletions
    if unit == "word":
        figures = ours.match_error_rate, ours.word_information_lost, ours.word_information_preserved
        assert figures == (theirs.mer, theirs.wil, theirs.wip)
    for mine, chunks in zip(ours.alignments, theirs.alignments, strict=True):
        expected = [(c.type, c.ref_start_idx, c.ref_end_idx, c.hyp_start_idx, c.hyp_end_idx) for c in chunks]
        assert list(mine.blocks) == expected
    assert ours.to_jiwer() == theirs
    assert from_jiwer(theirs).to_jiwer() == theirs
    # Counts are the same with and without a request for alignments first.
    aligned_first = error_rate(references, hypotheses, unit=unit)
    assert aligned_first.alignments == ours.alignments
    assert aligned_first.counts_by_utterance.tolist() == ours.counts_by_utterance.tolist()
    assert aligned_first.rate == ours.rate


@pytest.mark.slow
@given(PAIRS, st.sampled_from(["word", "char"]))
def test_jiwer_agrees_on_adversarial_text(pairs, unit):
    check_against_jiwer(*map(list, zip(*pairs, strict=True)), unit)


@pytest.mark.slow
@settings(max_examples=50)
@given(PAIRS, st.lists(st.sampled_from(adversarial.SPACES), min_size=11, max_size=11))
def test_all_white_space_counts_as_jiwer_counts_a_plain_space(pairs, spaces):
    def respaced(text):
        gaps = [*spaces, *[" "] * len(text)]
        return "".join(word + gap for word, gap in zip(text.split(" "), gaps, strict=False))

    references, hypotheses = map(list, zip(*pairs, strict=True))
    ours = error_rate([respaced(text) for text in references], hypotheses)
    theirs = jiwer.process_words(references, hypotheses)
    assert ours.rate == theirs.wer
    assert list_counts(ours) == list_counts(theirs)
    # Inside a text a space of any kind is a character of its own.
    inside = [respaced(text).strip() for text in references]
    assert error_rate(inside, hypotheses, unit="char").rate == jiwer.cer(inside, hypotheses)


def corrupt(words, rate, random_):
    heard = []
    for word in words:
        draw = random_.random() / rate
        if draw > 1:
            heard.append(word)
        elif draw > 0.5:
            heard.append(f"w{random_.randrange(300)}")
        elif draw > 0.25:
            heard += [word, "more"]
    return heard


def rate_of(errors, lengths):
    """The rate of texts with so many errors in so many words."""
    heard = ["b " * min(e, n) + "a " * max(n - e, 0) for e, n in zip(errors, lengths, strict=True)]
    return error_rate(["a " * n for n in lengths], heard)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["word", "char"])
def test_jiwer_agrees_on_corpora_and_on_long_texts(unit):
    random_ = random.Random(7)
    said = [[f"w{random_.randrange(300)}" for _ in range(random_.randrange(25))] for _ in range(200)]
    for rate in (0.1, 0.9):
        heard = [corrupt(words, rate, random_) for words in said]
        check_against_jiwer([" ".join(words) for words in said], [" ".join(words) for words in heard], unit)
    said = random_.choices("abcdefghij", k=8_000 if unit == "word" else 3_000)
    for rate in (0.02, 0.5):
        check_against_jiwer([" ".join(said)], [" ".join(corrupt(said, rate, random_)[:-40])], unit)


def test_code_for_jiwer_takes_our_results_and_gives_its_own():
    ours = error_rate(["三時に会議", "はい"], ["3時会議", "はい"], unit="char", language="ja")
    output = ours.to_jiwer()
    assert (type(output), output.cer, output.deletions) == (jiwer.CharacterOutput, ours.rate, 1)
    assert "D" in jiwer.visualize_alignment(output)
    again = from_jiwer(output)
    assert (again.unit, again.errors, again.alignments[0].text) == ("char", 1, ours.alignments[0].text)
    assert jiwer.collect_error_counts(error_rate(["a b"], ["a c"]).to_jiwer())[0] == {("b", "c"): 1}
    with pytest.raises(InvalidRequestError, match=r"pair 1 of the output has .* inside a word"):
        from_jiwer(jiwer.process_words(["a", "no\u00a0break"], ["a", "b"]))


def test_no_utterances_have_no_rate():
    nothing = error_rate([], [])
    figures = (nothing.rate, nothing.mean_error_rate, nothing.match_error_rate)
    figures += (nothing.word_information_preserved, nothing.word_information_lost)
    assert all(map(math.isnan, (*figures, *nothing.confidence_interval())))
    assert nothing.counts_by_utterance.shape == (0, 4)
    assert "0 utterances" in repr(nothing)
    assert nothing._repr_html_()


@pytest.mark.parametrize(
    ("unit", "language", "said", "heard", "rate"),
    [
        ("char", "ja", "三時に会議", "3時に会議", 0.0),
        ("char", "zh-TW", "语音识别", "語音識別", 0.0),
        ("reading", "ja", "今日はとても良い天気ですね", "きょうはとてもよい天気ですね", 0.0),
        ("reading", "ja", "三時", "四時", 2 / 3),
        ("word", "en", "Don't pay $20!", "do not pay twenty dollars", 0.0),
        ("word", None, "Don't", "do not", 2.0),
    ],
)
def test_a_language_has_its_normalizer_and_units(unit, language, said, heard, rate):
    for package in ("pyopenjtalk", "opencc"):
        pytest.importorskip(package)
    result = error_rate(said, heard, unit=unit, language=language)
    assert result.rate == rate
    assert ("openjtalk" in result.signature) == (unit == "reading")


def test_errors_name_the_value_and_the_remedy():
    for arguments, hint in [
        ({"references": ["a"], "hypotheses": ["a", "b"]}, "1 references and 2 hypotheses"),
        ({"references": "a", "hypotheses": ["a"]}, "both"),
        ({"references": ["a", None], "hypotheses": ["a", "b"]}, r"references\[1\] is None"),
        ({"hypotheses": [float("nan")], "references": ["a"]}, r"hypotheses\[0\] is nan"),
        ({"unit": "reading", "language": "en"}, "Japanese"),
        ({"unit": "word", "language": "ja"}, "unit='char'"),
        ({"normalize": lambda text: None}, "returned None"),
    ]:
        with pytest.raises(InvalidRequestError, match=hint):
            error_rate(**{"references": "a", "hypotheses": "b", **arguments})


def test_intervals_are_deterministic_and_do_not_depend_on_order():
    random_ = random.Random(3)
    pairs = [("a " * random_.randrange(1, 9), "a b") for _ in range(50)]
    one = error_rate(*zip(*pairs, strict=True)).confidence_interval(draws=500, seed=1)
    random_.shuffle(pairs)
    again = error_rate(*zip(*pairs, strict=True))
    assert again.confidence_interval(draws=500, seed=1) == one
    assert again.confidence_interval(draws=500, seed=2) != one
    assert one.low < one.high


def test_the_bootstrap_agrees_with_drawn_indices():
    """Multinomial draws against draws of indices, and the upper end against Bayesian weights and a wrong text."""
    random_ = np.random.default_rng(5)
    errors, lengths = random_.integers(0, 4, 80), random_.integers(1, 12, 80)
    result = rate_of(errors, lengths)
    drawn = random_.integers(0, 80, (20_000, 80))
    rates = result.errors_by_utterance[drawn].sum(1) / result.lengths_by_utterance[drawn].sum(1)
    low, high = result.confidence_interval(draws=20_000)
    assert low == pytest.approx(np.quantile(rates, 0.025), abs=0.004)
    weights, wrong = random_.gamma(1.0, size=(20_000, 80)), random_.gamma(1 / 3, size=20_000) * lengths.mean()
    rates = (weights @ result.errors_by_utterance + wrong) / (weights @ lengths + wrong)
    assert high == pytest.approx(np.quantile(rates, 0.975), abs=0.004)


def simulate_coverage(draw, *, corpora, utterances, groups=None):
    covered = 0
    random_ = np.random.default_rng(11)
    for _ in range(corpora):
        low, high = rate_of(*draw(random_, utterances)).confidence_interval(draws=400, groups=groups)
        covered += low <= 0.1 <= high
    return covered / corpora


@pytest.mark.slow
def test_block_intervals_cover_the_truth_of_unequal_speakers():
    sizes = [60, 30, 15, 8, 8, 4, 4, 2, 2, 1, 1, 1]
    speakers = np.repeat(np.arange(12), sizes)

    def draw(random_, utterances):
        lengths = np.full(utterances, 30)
        effects = 0.1 * np.exp(random_.normal(-(0.5**2) / 2, 0.5, 12))
        return random_.binomial(lengths, effects.clip(0, 0.9)[speakers]), lengths

    assert simulate_coverage(draw, corpora=40, utterances=sum(sizes)) < 0.85
    assert simulate_coverage(draw, corpora=120, utterances=sum(sizes), groups=speakers) >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize(("n", "low", "high"), [(2, 0.65, 0.95), (5, 0.88, 1), (50, 0.95, 0.995)])
def test_intervals_from_few_utterances_cover_the_truth(n, low, high):
    def draw(random_, utterances):
        lengths = random_.integers(5, 20, utterances)
        return random_.binomial(lengths, 0.1), lengths

    assert low <= simulate_coverage(draw, corpora=200, utterances=n) <= high


@pytest.mark.parametrize(("n", "share"), [(20, 0.05), (50, 0.02)])
def test_intervals_reach_what_the_sample_may_lack(n, share):
    """Now and then a text goes wholly wrong: a third of the samples have none, and their draws have none."""

    def draw(random_, utterances):
        lengths = np.full(utterances, 10)
        rest = (0.1 - share) / (1 - share)
        wrong = random_.random(utterances) < share
        return np.where(wrong, lengths, random_.binomial(lengths, rest)), lengths

    assert simulate_coverage(draw, corpora=150, utterances=n) >= 0.95


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=12), st.integers(1, 6))
def test_an_interval_holds_its_rate_and_ends_above_zero(counts, blocks):
    result = rate_of(*zip(*counts, strict=True))
    low, high = result.confidence_interval(draws=200, groups=[at % blocks for at in range(len(counts))])
    if min(blocks, len(counts)) < 2:
        assert math.isnan(low)
        assert math.isnan(high)
    elif result.reference_length:
        assert 0 <= low <= result.rate <= high <= 1
        assert high > 0


def test_intervals_without_errors_depend_on_the_number():
    ends = [error_rate(["a b c"] * n, ["a b c"] * n).confidence_interval() for n in (2, 20, 50, 200)]
    assert all(low == 0 for low, _ in ends)
    assert [round(high, 2) for _, high in ends] == [0.66, 0.09, 0.03, 0.01]
    assert error_rate("a b", "c d e f").rate == 2  # an interval of such rates may go beyond 1
    assert error_rate(["a b"] * 9, ["c d e f"] * 9).confidence_interval() == (2, 2)


def test_alignments_have_tokens_edits_text_and_html():
    one, bold = error_rate(["a  b\u3000c", "<b>bold</b>"], ["a x c d", "<i>bold</i>"]).alignments
    assert one.text == "a [-b-]{+x+} c {+d+}"
    assert [tuple(edit) for edit in one] == [
        ("equal", "a", "a", 0, 0),
        ("substitute", "b", "x", 1, 1),
        ("equal", "c", "c", 2, 2),
        ("insert", None, "d", 3, 3),
    ]
    assert pickle.loads(pickle.dumps(one)) == one
    rate = error_rate(["a b"], ["a c"], language="en")
    for _ in range(2):  # also after its edits were asked for
        assert pickle.loads(pickle.dumps(rate)).rate == rate.rate == 0.5
    assert [part in bold.html for part in ("<b>", "&lt;b&gt;", "<del", "<ins")] == [False, True, True, True]


def test_a_notebook_shows_escaped_html():
    result = error_rate(["<script>"] * 3, ["x"] * 3)
    shown = result._repr_html_()
    assert ("<script" in shown, "95% interval" in shown) == (False, True)
    for undefined in (error_rate("a b", "a c"), error_rate([], [])):
        assert ("nan" in undefined._repr_html_(), "none" in undefined._repr_html_()) == (False, True)


def test_texts_without_spaces_are_warned_of_unless_chosen():
    for text in ("今日は良い天気です", "วันนี้อากาศดี"):
        with pytest.warns(UserWarning, match="no spaces between words"):
            assert error_rate([text, text], [text, text[1:]]).rate == 0.5
    for text in ("今日 は 良い 天気 です", "こんにちは 世界", "오늘은 날씨가 좋습니다", "naïve café", ""):
        assert error_rate([text], [text]).rate == 0
    assert error_rate("今日は良い天気です", "今日は良い天気", unit="char").errors == 2
    assert error_rate("今日は良い天気です", "今日は良い天気", normalize=None).errors == 1
