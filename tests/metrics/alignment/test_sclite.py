"""Counts against NIST's sclite itself."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speechlab.errors import InvalidRequestError
from speechlab.metrics import Alignment, error_rate
from support import adversarial, nist

ODD = adversarial.WORDS


def random_pairs(vocabulary, n, length, seed):
    random_ = random.Random(seed)
    return [
        [" ".join(random_.choices(vocabulary, k=random_.randrange(length))) for _ in range(n)]
        for _ in range(2)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vocabulary", "length", "seed"),
    [
        ("ab", 8, 1),
        ("abcdef", 10, 2),
        ("abcdefgh", 20, 3),
        ([f"w{i}" for i in range(300)], 15, 4),
        (ODD, 12, 5),
    ],
)
def test_sclite_agrees_on_every_utterance(tmp_path, vocabulary, length, seed):
    nist.sctk()
    references, hypotheses = random_pairs(list(vocabulary), 800, length, seed)
    result = error_rate(references, hypotheses, counts="sclite")
    assert list(map(tuple, result.counts_by_utterance.tolist())) == nist.sclite_counts(
        tmp_path, references, hypotheses
    )


@pytest.mark.slow
def test_sclite_agrees_on_odd_spaces_and_very_long_utterances(tmp_path):
    nist.sctk()
    random_ = random.Random(6)
    texts = [[random_.choices(ODD, k=k) for k in (0, 1, 5, 30, 800)] for _ in range(2)]
    # sclite knows only ASCII spaces. Here, an ideographic space separates words too.
    ours = [
        ["".join(w + random_.choice(adversarial.SPACES) for w in words) for words in side] for side in texts
    ]
    plain = [[" ".join(words) for words in side] for side in texts]
    result = error_rate(*ours, counts="sclite")
    assert list(map(tuple, result.counts_by_utterance.tolist())) == nist.sclite_counts(tmp_path, *plain)


@pytest.mark.slow
def test_sclite_agrees_on_speech_like_errors(tmp_path):
    nist.sctk()
    random_ = random.Random(9)
    words = [f"w{i}" for i in range(200)]
    references, hypotheses = [], []
    for _ in range(800):
        said = random_.choices(words, k=random_.randrange(1, 30))
        heard = [
            random_.choice(words) if random_.random() < 0.3 else w for w in said if random_.random() > 0.2
        ]
        references.append(" ".join(said))
        hypotheses.append(" ".join(heard))
    result = error_rate(references, hypotheses, counts="sclite")
    assert list(map(tuple, result.counts_by_utterance.tolist())) == nist.sclite_counts(
        tmp_path, references, hypotheses
    )


@pytest.mark.parametrize(
    ("reference", "hypothesis", "errors"),
    [("g b d a f d", "a h f e b d", 6), ("d c h a e d h b", "c d b f f g", 8), ("c c b", "b d e", 3)],
)
def test_known_cases(reference, hypothesis, errors):
    assert error_rate(reference, hypothesis, counts="sclite").errors == errors


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_blocks_cover_both_sides(one, other):
    i = j = 0
    for operation, i0, i1, j0, j1 in Alignment(one, other, "", counts="sclite").blocks:
        assert (i0, j0) == (i, j)
        if operation in {"equal", "substitute"}:
            assert i1 - i0 == j1 - j0
            assert all(
                (a == b) == (operation == "equal") for a, b in zip(one[i0:i1], other[j0:j1], strict=True)
            )
        i, j = i1, j1
    assert (i, j) == (len(one), len(other))
    ours, least = error_rate(one, other, unit="char", counts="sclite"), error_rate(one, other, unit="char")
    assert ours.errors >= least.errors
    assert ours.hits + ours.substitutions + ours.deletions == len(one)


def test_the_signature_records_the_counts():
    assert "counts:sclite" in error_rate("a", "b", counts="sclite").signature


def test_refusals():
    with pytest.raises(InvalidRequestError, match="'nist'"):
        error_rate("a", "b", counts="nist")
    with pytest.raises(InvalidRequestError, match="levenshtein"):
        error_rate("a" * 20_000, "b" * 20_000, unit="char", counts="sclite")
