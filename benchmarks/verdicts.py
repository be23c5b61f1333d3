"""How often equal systems are called different: ``nice python benchmarks/verdicts.py [NAME…] [--simulations 1000]``.

Each line is one verdict of ``speechlab.metrics`` or of a study on simulated corpora of systems that are equal: the
share of corpora in which it was false at the 5% level, for several systems the share with one or more. What is named
in brackets is a figure and no verdict, beside it for comparison; lines of *power* are of
systems that differ. All of it takes about two hours of one core; names
choose lines by their beginning. With ``--write``, the tables of docs/statistics.md whose lines were all run are
written anew: they stand between ``<!-- verdicts: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd

import speechlab as sl
from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.metrics import (
    attribute,
    by_bins,
    compare,
    compare_translations,
    error_rate,
    rank,
    score,
    summarize,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Found = dict[str, float]
Random = np.random.Generator
Line = Callable[[range], "Iterator[Found]"]
ALIKE = "no difference shown"
WORDS = [f"w{number}" for number in range(30)]
SAID = " ".join(WORDS)
VOCABULARY = [
    "the",
    "a",
    "old",
    "red",
    "small",
    "cat",
    "dog",
    "bird",
    "house",
    "tree",
    "sees",
    "finds",
    "likes",
    "has",
    "today",
    "now",
    "here",
]


# -- errors of equal systems: (systems, utterances), of 30 words each


def alike(random: Random, systems: int, n: int) -> np.ndarray:
    """Words that go wrong one by one."""
    return random.binomial(30, 0.08, (systems, n))


def suited(random: Random, systems: int, n: int, deviation: float) -> np.ndarray:
    """Utterances that suit the systems differently."""
    rates = 0.08 * np.exp(random.normal(0, deviation, (systems, n)))
    return random.binomial(30, rates.clip(0, 0.9))


def bursts(random: Random, systems: int, n: int, share: float = 0.05) -> np.ndarray:
    """Now and then a whole utterance."""
    return np.where(random.random((systems, n)) < share, 30, random.binomial(30, 0.03, (systems, n)))


def by_speaker(random: Random, systems: int, speakers: np.ndarray, deviation: float) -> np.ndarray:
    """Speakers who suit the systems differently."""
    effects = np.exp(random.normal(0, deviation, (systems, speakers.max() + 1)))[:, speakers]
    return random.binomial(30, (0.08 * effects).clip(0, 0.9))


def tables(errors: list[np.ndarray], **columns: list[np.ndarray]) -> Iterator[list[pd.DataFrame]]:
    """For each corpus a scored table of each system: scored at once, since a call for each would be slow."""
    wrong = [" ".join(["x"] * count + WORDS[count:]) for count in range(31)]
    ends = np.cumsum([len(one[0]) for one in errors])
    whole = []
    for system in range(len(errors[0])):
        counts = np.concatenate([one[system] for one in errors]).tolist()
        frame = pd.DataFrame({"text": [SAID] * len(counts), "hypothesis": [wrong[count] for count in counts]})
        frame = frame.assign(**{name: np.concatenate(values) for name, values in columns.items()})
        whole.append(score(frame, language="en", normalize=None))
    for start, end in pairwise([0, *ends.tolist()]):
        yield [table.iloc[start:end].reset_index(drop=True) for table in whole]


# -- verdicts


def compared(one: pd.DataFrame, other: pd.DataFrame, **how: object) -> Found:
    result = compare(one, other, **how)
    low, high = result.interval
    return {
        "significant": result.significant,
        "(interval without zero)": low > 0 or high < 0,
        "(p_mapsswe)": result.mapsswe.p < 0.05,
    }


def of_compare(make: Callable[[Random], np.ndarray]) -> Line:
    def run(seeds: range) -> Iterator[Found]:
        errors = [make(np.random.default_rng(seed)) for seed in seeds]
        for first, second in tables(errors):
            yield compared(first, second)

    return run


def of_groups(speakers: np.ndarray, deviation: float) -> Line:
    def run(seeds: range) -> Iterator[Found]:
        errors = [by_speaker(np.random.default_rng(seed), 2, speakers, deviation) for seed in seeds]
        for first, second in tables(errors, speaker=[speakers] * len(seeds)):
            yield compared(first, second, groups="speaker")

    return run


def of_several(systems: int, speakers: np.ndarray | None) -> Line:
    def run(seeds: range) -> Iterator[Found]:
        randoms = [np.random.default_rng(seed) for seed in seeds]
        names = np.arange(40) if speakers is None else speakers
        errors = [by_speaker(random, systems, names, 0.5) for random in randoms]
        for each in tables(errors, speaker=[names] * len(seeds)):
            given = dict(zip("abcdef", each, strict=False))
            found = compare(given, draws=1, groups=None if speakers is None else "speaker")
            yield {
                "significant": bool((found["verdict"] != ALIKE).any()),
                "(p)": bool((found["p"] < 0.05).any()),
            }

    return run


def of_rank(systems: int, n: int) -> Line:
    """Rankings; *likely*: the first is not significantly better than the second, with p below 0.1."""

    def run(seeds: range) -> Iterator[Found]:
        errors = [suited(np.random.default_rng(seed), systems, n, 0.5) for seed in seeds]
        for each in tables(errors, id=[np.arange(n)] * len(seeds)):
            voices = [table.assign(voice=name) for name, table in zip("abcdef", each, strict=False)]
            found = rank(pd.concat(voices), utterance="id")
            p, share = found.systems["p_best"].iloc[1], found.systems["first_share"].iloc[0]
            yield {
                "(likely)": len(found.tied) > 1 and p < 0.1,
                "(first in four of five draws)": len(found.tied) > 1 and share >= 0.8,
                "group": found.systems["group"].nunique() > 1,
                "sentence": "significantly" in found.sentence,
                "tied": len(found.tied) < systems,
            }

    return run


def of_attribute(engines: str, rate: float, n: int) -> Line:
    """Tables of voices that err independently, of which something is said to stand out."""

    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            random = np.random.default_rng(seed)
            rows = []
            for number in range(n):
                said = [f"w{word}" for word in random.integers(500, size=10)]
                for at, engine in enumerate(engines):
                    slips = zip(said, random.random(10) / rate, strict=True)
                    # Seven of ten slips put another word, the rest leave one out or put one in.
                    heard = [
                        word if slip > 1 else "x" if slip < 0.7 else "" if slip < 0.85 else f"{word} x"
                        for word, slip in slips
                    ]
                    facts = {"voice": f"v{at}", "engine": engine, "id": number}
                    rows.append(
                        facts | {"text": " ".join(said), "hypothesis": " ".join(" ".join(heard).split())}
                    )
            found = attribute(
                pd.DataFrame(rows), utterance="id", engine="engine", language="en", normalize=None
            )
            places = found.errors[found.errors["cause"] == "engine"]
            yield {
                "place of an engine": any(text.startswith("All or most") for text in found.findings),
                "any finding": bool(found.findings),
                "(without a test)": len(places) > 0,
            }

    return run


def of_intervals(speakers: np.ndarray) -> Line:
    """Intervals that miss the true rate, which is 5% of those at the level 0.95."""

    def run(seeds: range) -> Iterator[Found]:
        errors = [by_speaker(np.random.default_rng(seed), 1, speakers, 0.5) for seed in seeds]
        truth = 0.08 * math.exp(0.5**2 / 2)
        for (table,) in tables(errors, speaker=[speakers] * len(seeds)):
            grouped, plain = summarize(table, groups="speaker"), summarize(table)
            rate = error_rate(table["text"], table["hypothesis"])
            bins = by_bins(table.assign(x=1.0), "x", bins=[0, 2], groups="speaker")
            ends = {
                "summarize(groups=)": grouped[["error_rate_low", "error_rate_high"]].iloc[0],
                "error_rate(groups=)": rate.confidence_interval(groups=speakers.tolist()),
                "by_bins(groups=)": bins[["error_rate_low", "error_rate_high"]].iloc[0],
                "(summarize)": plain[["error_rate_low", "error_rate_high"]].iloc[0],
            }
            yield {name: not low <= truth <= high for name, (low, high) in ends.items()}

    return run


def translations(
    random: Random, systems: int, n: int, documents: int | None, worse: float = 0.0
) -> tuple[list[str], list[list[str]]]:
    """References, and what equal systems make of them, or each worse than the one before.

    Documents suit the systems differently.
    """
    said = [random.choice(VOCABULARY, random.integers(3, 12)).tolist() for _ in range(n)]
    texts = []
    for system in range(systems):
        hard = np.full(n, 0.3 + system * worse)
        if documents is not None:
            effects = np.exp(random.normal(0, 0.5, documents))[np.arange(n) * documents // n]
            hard = (hard * effects).clip(0, 0.95)
        heard = [
            " ".join(str(random.choice(VOCABULARY)) if random.random() < share else word for word in words)
            for words, share in zip(said, hard, strict=True)
        ]
        texts.append(heard)
    return [" ".join(words) for words in said], texts


def judged(_: list[str], translated: list[str], references: list[str]) -> list[float]:
    """A scorer: the share of words that stand in the reference."""
    pairs = zip(translated, references, strict=True)
    return [len({*one.split()} & {*other.split()}) / len(other.split()) for one, other in pairs]


def of_translations(systems: int, n: int, documents: int | None, test: str) -> Line:
    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            said, texts = translations(np.random.default_rng(seed), systems, n, documents)
            groups = None if documents is None else (np.arange(n) * documents // n).tolist()
            table = compare_translations(
                said,
                dict(zip("abcdef", texts, strict=False)),
                metrics=["chrf", "bleu"],
                scorers={"scorer": judged},
                groups=groups,
                draws=499,
                test=test,
            )
            found: Found = {}
            for metric, part in table.groupby("measure", sort=False):
                if test == "randomization":
                    found[str(metric)] = bool((part["verdict"] != ALIKE).any())
                found[f"({metric} p)"] = bool((part["p"].dropna() < 0.05).any())
                found[f"({metric} p_sacrebleu)"] = bool((part["p_sacrebleu"].dropna() < 0.05).any())
            verdicts = [value for name, value in found.items() if not name.startswith("(")]
            yield found | ({"(any of three metrics)": any(verdicts)} if verdicts else {})

    return run


def of_utterances(make: Callable[[Random], np.ndarray]) -> Line:
    """Intervals of one system's rate, and of a paired difference, that miss the truth; utterances drawn by chance.

    In brackets those of the rate that end below the truth, and the mean width, in points.
    """

    def run(seeds: range) -> Iterator[Found]:
        large = (
            sum(make(np.random.default_rng(10**9 + seed)).mean(axis=1) for seed in range(20_000))
            / 20_000
            / 30
        )
        for one, other in tables([make(np.random.default_rng(seed)) for seed in seeds]):
            low, high = summarize(one)[["error_rate_low", "error_rate_high"]].iloc[0]
            found = {
                "summarize": not low <= large[0] <= high,
                "(below)": high < large[0],
                "(width)": high - low,
            }
            low, high = compare(one, other).interval
            yield found | {"compare": not low <= large[1] - large[0] <= high}

    return run


def of_translation_intervals(n: int, documents: int | None) -> Line:
    """Intervals that miss the true difference of two systems, which is 5% of those at the level 0.95."""
    how: dict[str, object] = {"metrics": ["chrf", "bleu"], "test": "bootstrap", "draws": 1}
    large = 20_000  # for the truth: as many documents as sentences where there are any

    def run(seeds: range) -> Iterator[Found]:
        said, texts = translations(
            np.random.default_rng(10**9), 2, large, None if documents is None else large, 0.1
        )
        table = compare_translations(said, dict(zip("ab", texts, strict=True)), **how)
        truth = dict(table[["measure", "difference"]].to_numpy())
        for seed in seeds:
            said, texts = translations(np.random.default_rng(seed), 2, n, documents, 0.1)
            groups = None if documents is None else (np.arange(n) * documents // n).tolist()
            table = compare_translations(
                said, dict(zip("ab", texts, strict=True)), **how | {"draws": 500}, groups=groups
            )
            ends = table[["measure", "low", "high"]]
            yield {metric: not low <= truth[metric] <= high for metric, low, high in ends.to_numpy()}

    return run


# -- verdicts of studies: of outputs that exist, some of which are missing by chance


PROMPT = "die alte katze sah einen kleinen roten vogel am wasser"
SPOILED = [" ".join(["xx"] * count + PROMPT.split()[count:]) for count in range(11)]
ENDINGS = ["".join(letters) for letters in product("bcdfghjklm", "aeiou", "nr")]
"""The last words of texts, by which these differ."""
FAILED = 0.1
"""Share of the rows that have no output."""
DIFFERENT = {"better", "worse", "slower", "faster", "told apart"}


def outputs(random: Random, rates: np.ndarray, texts: list[str]) -> list[list[str | None]]:
    """Outputs of each system: with errors at the rates, shape (systems, rows), and missing by chance."""
    errors = random.binomial(10, rates.clip(0, 0.9))
    lost = random.random(rates.shape) < FAILED
    return [
        [
            None if gone else f"{SPOILED[count]} {text.split()[-1]}"
            for count, gone, text in zip(counts, failures, texts, strict=True)
        ]
        for counts, failures in zip(errors, lost, strict=True)
    ]


def recordings(
    random: Random, systems: int, speakers: np.ndarray | None, n: int, repeats: int, *, halved: bool = False
) -> pd.DataFrame:
    """A table of recordings with the outputs of equal systems; the last rows repeat the first ones.

    With ``halved``, the last system makes half of the errors, for the power of a verdict.

    Speakers suit the systems differently, or each recording does.
    """
    groups = np.arange(n) if speakers is None else speakers
    suits = np.exp(random.normal(0, 0.5, (systems, groups.max() + 1)))[:, groups]
    suits[-1] *= 0.5 if halved else 1.0
    texts = [f"{PROMPT} {ENDINGS[row]}" for row in range(len(groups))]
    frame = pd.DataFrame({"text": texts, "language": "de"})  # the notation of English takes time
    if speakers is not None or repeats:
        frame["speaker"] = [f"speaker {number}" for number in groups]
    for name, texts_of_one in zip("abcdef", outputs(random, 0.08 * suits, texts), strict=False):
        frame[name] = texts_of_one
    return pd.concat([frame, frame.head(repeats)], ignore_index=True)


def studied(frame: pd.DataFrame, store: str, names: str) -> evaluate.Report:
    with catch_warnings():
        simplefilter("ignore")  # rows that failed
        return evaluate.recognition(None, frame, hypotheses=list(names), store=store, progress=False)


def of_recognition(
    systems: int, speakers: np.ndarray | None, n: int = 40, repeats: int = 0, *, halved: bool = False
) -> Line:
    def run(seeds: range) -> Iterator[Found]:
        names = "abcdef"[:systems]
        with TemporaryDirectory() as store:
            for seed in seeds:
                frame = recordings(np.random.default_rng(seed), systems, speakers, n, repeats, halved=halved)
                report = studied(frame, store, names)
                yield {
                    "difference": bool(set(report.differences["verdict"]) & DIFFERENT),
                    "answer": "significantly" in report.answer,
                }

    return run


Weather = Callable[[Random, pd.DataFrame], pd.DataFrame]


def losing_hard_rows(least: int) -> Weather:
    """The system a has no output for its rows with so many errors or more, of ten words."""

    def lose(_: Random, frame: pd.DataFrame) -> pd.DataFrame:
        errors = frame["a"].str.count("xx")
        return frame.assign(a=frame["a"].where(errors < least, None))

    return lose


def one_runaway_row(random: Random, frame: pd.DataFrame) -> pd.DataFrame:
    """One of the systems puts 200 words into one row."""
    name, place = "ab"[random.integers(2)], random.integers(len(frame))
    frame.loc[place, name] = f"{frame.loc[place, 'text']}{' yy' * 200}"
    return frame


def each_row_ten_times(_: Random, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows without a sound or speaker, each of them ten times."""
    return pd.concat([frame] * 10, ignore_index=True)


