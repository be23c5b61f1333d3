"""How fast error rates are, against other libraries, in one run: ``python benchmarks/metrics.py [--quick]``.

All candidates get the same lists of texts. They run in turn, several times, and the median of each one's processor
time counts. Times of different machines cannot be compared, so what is printed are ratios: to a bare loop over
rapidfuzz, which any caller could write, and to jiwer. Candidates that are not installed are named.
"""

from __future__ import annotations

import argparse
import csv
import gc
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein, Opcodes
from rapidfuzz.process import cpdist

from speechlab.audio import AudioClip
from speechlab.metrics import ErrorRate, error_rate, score, speech_measures
from speechlab.text import normalizer

Texts = list[str]
Candidate = Callable[[Texts, Texts], object]
PHRASES = Path(__file__).parents[1] / "tests/metrics/rates/pairs/ja-first.tsv"
SYLLABLES = "ka ki ku sa shi to no ma re mi ra yo wa ne tan gen ber lin ro ad stone field"


def corpus(utterances: int, words: int, rate: float, seed: int = 0) -> tuple[Texts, Texts]:
    """Pairs with substitutions, deletions and insertions at about the given word error rate."""
    chance = random.Random(seed)
    parts = SYLLABLES.split()
    vocabulary = ["".join(chance.choices(parts, k=chance.randrange(1, 4))) for _ in range(8_000)]
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    said, heard = [], []
    for _ in range(utterances):
        line = chance.choices(vocabulary, weights, k=words)
        wrong = []
        for word in line:
            dice = chance.random()
            if dice < rate * 0.2:
                continue
            wrong.append(chance.choice(vocabulary) if dice < rate * 0.8 else word)
            if dice > 1 - rate * 0.2:
                wrong.append(chance.choice(vocabulary))
        said.append(" ".join(line))
        heard.append(" ".join(wrong))
    return said, heard


