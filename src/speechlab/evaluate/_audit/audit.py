"""An audit of published predictions: groups that can be told apart, ranks that are chance, wrong references."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from speechlab._arguments import build_argument_error
from speechlab._brief import shorten_tracebacks
from speechlab._pandas import pd
from speechlab.display import format_count, join_with_and
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._audit.reading import read_predictions
from speechlab.evaluate._report import Report
from speechlab.evaluate._writing.columns import (
    View,
    build_count_column,
    build_interval_column,
    build_rate_column,
    build_text_column,
)
from speechlab.evaluate._writing.contents import Conclusion, Contents, Finding
from speechlab.evaluate._writing.methods import describe_methods
from speechlab.metrics import compute_sign_flip_p, compute_utterances_needed, error_rate, judge

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEVEL = 0.05
ALL = "all sets"
# Suspected references below which nobody is said to follow them; how much more than others, and how often at least.
_MIN_SUSPECTS, _TIMES, _LEAST = 50, 2.0, 0.02


class _Scores(NamedTuple):
    """Errors and normalized texts of the utterances that all systems have: one row for each system."""

    systems: list[str]
    sets: NDArray[np.object_]
    errors: NDArray[np.int64]
    lengths: NDArray[np.int64]
    references: NDArray[np.object_]
    hypotheses: NDArray[np.object_]
    unit: str
    excluded: int


@shorten_tracebacks
def audit(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    language: str = "en",
    normalize: str = "auto",
    title: str = "Audit",
) -> Report:
    """Say of published predictions which ranks hold and which are chance, and who follows the wrong references.

    All pairs of systems are compared by the exact paired test over the utterances that all have, for all sets
    together and for each of them, corrected by Holm's method. A reference is suspected where more than half of the
    other systems agree on another text; a system that has the suspected reference much more often than others
    follows it.

    Args:
        source: A folder of files by system and set (``system/set.csv``), or files: CSV or JSON lines with ``text``
            and ``pred_text`` or ``hypothesis``; those of the Open ASR leaderboard, which name system and set
            (``MODEL_…_DATASET_….jsonl``); and reports of several recognizers.
        language: The language of the texts.
        normalize: As for :func:`speechlab.metrics.error_rate`, such as ``"open-asr"``.
        title: Title of the report.

    Returns:
        A report: ``summary`` has the systems with their ``rank``, ``group`` (a number), the ranks that chance could
        give them (``rank_low`` to ``rank_high``), ``needed`` (utterances that would show the difference from the
        rank before), ``followed`` (share of suspected references that it has, with an interval) and ``follows``;
        ``differences`` has all pairs, by set.

    Raises:
        InvalidRequestError: A file cannot be read or lacks a column; or two systems or more have no utterance in
            common.
    """
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise build_argument_error("source", source, "a folder, a file, or a list of them")
    return audit_predictions(read_predictions([Path(path) for path in paths]), language, normalize, title)


def audit_predictions(table: pd.DataFrame, language: str, normalize: str, title: str) -> Report:
    """Return the audit of predictions that were read."""
    scores = _score(table, language, normalize)
    order = np.argsort(_compute_rates(scores), kind="stable")
    scores = scores._replace(
        systems=[scores.systems[place] for place in order],
        errors=scores.errors[order],
        hypotheses=scores.hypotheses[order],
    )
    return Report.of(_build_audit_report(title, scores, language))


def _compute_rates(scores: _Scores) -> NDArray[np.float64]:
    rates: NDArray[np.float64] = scores.errors.sum(axis=1) / max(int(scores.lengths.sum()), 1)
    return rates


def _score(table: pd.DataFrame, language: str, normalize: str) -> _Scores:
    """Score the utterances that all systems have with the same reference, all systems in one order of rows."""
    systems = list(dict.fromkeys(table["system"].astype(str)))
    if len(systems) < 2:
        message = (
            f"there is nothing to compare among {format_count(len(systems), 'system')}; give two or more"
        )
        raise InvalidRequestError(message, parameter="source")
    whole = table.dropna(subset=["text", "hypothesis"]).drop_duplicates(["system", "set", "utterance"])
    keys = whole.groupby(["set", "utterance"], sort=False)
    same = keys["system"].transform("nunique") == len(systems)
    same &= keys["text"].transform("nunique") == 1
    rows = whole[same]
    excluded = len(whole[["set", "utterance"]].drop_duplicates()) - len(rows) // len(systems)
    if not len(rows):
        message = f"no utterance is in all {len(systems)} systems with the same reference; give fewer systems"
        raise InvalidRequestError(message, parameter="source")
    parts = [
        part.sort_values(["set", "utterance"], kind="stable")
        for _, part in rows.groupby("system", sort=False)
    ]
    systems = [str(part["system"].iloc[0]) for part in parts]
    errors, lengths, texts, unit = [], np.array([]), [], ""
    references: list[str] = []
    for part in parts:
        rate = error_rate(
            part["text"].tolist(), part["hypothesis"].tolist(), language=language, normalize=normalize
        )
        errors.append(rate.errors_by_utterance)
        lengths, unit = rate.lengths_by_utterance, rate.unit
        references = references or [" ".join(tokens) for tokens in rate.references]
        texts.append([" ".join(tokens) for tokens in rate.hypotheses])
    sets = parts[0]["set"].to_numpy(dtype=object)
    spoken = np.array(references, dtype=object)
    return _Scores(
        systems, sets, np.array(errors), lengths, spoken, np.array(texts, dtype=object), unit, excluded
    )


def _compare_pairs(scores: _Scores) -> pd.DataFrame:
    """Return all pairs, over all sets and for each; each has a family of its own."""
    rows = []
    sets = list(dict.fromkeys(scores.sets))
    for name in [ALL, *(sets if len(sets) > 1 else [])]:
        here = np.full(len(scores.sets), True) if name == ALL else scores.sets == name
        errors, length = scores.errors[:, here], max(int(scores.lengths[here].sum()), 1)
        pairs = combinations(range(len(scores.systems)), 2)
        for one, other in pairs:
            change = errors[other] - errors[one]
            values = errors[one].sum() / length, errors[other].sum() / length
            rows.append(
                {
                    "a": scores.systems[one],
                    "b": scores.systems[other],
                    "condition": name,
                    "measure": "error rate",
                    "unit": scores.unit,
                    "n": int(here.sum()),
                    "value_a": values[0],
                    "value_b": values[1],
                    "difference": values[1] - values[0],
                    "p": compute_sign_flip_p(change),
                    "test": "sign-flip by utterance",
                }
            )
    return judge(rows, by="condition")


def _build_summary(scores: _Scores, differences: pd.DataFrame) -> pd.DataFrame:
    """Return the systems in order, with their groups and the ranks that chance could give them."""
    names = scores.systems
    whole = differences[differences["condition"] == ALL]
    shown = whole[(whole["p_holm"] < _LEVEL) & (whole["difference"] != 0)]
    apart = {frozenset(map(str, pair)) for pair in shown[["a", "b"]].to_numpy().tolist()}
    groups: list[int] = []
    leader = 0
    for place, name in enumerate(names):
        if frozenset((names[leader], name)) in apart:
            leader = place
            groups.append(groups[-1] + 1)
        else:
            groups.append(groups[-1] if groups else 1)
    lows, highs = [], []
    for place, name in enumerate(names):
        tied = [
            at for at, other in enumerate(names) if other == name or frozenset((other, name)) not in apart
        ]
        # Behind the last one that is significantly better, before the first that is significantly worse.
        better = [at for at in range(place) if at not in tied]
        worse = [at for at in range(place + 1, len(names)) if at not in tied]
        lows.append(max(better, default=-1) + 2)
        highs.append(min(worse, default=len(names)))
    alpha = _LEVEL / max(len(whole), 1)
    needed = [
        None
        if not place
        else compute_utterances_needed(scores.errors[place] - scores.errors[place - 1], alpha, 0.8)
        for place in range(len(names))
    ]
    frame = pd.DataFrame(
        {
            "rank": range(1, len(names) + 1),
            "system": pd.array(names, dtype="string"),
            "utterances": scores.errors.shape[1],
            "errors": scores.errors.sum(axis=1),
            "error_rate": _compute_rates(scores),
            "group": groups,
            "rank_low": lows,
            "rank_high": highs,
            "needed": pd.array(needed, dtype="Int64"),
        }
    )
    return frame.merge(_find_followers(scores), on="system", how="left")


def _find_followers(scores: _Scores) -> pd.DataFrame:
    """Return how often each system has a reference against which most others agree, and whether it follows them."""
    rows, level = [], 1 - _LEVEL / len(scores.systems)
    for place, name in enumerate(scores.systems):
        others = np.delete(scores.hypotheses, place, axis=0)
        follows = others_follow = count = others_count = 0
        for column in np.flatnonzero((others != scores.references).mean(axis=0) > 0.5):
            texts, times = np.unique(others[:, column].astype(str), return_counts=True)
            best, reference = texts[times.argmax()], scores.references[column]
            if times.max() * 2 <= len(others) or best == reference:
                continue
            agreeing = int(times.max())
            following = int((others[:, column] == reference).sum())
            others_follow, others_count = others_follow + following, others_count + following + agreeing
            if scores.hypotheses[place, column] in {best, reference}:
                count += 1
                follows += scores.hypotheses[place, column] == reference
        share, usual = follows / max(count, 1), others_follow / max(others_count, 1)
        low, high = _compute_wilson(follows, count, level)
        is_follower = count >= _MIN_SUSPECTS and low > max(_TIMES * usual, _LEAST)
        facts = {"suspects": count, "followed": share if count else math.nan, "followed_low": low}
        rows.append({"system": name, **facts, "followed_high": high, "usual": usual, "follows": is_follower})
    return pd.DataFrame(rows).astype({"system": "string"})


def _compute_wilson(hits: int, count: int, level: float) -> tuple[float, float]:
    """Return the interval of a share (E. B. Wilson, 1927)."""
    if not count:
        return math.nan, math.nan
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = hits / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _list_tied_runs(summary: pd.DataFrame) -> list[tuple[int, int]]:
    """Return from each rank on the longest run of ranks of which no two differ."""
    lowest = summary["rank_low"].tolist()
    runs = []
    for first in range(1, len(lowest) + 1):
        last = first
        while last < len(lowest) and lowest[last] <= first:
            last += 1
        runs.append((first, last))
    return runs


def _describe_audit(summary: pd.DataFrame) -> str:
    """Return the first sentence: how many groups can be told apart, and which ranks are chance."""
    count, groups = len(summary), int(summary["group"].max())
    if groups == 1:
        return f"None of {count} systems can be told apart."
    told = f"Of {count} systems {groups} groups can be told apart"
    low, high = max(_list_tied_runs(summary), key=lambda span: span[1] - span[0])
    return f"{told}; rank {low} to {high} is chance." if high > low else f"{told}; every rank holds."


def _build_audit_report(title: str, scores: _Scores, language: str) -> Contents:
    differences = _compare_pairs(scores)
    summary = _build_summary(scores, differences)
    sets = differences["condition"].drop_duplicates().tolist()[1:]
    whole = differences[differences["condition"] == ALL]
    shown = int((whole["p_holm"] < _LEVEL).sum())
    count = format_count(scores.errors.shape[1], "utterance")
    certainty = f"{shown} of {len(whole)} pairs differ on {count} that all have (exact paired test, Holm)."
    findings = [
        Finding(f"{row['system']} follows references that are likely wrong: it has {row['followed']:.0%} of "
                f"{row['suspects']}, against which most others agree ({row['followed_low']:.0%} to "
                f"{row['followed_high']:.0%}); others have {row['usual']:.0%}.", language, systems=(row["system"],))
        for row in summary.to_dict("records")
        if row["follows"]
    ]  # fmt: skip
    for name in sets:
        part = differences[(differences["condition"] == name) & (differences["p_holm"] < _LEVEL)]
        words = f"{name}: {len(part)} of {len(whole)} pairs differ."
        findings.append(Finding(words, language, name, shown="method"))
    left_out = f"{format_count(scores.excluded, 'utterance')} that not all have with one reference: left out."
    notes = [left_out] if scores.excluded else []
    empty = (scores.hypotheses == "").sum(axis=1)
    notes += [f"{name}: {count:,} empty." for name, count in zip(scores.systems, empty, strict=True) if count]
    columns = [
        build_count_column("rank", "rank"),
        build_text_column("system", "system", strong=True),
        build_rate_column("error rate", "error_rate"),
        build_count_column("group", "group"),
        build_interval_column("rank_low", "rank_high", ".0f")._replace(head="ranks"),
        build_count_column("settled by", "needed"),
        build_rate_column("wrong references followed", "followed", optional=True),
    ]
    note = (
        "Systems of one group cannot be told from its first. Settled by: utterances that would show the difference "
        f"from the rank before in four of five samples. Sets: {join_with_and(sorted(set(scores.sets)))}."
    )
    return Contents(
        title,
        summary,
        summary,
        Conclusion(_describe_audit(summary), certainty),
        "audit",
        findings=tuple(findings),
        notes=tuple(notes),
        differences=differences,
        views=(View.from_rows("Ranks", columns, summary, note),),
        said=describe_methods(title, "sign-flip", "holm"),
    )