def in_bad_weather(weather: Weather, speakers: np.ndarray | None = None, n: int = 40) -> Line:
    """Two equal systems whose rows something befalls: the study's own steps from scored rows to its answer."""
    from speechlab.evaluate._recognition.comparisons import build_systems_conclusion, rank_systems
    from speechlab.evaluate._speech.blocks import group_rows_into_blocks

    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            random = np.random.default_rng(seed)
            frame = recordings(random, 2, speakers, n, 0)
            frame = frame.assign(audio=None, **{name: frame[name].fillna(frame["text"]) for name in "ab"})
            frame = weather(random, frame).reset_index(drop=True)
            blocks = group_rows_into_blocks(frame, "audio", "text", "auto", by_speaker=False)
            facts = {"recording": range(len(frame)), "condition": "as recorded"}
            facts |= {} if blocks.names is None else {"block": blocks.names}
            parts = [
                score(frame.assign(hypothesis=frame[name], system=name, **facts), language="de")
                for name in "ab"
            ]
            order = rank_systems(pd.concat(parts, ignore_index=True), "text", "language", blocks.about)
            answer = build_systems_conclusion(order, pd.DataFrame(), order.verdicts)
            yield {
                "difference": bool(set(order.differences["verdict"]) & DIFFERENT),
                "answer": "significantly" in str(answer),
            }

    return run


