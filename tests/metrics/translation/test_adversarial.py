"""BLEU and chrF on adversarial text: sacrebleu's scores to the last digit, with all tokenizers without downloads."""

import itertools
import logging
import random
from importlib.util import find_spec

import pandas as pd
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from speechlab.errors import MissingDependencyError
from speechlab.metrics import score_translations
from support import adversarial

TOKENIZERS = ["13a", "char", "intl", "none", "zh", *(["ja-mecab"] if find_spec("MeCab") else [])]
TEXT = st.lists(
    st.tuples(st.sampled_from(adversarial.WORDS), st.sampled_from(adversarial.SPACES)), max_size=9
).map(lambda parts: "".join(itertools.chain.from_iterable(parts)))
SEGMENTS = st.lists(st.tuples(st.lists(TEXT, min_size=1, max_size=3), TEXT), min_size=1, max_size=5)
# sacrebleu warns of text that seems to be tokenized.
logging.getLogger("sacrebleu").setLevel(logging.ERROR)


def theirs(references, hypotheses, tokenize):
    """Scores and signatures of sacrebleu's own public interface."""
    streams = [list(stream) for stream in itertools.zip_longest(*references)]
    bleu = sacrebleu.BLEU(tokenize=tokenize, effective_order=len(hypotheses) == 1)
    chrf = sacrebleu.CHRF()
    if len(hypotheses) == 1:
        scores = [metric.sentence_score(hypotheses[0], references[0]).score for metric in (bleu, chrf)]
    else:
        scores = [metric.corpus_score(hypotheses, streams).score for metric in (bleu, chrf)]
    return scores, [str(bleu.get_signature()), str(chrf.get_signature())]


def check(segments, tokenize):
    references, hypotheses = (list(side) for side in zip(*segments, strict=True))
    ours = score_translations(references, hypotheses, tokenize=tokenize)
    scores, signatures = theirs(references, hypotheses, tokenize)
    assert [ours.bleu, ours.chrf] == scores
    assert [ours.signatures["bleu"], ours.signatures["chrf"]] == signatures
    assert ours.utterances == len(hypotheses)


@pytest.mark.slow
@pytest.mark.parametrize("tokenize", TOKENIZERS)
@settings(max_examples=20)
@given(SEGMENTS, st.lists(TEXT, min_size=1, max_size=4))
def test_sacrebleu_agrees_on_adversarial_texts_and_sentences(tokenize, segments, references):
    check(segments, tokenize)
    check([(references, segments[0][1])], tokenize)


@pytest.mark.parametrize("tokenize", TOKENIZERS)
def test_sacrebleu_agrees_on_a_corpus_of_similar_texts(tokenize):
    """Texts that share most of their words, so that n-grams of all orders match."""
    random_ = random.Random(4)
    segments = []
    for _ in range(40):
        words = random_.choices(adversarial.WORDS[:-1], k=random_.randrange(5, 30))
        versions = [
            "".join(
                (random_.choice(adversarial.WORDS) if random_.random() < 0.1 else word)
                + random_.choice(adversarial.SPACES)
                for word in words
            )
            for _ in range(4)
        ]
        segments.append((versions[1 : random_.randrange(2, 5)], versions[0]))
    check(segments, tokenize)
    ours = score_translations(*zip(*segments, strict=True), tokenize=tokenize)
    assert ours.bleu > 5
    assert "nrefs:var" in ours.signatures["chrf"]


def test_sacrebleu_agrees_on_a_very_long_text():
    random_ = random.Random(5)
    said, heard = (" ".join(random_.choices([*"abcdef", *adversarial.WORDS[:-1]], k=2_000)) for _ in range(2))
    check([([said], heard), ([""], ""), ([""], "a"), (["a"], "")], "13a")


def test_a_second_reference_can_raise_the_score():
    one = score_translations([["the cat sat"]], ["a cat sat"])
    two = score_translations([["the cat sat", "a cat sat"]], ["a cat sat"])
    assert one.chrf < two.chrf == 100
    assert "nrefs:2" in two.signatures["chrf"]
    assert score_translations(["the cat sat"], ["a cat sat"]) == one
    rows = pd.DataFrame({"reference": [["the cat sat", "a cat sat"]], "translation": ["a cat sat"]})
    assert score_translations(rows).chrf == 100
    assert score_translations(rows, by=(), language="en", draws=10)["chrf"].tolist() == [100]


@pytest.mark.skipif(find_spec("MeCab") is not None, reason="MeCab is installed")
def test_a_tokenizer_that_is_not_installed_names_its_package():
    with pytest.raises(MissingDependencyError, match=r"sacrebleu\[ja\]"):
        score_translations(["a"], ["a"], tokenize="ja-mecab")