def sentences(count: int, length: int = 40, rate: float = 0.1, seed: int = 1) -> tuple[Texts, Texts]:
    """Japanese-looking sentences of kanji and kana."""
    chance = random.Random(seed)
    letters = [chr(code) for code in (*range(0x3042, 0x3094), *range(0x4E00, 0x5200))]
    said, heard = [], []
    for _ in range(count):
        line = chance.choices(letters, k=chance.randrange(length // 2, length * 3 // 2))
        said.append("".join(line))
        heard.append("".join(chance.choice(letters) if chance.random() < rate else c for c in line))
    return said, heard


# -- the same work by others


# The bare loops are as tight as we can write them: equal texts are not compared, long ones with a hint, as in ours.


def bare_words(said: Texts, heard: Texts) -> float:
    distance = Levenshtein.distance
    errors = words = 0
    for one, other in zip(said, heard, strict=True):
        reference = one.split()
        words += len(reference)
        if one != other:
            errors += distance(reference, other.split())
    return errors / words


def bare_long_pair(said: Texts, heard: Texts) -> float:
    reference = said[0].split()
    return Levenshtein.distance(reference, heard[0].split(), score_hint=len(reference) // 5) / len(reference)


def bare_characters(said: Texts, heard: Texts) -> float:
    return int(cpdist(said, heard, scorer=Levenshtein.distance, dtype=np.int64).sum()) / sum(map(len, said))


def bare_word_counts(said: Texts, heard: Texts) -> object:
    return _bare_counts(said, heard, str.split)


def bare_character_counts(said: Texts, heard: Texts) -> object:
    return _bare_counts(said, heard, str)


def _bare_counts(said: Texts, heard: Texts, cut: Callable[[str], str | Texts]) -> object:
    editops = Levenshtein.editops
    found = []
    for one, other in zip(said, heard, strict=True):
        if one == other:
            found.append((0, 0, 0))
            continue
        reference, hypothesis = cut(one), cut(other)
        edits = editops(reference, hypothesis)
        substitutions = [edit[0] for edit in edits.as_list()].count("replace")
        deletions = (len(edits) - substitutions + len(reference) - len(hypothesis)) // 2
        found.append((substitutions, deletions, len(edits) - substitutions - deletions))
    return found


def bare_alignments(said: Texts, heard: Texts) -> object:
    editops = Levenshtein.editops
    found = []
    for one, other in zip(said, heard, strict=True):
        edits = editops(one.split(), other.split())
        substitutions = [edit[0] for edit in edits.as_list()].count("replace")
        found.append((Opcodes.from_editops(edits).as_list(), substitutions, len(edits)))
    return found


def jiwer_words(said: Texts, heard: Texts) -> object:
    import jiwer

    return jiwer.process_words(said, heard)


def jiwer_characters(said: Texts, heard: Texts) -> object:
    import jiwer

    return jiwer.process_characters(said, heard)


def kaldialign_counts(said: Texts, heard: Texts) -> object:
    import kaldialign

    return [kaldialign.edit_distance(a.split(), b.split()) for a, b in zip(said, heard, strict=True)]


def kaldialign_characters(said: Texts, heard: Texts) -> object:
    import kaldialign

    return [kaldialign.edit_distance(list(a), list(b)) for a, b in zip(said, heard, strict=True)]


def kaldialign_alignments(said: Texts, heard: Texts) -> object:
    import kaldialign

    return [kaldialign.align(a.split(), b.split(), "*") for a, b in zip(said, heard, strict=True)]


def meeteval_words(said: Texts, heard: Texts) -> object:
    from meeteval.wer import combine_error_rates, siso_word_error_rate

    return combine_error_rates([siso_word_error_rate(a, b) for a, b in zip(said, heard, strict=True)])


def werx_words(said: Texts, heard: Texts) -> object:
    import werx

    return werx.wer(said, heard)


def werx_counts(said: Texts, heard: Texts) -> object:
    import werx

    return werx.analysis(said, heard)


# -- our own


def our_rate(said: Texts, heard: Texts) -> object:
    return error_rate(said, heard).rate


def our_counts(said: Texts, heard: Texts) -> object:
    result = error_rate(said, heard)
    return result.counts_by_utterance, result.substitutions


def our_alignments(said: Texts, heard: Texts) -> object:
    result = error_rate(said, heard)
    return [alignment.blocks for alignment in result.alignments], result.counts_by_utterance


def our_characters(said: Texts, heard: Texts) -> object:
    return error_rate(said, heard, unit="char").rate


def our_character_counts(said: Texts, heard: Texts) -> object:
    return error_rate(said, heard, unit="char").counts_by_utterance


def measure(
    title: str, data: tuple[Texts, Texts], candidates: dict[str, Candidate], repeats: int, base: str
) -> None:
    """Run all candidates in turn, and print the medians of their times as ratios of speed."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, run in candidates.items():
            if times[name] and times[name][0] > 8:
                continue  # once is enough for what takes that long
            start = time.process_time()
            run(*data)
            times[name].append(time.process_time() - start)
    middle = {name: statistics.median(found) for name, found in times.items()}
    print(f"\n{title}\n{'':34}{'x ' + base:>18}{'x jiwer':>12}")
    for name, seconds in sorted(middle.items(), key=lambda item: item[1]):
        jiwer = f"{middle['jiwer'] / seconds:12.2f}" if "jiwer" in middle else ""
        print(f"  {name:32}{middle[base] / seconds:18.2f}{jiwer}")


def measure_orders(repeats: int, *corpora: tuple[str, str, tuple[Texts, Texts]]) -> None:
    """Print what rate, counts and alignments of one result cost together, by the order in which they are asked."""
    parts: dict[str, Callable[[ErrorRate], object]] = {
        "rate": lambda result: result.rate,
        "counts": lambda result: (result.counts_by_utterance, result.substitutions),
        "alignments": lambda result: [alignment.blocks for alignment in result.alignments],
    }
    first = ("rate", "counts", "alignments")
    orders = (first, first[::-1], ("counts", "alignments", "rate"))
    print(f"\n{'order in which results are asked':60}{'ms':>8}")
    gc.collect()
    gc.freeze()  # what the candidates before left behind is not gone through again at each collection
    for title, unit, data in corpora:
        times: dict[tuple[str, ...], list[float]] = {order: [] for order in orders}
        for _ in range(repeats):
            for order, found in times.items():
                start = time.process_time()
                result = error_rate(*data, unit=unit)
                kept = [parts[name](result) for name in order]
                found.append(time.process_time() - start)
                del kept, result
        for order, found in times.items():
            print(f"  {title + ': ' + ', '.join(order):58}{1_000 * statistics.median(found):8.1f}")
    gc.unfreeze()


def memory(words: int) -> float:
    """Peak of Python's memory for one pair of that many words, in bytes for each word of the reference."""
    said, heard = corpus(1, words, 0.15, seed=3)
    tracemalloc.start()
    result = error_rate(said, heard)
    _ = result.rate, result.counts_by_utterance, result.alignments[0].blocks
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / words


def phrases(count: int, seed: int = 4) -> tuple[Texts, Texts]:
    """Japanese sentences of four phrases, half of which differ, in all ways that the tests know."""
    with PHRASES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    chance = random.Random(seed)
    said, heard = [], []
    for _ in range(count):
        four = chance.sample(rows, 4)
        said.append("、".join(row["reference"] for row in four) + "。")
        wrong = [row["hypothesis" if chance.random() < 0.5 else "reference"] for row in four]
        heard.append("、".join(wrong) + "。")
    return said, heard


def measure_tables(share: int) -> None:
    """Print the processor time of ``score``, which normalizes, and of Japanese also reads and judges."""
    print(f"\n{'score of a table':46}{'seconds':>8}")
    for title, (said, heard), how in (
        ("20,000 English rows, not normalized", corpus(20_000 // share, 12, 0.12), {"normalize": None}),
        ("20,000 English rows", corpus(20_000 // share, 12, 0.12), {}),
        ("1,000 Japanese sentences", phrases(1_000 // share), {"language": "ja"}),
    ):
        frame = pd.DataFrame({"text": said, "hypothesis": heard})
        options = {"language": "en", **how}
        score(frame.head(2), **options)  # dictionaries are loaded once
        start = time.process_time()
        score(frame, **options)
        print(f"  {title:44}{time.process_time() - start:8.2f}")
    if find_spec("pyopenjtalk") is not None:
        import pyopenjtalk

        texts = list(map(normalizer("ja-reading"), dict.fromkeys([*said, *heard])))
        start = time.process_time()
        for text in texts:
            pyopenjtalk.run_frontend(text)
        print(f"  {'the same sentences read by OpenJTalk alone':44}{time.process_time() - start:8.2f}")


def measure_sounds(count: int) -> None:
    """Print the processor time of the measures of one sound of 4 s."""
    chance = np.random.default_rng(0)
    sounds = [AudioClip(0.1 * chance.normal(size=96_000).astype(np.float32), 24_000) for _ in range(count)]
    speech_measures(sounds[:1])
    start = time.process_time()
    speech_measures(sounds)
    print(f"\nmeasures of a sound of 4 s: {1000 * (time.process_time() - start) / count:.1f} ms")


def with_installed(candidates: dict[str, tuple[str, Candidate]]) -> dict[str, Candidate]:
    """The candidates whose package is there."""
    return {name: run for name, (package, run) in candidates.items() if find_spec(package) is not None}


def main() -> int:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    share = 10 if parser.parse_args().quick else 1
    missing = [name for name in ("jiwer", "kaldialign", "meeteval", "werx") if find_spec(name) is None]
    print("not installed:", ", ".join(missing) or "none of the candidates is missing")
    repeats = 7
    words = corpus(20_000 // share, 12, 0.12)
    measure(
        "20,000 pairs of 12 words: corpus rate only",
        words,
        {"bare rapidfuzz": bare_words, "speechlab": our_rate}
        | with_installed(
            {
                "jiwer": ("jiwer", jiwer_words),
                "kaldialign": ("kaldialign", kaldialign_counts),
                "meeteval": ("meeteval", meeteval_words),
                "werx": ("werx", werx_words),
            }
        ),
        repeats,
        "bare rapidfuzz",
    )
    measure(
        "20,000 pairs of 12 words: counts of each utterance",
        words,
        {"bare rapidfuzz": bare_word_counts, "speechlab": our_counts}
        | with_installed(
            {
                "jiwer": ("jiwer", jiwer_words),
                "kaldialign": ("kaldialign", kaldialign_counts),
                "meeteval": ("meeteval", meeteval_words),
                "werx analysis": ("werx", werx_counts),
            }
        ),
        repeats,
        "bare rapidfuzz",
    )
    measure(
        "20,000 pairs of 12 words: counts and alignments",
        words,
        {"bare rapidfuzz": bare_alignments, "speechlab": our_alignments}
        | with_installed(
            {"jiwer": ("jiwer", jiwer_words), "kaldialign": ("kaldialign", kaldialign_alignments)}
        ),
        repeats,
        "bare rapidfuzz",
    )
    measure(
        "one pair of 20,000 words: rate",
        corpus(1, 20_000 // share, 0.15, seed=3),
        {"bare rapidfuzz": bare_long_pair, "speechlab": our_rate}
        | with_installed(
            {
                "jiwer": ("jiwer", jiwer_words),
                "kaldialign": ("kaldialign", kaldialign_counts),
                "meeteval": ("meeteval", meeteval_words),
                "werx": ("werx", werx_words),
            }
        ),
        3,
        "bare rapidfuzz",
    )
    letters = sentences(5_000 // share)
    measure(
        "5,000 Japanese sentences by characters: rate",
        letters,
        {"bare rapidfuzz": bare_characters, "speechlab": our_characters}
        | with_installed(
            {"jiwer": ("jiwer", jiwer_characters), "kaldialign": ("kaldialign", kaldialign_characters)}
        ),
        repeats,
        "bare rapidfuzz",
    )
    measure(
        "5,000 Japanese sentences by characters: counts",
        letters,
        {"bare rapidfuzz": bare_character_counts, "speechlab": our_character_counts}
        | with_installed({"jiwer": ("jiwer", jiwer_characters)}),
        repeats,
        "bare rapidfuzz",
    )
    measure_orders(
        repeats,
        ("20,000 pairs of 12 words", "word", words),
        ("one pair of 20,000 words", "word", corpus(1, 20_000 // share, 0.15, seed=3)),
        ("5,000 Japanese sentences", "char", letters),
    )
    measure_tables(share)
    measure_sounds(100 // share)
    print("\nmemory of one pair, bytes for each reference word (a constant means linear):")
    for size in (5_000 // share, 20_000 // share, 80_000 // share):
        print(f"  {size:7} words: {memory(size):8.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