def of_drift(n: int, worsens_at: int, concurrency: int) -> Line:
    """Two equal settings of a service whose errors grow from 3 to 15% with a call: the study asks both."""
    settings: dict[str, dict[str, Any]] = {"plain": {}, "new": {"hotwords": ["Ada"]}}
    frame = pd.DataFrame({"text": [f"{PROMPT} {ENDINGS[row]}" for row in range(n)], "language": "de"})
    frame["audio"] = [AudioClip(np.full(1_600 + row, 0.1, np.float32), 16_000) for row in range(n)]

    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            random, calls = np.random.default_rng(seed), iter(range(2 * n))

            def transcribe(clip: AudioClip, random: Random = random, calls: Any = calls, **_: object) -> str:
                errors = random.binomial(10, 0.03 if next(calls) < worsens_at else 0.15)
                return f"{SPOILED[errors]} {ENDINGS[clip.frames - 1_600]}"

            with TemporaryDirectory() as store, catch_warnings():
                simplefilter("ignore")
                with sl.system("service", transcribe=transcribe, version="1", concurrency=concurrency) as lab:
                    report = evaluate.recognition(lab, frame, settings=settings, store=store, progress=False)
            yield {
                "difference": bool(set(report.differences["verdict"]) & DIFFERENT),
                "answer": "significantly" in report.answer,
            }

    return run


def of_failing_voices(n: int, least: int) -> Line:
    """Rankings of two equal voices of which one fails on sentences with so many errors or more, of 30 words."""
    from speechlab.evaluate._voice_ranks.voice_order import rank_voices
    from speechlab.evaluate._voices.voices_report import recommend_voices

    def run(seeds: range) -> Iterator[Found]:
        errors = [suited(np.random.default_rng(seed), 2, n, 0.5) for seed in seeds]
        for pair in tables(errors):
            rows = []
            for name, table in zip("ab", pair, strict=True):
                part = table.assign(text=[f"{SAID} {row}" for row in range(n)], language="de", voice=name)
                part = part.assign(voice_name=name, engine="e", error=None)
                if name == "a":
                    failed = part["errors"] >= least
                    part["hypothesis"] = part["hypothesis"].where(~failed, None)
                    part["errors"] = part["errors"].where(~failed)
                rows.append(part)
            table = pd.concat(rows, ignore_index=True)
            speed = pd.DataFrame(columns=["language", "voice_name", "error"])
            advice = recommend_voices(rank_voices(table, "text", "language"), speed)
            yield {"answer": any(one.certainty == "settled" for one in advice.values())}

    return run


def of_changes(speakers: np.ndarray | None, n: int = 40, repeats: int = 0, *, halved: bool = False) -> Line:
    """Two runs of one system, compared: rows, and rows that failed."""

    def run(seeds: range) -> Iterator[Found]:
        with TemporaryDirectory() as store:
            for seed in seeds:
                frame = recordings(np.random.default_rng(seed), 2, speakers, n, repeats, halved=halved)
                first, second = (
                    studied(
                        frame[[*frame.columns.difference([*"ab"]), name]].rename(columns={name: "a"}),
                        store,
                        "a",
                    )
                    for name in "ab"
                )
                changes = second.compare(first)
                yield {"difference": bool(set(changes.differences["verdict"]) & DIFFERENT)}

    return run


def of_ends(voices: int, n: int, *, halved: bool = False) -> Line:
    """Whether the best and the worst of equal voices are said to differ."""

    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            random = np.random.default_rng(seed)
            errors = suited(random, voices, n, 0.5)
            errors[-1] //= 2 if halved else 1
            parts = []
            for name, (table,) in zip("abcdef", tables([part[None] for part in errors]), strict=False):
                facts = {"voice": name, "voice_name": name, "gender": "", "audio": None, "duration_s": 6.0}
                part = table.assign(text=[f"{SAID} {row}" for row in range(n)], language="en", **facts)
                parts.append(part.assign(status="ok", error=None, loop=False)[random.random(n) >= FAILED])
            report = evaluate.Report.of_scores("Voices", pd.concat(parts, ignore_index=True))
            yield {"answer": "by more than chance" in report.answer}

    return run


def of_conditions(speakers: np.ndarray) -> Line:
    """Conditions that change nothing on average, but suit the speakers differently; and hotwords."""
    from speechlab.evaluate._recognition.comparisons import compare_conditions

    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            frame = recordings(np.random.default_rng(seed), 3, speakers, 0, 0)
            parts = [
                score(frame.assign(hypothesis=frame[name], condition=condition), language="de")
                for name, condition in zip("abc", ("as recorded", "noise 10 dB", "noise 0 dB"), strict=True)
            ]
            rows = [part.assign(recording=range(len(frame)), block=speakers) for part in parts]
            found = compare_conditions(pd.concat(rows, ignore_index=True), "text", "language")
            yield {"difference": bool(set(found["verdict"]) & DIFFERENT)}

    return run


def of_translation_study(
    systems: int, n: int, repeats: int, weather: Weather | None = None, *, halved: bool = False
) -> Line:
    """Equal translators; with a weather, whose rows it befalls, no other row is missing."""

    def run(seeds: range) -> Iterator[Found]:
        with TemporaryDirectory() as store:
            for seed in seeds:
                random = np.random.default_rng(seed)
                frame = recordings(random, systems, None, n, repeats, halved=halved)
                if weather is not None:
                    whole = {name: frame[name].fillna(frame["text"]) for name in "abcdef"[:systems]}
                    frame = weather(random, frame.assign(**whole))
                frame = frame.assign(source_lang="fr", target_lang="de", reference=frame["text"])
                names = [*"abcdef"[:systems]]
                with catch_warnings():
                    simplefilter("ignore")
                    report = evaluate.translation(
                        None, frame.drop(columns=["language"]), hypotheses=names, store=store, progress=False
                    )
                yield {
                    "difference": bool(set(report.differences["verdict"]) & DIFFERENT),
                    "answer": re.match(r"Take \w\.", report.answer) is not None,
                }

    return run


def answers(method: str, scores: np.ndarray) -> pd.DataFrame:
    """Tidy answers of a listening test; scores of (listeners, items, systems), or (listeners, items) of a pair."""
    rows: list[dict[str, Any]] = []
    for (listener, item, *system), value in np.ndenumerate(scores):
        one, other = (f"system {system[0]}", None) if system else ("one", "two")
        rows.append(
            {"listener": str(listener), "item": str(item), "system": one, "other": other, "score": value}
        )
    facts = {"question": "?", "choice": None, "order": 1, "position": 1, "time_s": 1.0, "plays": 1}
    facts |= {
        "attention": None,
        "role": "test",
        "method": method,
        "test": "1",
        "session": "1",
        "finished": True,
    }
    return pd.DataFrame(rows).assign(**facts, trial=[str(row) for row in range(len(rows))])


def of_listening(method: str, listeners: int, items: int, systems: int = 3, *, better: float = 0.0) -> Line:
    """Tests of equal systems, with listeners and items that prefer one or another; one answer in ten is missing."""

    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            random = np.random.default_rng(seed)
            shape = (listeners, items, *([] if method in {"ab", "abx"} else [systems]))
            by_listener = random.normal(0, 0.4, (listeners, 1, *shape[2:]))
            by_item = random.normal(0, 0.4, (1, items, *shape[2:]))
            values = by_listener + by_item + random.normal(0, 0.7, shape)
            if method == "abx":
                values = (random.random(shape) < 0.5).astype(float)
            elif method == "ab":
                values = np.sign(np.rint(1.2 * values))
            else:
                values[..., -1] += better  # of the last system
                values = np.clip(np.rint(3 + values), 1, 5)
            table = answers(method, values)[random.random(values.size) >= FAILED]
            report = evaluate.listening(table, draws=100)
            yield {
                "difference": bool(set(report.differences["verdict"]) & DIFFERENT),
                "answer": "preferred" in report.answer
                or "told apart" in report.answer
                or " hear a" in report.answer.replace("not shown to hear", ""),
            }

    return run


def of_accusations(method: str, share: float) -> Line:
    """Tests of listeners who all prefer one system, or hear it, and press buttons that are drawn by chance."""

    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            random = np.random.default_rng(seed)
            scores = np.where(random.random((12, 20)) < share, 1.0, 0.0 if method == "abx" else -1.0)
            table = answers(method, scores).assign(position=random.integers(1, 3, scores.size))
            told = evaluate.listening(table, draws=100).answer
            yield {"accused": "same button" in told or "same rating" in told or "turned" in told}

    return run


def clear(_: Random, frame: pd.DataFrame) -> pd.DataFrame:
    """All rows as they are."""
    return frame


def of_no_worse(make: Callable[[Random], np.ndarray], blocks: np.ndarray | None = None) -> Line:
    """A system that has just the margin more errors, 1 in 100 words, is called no worse; and one that is equal."""
    from speechlab.evaluate._advice.no_worse import Losses, compute_no_worse_p

    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            one, same, worse = make(np.random.default_rng(seed)).astype(float)
            found = {}
            for name, other in ((NO_WORSE, worse), (POWER, same)):
                sums = np.column_stack([other - one, np.full(len(one), 30.0)])
                if blocks is not None:
                    sums = np.column_stack([np.bincount(blocks, column) for column in sums.T])
                found[name] = compute_no_worse_p(Losses(sums[:, 0], sums[:, 1], 30), 0.01) < 0.05
            yield found

    return run


NO_WORSE, POWER = "no worse", "(power: no worse, of equal systems)"


def of_no_worse_translators(n: int, deviation: float = 0.0, *, wholly: bool = False) -> Line:
    """A translator whose chrF lies just the margin, 1 point, below another's is called no worse; and an equal one."""
    from speechlab.evaluate._advice.no_worse import Losses, compute_no_worse_p
    from speechlab.metrics._translation.paired import compute_pseudo_values

    def run(seeds: range) -> Iterator[Found]:
        systems, compute = translators_at_margin(deviation, wholly=wholly)
        for seed in seeds:
            drawn = np.random.default_rng(seed).integers(len(systems[0]), size=n)
            one, same, worse = (compute_pseudo_values(figures[drawn], compute) for figures in systems)
            found = {}
            for name, other in ((NO_WORSE, worse), (POWER, same)):
                losses = Losses((one - other) / 100, np.ones(n), 1.0, one.mean() / 100)
                found[name] = compute_no_worse_p(losses, 0.01) < 0.05
            yield found

    return run


def translators_at_margin(deviation: float, *, wholly: bool) -> tuple[list[np.ndarray], Any]:
    """The figures of 2,000 texts of chrF 70 by two equal systems, and by one that lies 1 point below the first."""
    from speechlab.metrics._translation.texts import Translations
    from speechlab.metrics._translation.translation_metrics import build_metrics, compute_measures

    random = np.random.default_rng(0)
    letters = [*"abcdefghijklmnop"]
    words = np.array(["".join(random.choice(letters, size)) for size in range(2, 9) for _ in range(40)])
    said = random.choice(words, (2_000, 12))

    def spoil(texts: np.ndarray, rate: float) -> np.ndarray:
        rates = (rate * np.exp(random.normal(0, deviation, len(texts)))).clip(0, 1)
        return np.where(random.random(texts.shape) < rates[:, None], random.choice(words, texts.shape), texts)

    one, same, worse = (spoil(said, 0.3) for _ in range(3))
    made = {
        "one": one,
        "same": same,
        "worse": worse,
        "spoilt": np.full_like(worse, "zz") if wholly else spoil(worse, 0.2),
    }
    texts = Translations(
        [[text] for text in map(" ".join, said)],
        {name: [*map(" ".join, rows)] for name, rows in made.items()},
        sources=None,
        rows=None,
    )
    metric = build_metrics(["chrf"], "13a", None, single=False)
    figures = {name: compute_measures(metric, None, texts, name)["chrf"] for name in made}
    compute = figures["one"].compute
    one, same, worse, spoilt = (found.statistics for found in figures.values())
    least = compute(one.sum(0).tolist()) - 1
    below = [compute(row) for row in (worse.sum(0) + np.cumsum(spoilt - worse, axis=0)).tolist()]
    count = int(np.argmax(np.array(below) <= least)) + 1
    return [one, same, np.concatenate([spoilt[:count], worse[count:]])], compute


def at_margin(random: Random, n: int, deviation: float = 0.0, blocks: np.ndarray | None = None) -> np.ndarray:
    """Two equal systems, and one with 1 error in 100 words more; utterances or speakers suit them differently."""
    numbers = np.arange(n) if blocks is None else blocks
    effects = np.exp(random.normal(0, deviation, (3, numbers.max() + 1)) - deviation**2 / 2)[:, numbers]
    return random.binomial(30, (np.array([[0.08], [0.08], [0.09]]) * effects).clip(0, 0.95))


def bursts_at_margin(random: Random, n: int) -> np.ndarray:
    """Two equal systems, and one that has 1 in 97 utterances wholly wrong."""
    errors = random.binomial(30, 0.03, (3, n))
    errors[2][random.random(n) < 0.01 / 0.97] = 30
    return errors


def of_audit(systems: int, n: int) -> Line:
    """Audits of equal systems, which slip in 3 utterances of 10."""
    from speechlab.evaluate._published.audit import audit_predictions

    def run(seeds: range) -> Iterator[Found]:
        for seed in seeds:
            random, said = np.random.default_rng(seed), [f"{SAID} {row}" for row in range(n)]
            parts = []
            for number in range(systems):
                slips = np.where(random.random(n) < 0.3, "x ", "")
                texts = [f"{slip}{text}" for slip, text in zip(slips, said, strict=True)]
                facts = {"system": f"s{number}", "set": "all", "recording": [*map(str, range(n))]}
                parts.append(pd.DataFrame({**facts, "text": said, "hypothesis": texts}))
            report = audit_predictions(pd.concat(parts, ignore_index=True), "en", "basic", "Audit", {}, [])
            yield {"group": not report.conclusion.text.startswith("None of")}

    return run


def of_followers(systems: int, n: int, follows: float) -> Line:
    """Equal systems on wrong references; the first repeats a share of them, the others 3 in 100."""
    from speechlab.evaluate._audit.followers import find_followers

    def run(seeds: range) -> Iterator[Found]:
        said = np.array([f"a b {row} " for row in range(n)])
        for seed in seeds:
            random, parts = np.random.default_rng(seed), []
            for number in range(systems):
                repeats = random.random(n) < (follows if number == 0 else 0.03)
                ends = np.where(random.random(n) < 0.3, random.integers(200, size=n).astype(str), "end")
                texts = np.char.add(np.char.add(np.where(repeats, "zz ", ""), said), ends)
                facts = {"system": f"s{number}", "utterance": np.arange(n), "unit": "word", "language": "fr"}
                texts_of = {
                    "reference_normalized": np.char.add(np.char.add("zz ", said), "end"),
                    "hypothesis_normalized": texts,
                }
                errors = (texts != texts_of["reference_normalized"]).astype(int)
                parts.append(pd.DataFrame({**facts, **texts_of, "errors": errors}))
            found = find_followers(pd.concat(parts, ignore_index=True), "utterance").systems
            called = set(found.loc[found["follows"], "system"])
            power = {"(power: the follower is found)": "s0" in called} if follows > 0.03 else {}
            yield {"called a follower": bool(called - ({"s0"} if power else set())), **power}

    return run


def of_better(systems: int, n: int) -> Line:
    """Systems that often make the same slip of a hard word, and one that seldom does; all references are right."""
    from speechlab.evaluate._audit.followers import find_followers

    def run(seeds: range) -> Iterator[Found]:
        said = np.array([f"a b {row} " for row in range(n)])
        for seed in seeds:
            random, parts = np.random.default_rng(seed), []
            for number in range(systems):
                slips = random.random(n) < (0.2 if number == 0 else 0.6)
                facts = {"system": f"s{number}", "utterance": np.arange(n), "unit": "word", "language": "fr"}
                texts = np.char.add(said, np.where(slips, "and", "end"))
                facts |= {"reference_normalized": np.char.add(said, "end"), "hypothesis_normalized": texts}
                parts.append(pd.DataFrame({**facts, "errors": slips.astype(int)}))
            found = find_followers(pd.concat(parts, ignore_index=True), "utterance").systems
            yield {"called a follower": bool(found["follows"].any())}

    return run


EVEN, FEW, MANY = np.repeat(np.arange(12), 8), np.repeat(np.arange(8), 10), np.repeat(np.arange(20), 5)
FOUR = np.repeat(np.arange(4), 20)
UNEVEN = np.repeat(np.arange(12), [60, 30, 15, 8, 8, 4, 4, 2, 2, 1, 1, 1])
LINES: dict[str, Line] = {
    **{f"compare, {n} utterances": of_compare(lambda random, n=n: alike(random, 2, n)) for n in (5, 20, 50)},
    **{
        f"compare, 40 utterances that suit the systems differently (sd {sd})": of_compare(
            lambda random, sd=sd: suited(random, 2, 40, sd)
        )
        for sd in (0.3, 0.6)
    },
    "compare, 40 utterances, some wholly wrong": of_compare(lambda random: bursts(random, 2, 40)),
    **{
        f"compare, groups: {name} speakers (sd {sd})": of_groups(speakers, sd)
        for name, speakers in (("8", FEW), ("20", MANY), ("12 uneven", UNEVEN))
        for sd in (0.0, 0.3, 0.6)
    },
    "compare, 3 systems, 40 utterances": of_several(3, None),
    "compare, 5 systems, 40 utterances": of_several(5, None),
    "compare, 3 systems, groups: 12 speakers": of_several(3, EVEN),
    "compare, 5 systems, groups: 12 uneven speakers": of_several(5, UNEVEN),
    **{f"rank, {count} systems, {n} utterances": of_rank(count, n) for count in (2, 4) for n in (6, 20, 50)},
    **{
        f"attribute, voices of engines {engines}, {n} utterances, {rate:.0%} slips": of_attribute(
            engines, rate, n
        )
        for engines, rate, n in (
            ("AAABB", 0.08, 20),
            ("AAABB", 0.02, 20),
            ("AAAABBBB", 0.08, 20),
            ("AABB", 0.01, 20),
            ("AAAAAABBBBBB", 0.2, 10),
        )
    },
    "intervals, 8 speakers": of_intervals(FEW),
    "intervals, 20 speakers": of_intervals(MANY),
    "intervals, 12 uneven speakers": of_intervals(UNEVEN),
    **{
        f"intervals, {n} utterances, {name}": of_utterances(lambda random, n=n, make=make: make(random, 2, n))
        for n in (10, 20, 50, 100, 200)
        for name, make in (
            ("words wrong one by one", alike),
            ("of unequal difficulty (log sd 1)", lambda random, systems, n: suited(random, systems, n, 1.0)),
            ("one in 20 wholly wrong", bursts),
            ("one in 50 wholly wrong", lambda random, systems, n: bursts(random, systems, n, 0.02)),
        )
    },
    **{
        f"compare_translations, {systems} systems, {n} sentences{blocks}": of_translations(
            systems, n, documents, "randomization"
        )
        for systems, n, documents, blocks in (
            (2, 6, None, ""),
            (2, 40, None, ""),
            (4, 40, None, ""),
            (2, 40, 10, ", groups: 10 documents"),
            (4, 40, 10, ", groups: 10 documents"),
        )
    },
    **{
        f"intervals of differences of translations, {n} sentences{blocks}": of_translation_intervals(
            n, documents
        )
        for n, documents, blocks in (
            (6, None, ""),
            (10, None, ""),
            (20, None, ""),
            (40, None, ""),
            (100, 20, ", groups: 20 documents"),
        )
    },
    "compare_translations, 2 systems, 40 sentences, bootstrap": of_translations(2, 40, None, "bootstrap"),
    "study of recognition, 2 systems, 40 recordings": of_recognition(2, None),
    "study of recognition, 2 systems, 30 recordings, 10 of them twice": of_recognition(2, None, 30, 10),
    "study of recognition, 2 systems, 8 speakers of 10 recordings": of_recognition(2, FEW),
    "study of recognition, 4 systems, 12 speakers of 8 recordings": of_recognition(4, EVEN),
    **{
        f"study of recognition, a system fails on its rows of {least} errors in 10 or more": in_bad_weather(
            losing_hard_rows(least)
        )
        for least in (2, 3)
    },
    "study of recognition, 4 speakers of 20 recordings": in_bad_weather(clear, FOUR),
    "study of recognition, 6 texts, each ten times": in_bad_weather(each_row_ten_times, None, 6),
    "study of recognition, 20 texts, each ten times": in_bad_weather(each_row_ten_times, None, 20),
    "study of recognition, one row with 200 words too many": in_bad_weather(one_runaway_row),
    **{
        f"study of recognition, a service worsens from 3 to 15% at call 40 of 80, {calls} at once": of_drift(
            40, 40, calls
        )
        for calls in (1, 16)
    },
    "study of voices, one fails on its sentences of 4 errors in 30 or more": of_failing_voices(20, 4),
    **{
        f"no worse, {n} utterances, {name}": of_no_worse(lambda random, n=n, make=make: make(random, n))
        for n in (20, 100, 500)
        for name, make in (
            ("words wrong one by one", at_margin),
            ("that suit the systems differently (sd 0.6)", lambda random, n: at_margin(random, n, 0.6)),
            ("one in 97 wholly wrong", bursts_at_margin),
        )
    },
    "no worse, 20 speakers of 5 utterances": of_no_worse(
        lambda random: at_margin(random, 0, 0.5, MANY), MANY
    ),
    **{
        f"no worse, translations of {n} texts, {name}": of_no_worse_translators(n, deviation, wholly=wholly)
        for n in (20, 100, 500)
        for name, deviation, wholly in (
            ("words wrong one by one", 0.0, False),
            ("that suit the systems differently (sd 0.6)", 0.6, False),
            ("some wholly wrong", 0.0, True),
        )
    },
    "audit, 6 equal systems, 600 utterances": of_audit(6, 600),
    "audit, 6 equal systems, 600 wrong references": of_followers(6, 600, 0.03),
    "audit, 5 systems slip alike on 60% of 600 hard words, a better one on 20%": of_better(6, 600),
    **{
        f"audit, a system has {follows:.0%} of 600 wrong references, 5 others 3%": of_followers(
            6, 600, follows
        )
        for follows in (0.1, 0.2)
    },
    "conditions, 2 beside the recordings, 8 speakers of 10 recordings": of_conditions(FEW),
    "best and worst of 2 voices, 20 sentences": of_ends(2, 20),
    "best and worst of 6 voices, 20 sentences": of_ends(6, 20),
    "changes of a recognizer, 40 recordings": of_changes(None),
    "changes of a recognizer, 30 recordings, 10 of them twice": of_changes(None, 30, 10),
    "changes of a recognizer, 8 speakers of 10 recordings": of_changes(FEW),
    "changes of a recognizer, 4 speakers of 20 recordings": of_changes(FOUR),
    "study of translation, 2 systems, 40 texts": of_translation_study(2, 40, 0),
    "study of translation, 4 systems, 30 texts, 10 of them twice": of_translation_study(4, 30, 10),
    "study of translation, a system fails on its texts of 3 errors in 10 or more": of_translation_study(
        2, 40, 0, losing_hard_rows(3)
    ),
    "study of translation, 20 texts, each ten times": of_translation_study(2, 20, 0, each_row_ten_times),
    "listening test, MOS of 2 systems, 12 listeners, 20 items": of_listening("mos", 12, 20, 2),
    "listening test, MOS of 4 systems, 8 listeners, 12 items": of_listening("mos", 8, 12, 4),
    "listening test, A/B, 12 listeners, 20 items": of_listening("ab", 12, 20),
    "listening test, ABX, 12 listeners, 20 items": of_listening("abx", 12, 20),
    "listeners of A/B who choose one system in 92% of 20 items": of_accusations("ab", 0.92),
    "listeners of A/B who choose either system": of_accusations("ab", 0.5),
    "listeners of ABX who are right in 95% of 20 items": of_accusations("abx", 0.95),
    "power: recognition, errors halved, 40 recordings": of_recognition(2, None, halved=True),
    "power: recognition, errors halved, 100 recordings": of_recognition(2, None, 100, halved=True),
    "power: recognition, errors halved, 8 speakers of 10 recordings": of_recognition(2, FEW, halved=True),
    "power: changes, errors halved, 40 recordings": of_changes(None, halved=True),
    "power: best and worst of 2 voices, errors halved, 20 sentences": of_ends(2, 20, halved=True),
    "power: translation, errors halved, 40 texts": of_translation_study(2, 40, 0, halved=True),
    "power: listening test, MOS 0.5 apart, 12 listeners, 20 items": of_listening(
        "mos", 12, 20, 2, better=0.5
    ),
}
TABLES = {
    "no worse": ("no worse, ",),
    "intervals": tuple(f"intervals, {n} utterances" for n in (10, 20, 50, 100, 200)),
    "speakers": tuple(f"intervals, {which} speakers" for which in ("8", "20", "12 uneven")),
}
"""The tables of docs/statistics.md, and the beginnings of their lines."""
DOCUMENT = Path(__file__).parents[1] / "docs" / "statistics.md"


def main() -> int:
    """Run the lines that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of lines; all without")
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the first simulation; the next has the next"
    )
    parser.add_argument("--write", action="store_true", help="write the tables of docs/statistics.md")
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.simulations)
    shares: dict[str, dict[str, float]] = {}
    for title, run in LINES.items():
        if asked.names and not title.startswith(tuple(asked.names)):
            continue
        shares[title] = pd.DataFrame(list(run(seeds))).mean().to_dict()
        print(
            f"{title}: {', '.join(f'{name} {100 * share:.1f}%' for name, share in shares[title].items())}",
            flush=True,
        )
    if asked.write:
        DOCUMENT.write_text(rewritten(DOCUMENT.read_text(encoding="utf-8"), shares, asked.simulations))
    return 0


def rewritten(text: str, shares: dict[str, dict[str, float]], simulations: int) -> str:
    """The document with the tables whose lines were all run."""
    for table, beginnings in TABLES.items():
        lines = [title for title in LINES if title.startswith(beginnings)]
        if set(lines) <= set(shares):
            made = markdown({title: shares[title] for title in lines}, simulations)
            marked = rf"(<!-- verdicts: {table} -->\n).*?(<!-- end -->)"
            text, count = re.subn(
                marked, lambda found, made=made: f"{found[1]}{made}{found[2]}", text, flags=re.DOTALL
            )
            if not count:
                raise SystemExit(f"{DOCUMENT} has no place for the table {table!r}")
    return text


def markdown(shares: dict[str, dict[str, float]], simulations: int) -> str:
    """A table with a row for each line."""
    names = list(dict.fromkeys(name for line in shares.values() for name in line))
    rows = [f"| simulated {simulations:,} times | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for title, line in shares.items():
        cells = [f"{100 * line[name]:.1f}%" if name in line else "" for name in names]
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
