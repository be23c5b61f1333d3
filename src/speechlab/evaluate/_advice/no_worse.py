"""Cheaper systems that are no worse than a dearer one: tests of non-inferiority within a margin.

A cheaper system is *no worse* if its error rate exceeds the dearer one's by less than the margin, or its chrF lies
below the other's by less, beyond chance. The test is Student's t of what it loses in each block beyond the margin,
corrected for skewness (P. Hall, On the removal of skewness by transformation, 1992). As in the intervals of rates, a
third of one more utterance, which the cheaper system alone has wholly wrong, counts with the sample: what seldom
happens may be missing in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._pandas import pd
from speechlab.display import format_count
from speechlab.evaluate._advice.advice import Lead
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._writing.columns import describe_p_value
from speechlab.evaluate._writing.contents import Finding
from speechlab.evaluate._writing.differences import CHRF, ENOUGH, format_needed
from speechlab.evaluate._writing.sentences import quote_name
from speechlab.metrics import compute_student_p, holm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.evaluate._advice.advice import Advice
    from speechlab.evaluate._advice.evidence import AnswerEvidence

    Place = tuple[str, str]  # language and condition

_LEVEL = 0.05
# Weight of the utterance that a sample may lack (docs/statistics.md).
_UNSEEN_WEIGHT = 1 / 3
# Power of the number of blocks that is named as needed.
_POWER = 0.8
# What a share of a price is called, within 3% of it.
_SHARES = {
    0.5: "half the price",
    2 / 3: "two thirds of the price",
    1 / 3: "a third of the price",
    0.25: "a quarter of the price",
    0.2: "a fifth of the price",
    0.1: "a tenth of the price",
}
COLUMNS = {
    **dict.fromkeys(("language", "condition", "a", "b"), "string"),
    "blocks": "Int64",
    **dict.fromkeys(("difference", "margin", "bound", "p", "p_holm", "price_ratio"), "float64"),
    "no_worse": "boolean",
    "needed": "Int64",
    **dict.fromkeys(("unit", "untested"), "string"),
}


class Losses(NamedTuple):
    """What a cheaper system loses to a dearer one on the rows that both have.

    Attributes:
        values: Errors more, or pseudo-values of chrF less, in each block.
        sizes: The tokens of each block; of chrF, 1.
        row_size: The mean size of a row.
        worst: What a wholly wrong row loses for each unit of its size.
        unit: That of the margin: a unit of text, or chrF.
        untested: Why there is no test; empty if there is one.
    """

    values: NDArray[np.float64]
    sizes: NDArray[np.float64]
    row_size: float
    worst: float = 1.0
    unit: str = "word"
    untested: str = ""


class Contest(NamedTuple):
    """The systems of one place, p-values of their differences, and what the second of two loses to the first."""

    names: Sequence[str]
    p_values: Sequence[float]
    measure_losses: Callable[[str, str], Losses]


def compute_no_worse_p(losses: Losses, margin: float) -> float:
    """Return the one-sided p-value of the hypothesis that a system loses ``margin`` for each token, or more."""
    statistic = _compute_statistic(losses, margin)
    tail = compute_student_p(statistic, len(losses.values) - 1) / 2
    return tail if statistic < 0 else 1 - tail


def _compute_statistic(losses: Losses, margin: float, times: float = 1.0) -> float:
    """Return Student's t of losses beyond the margin, each of them ``times`` times, with an unseen utterance."""
    beyond = losses.values - margin * losses.sizes
    values = np.append(beyond, losses.row_size * (losses.worst - margin))
    weights = np.append(np.full(len(beyond), times), _UNSEEN_WEIGHT)
    total = float(weights.sum())
    centered = values - float(weights @ values) / total
    deviation = math.sqrt(float(weights @ centered**2) / total * len(beyond) / (len(beyond) - 1))
    ratio = float(weights @ values) / total / deviation
    skewness = float(weights @ centered**3) / total / deviation**3
    # Hall's transformation, which is monotone.
    corrected = ratio + skewness * ratio**2 / 3 + skewness**2 * ratio**3 / 27 + skewness / (6 * total)
    return math.sqrt(total) * corrected


def _count_needed(losses: Losses, margin: float, tests: int) -> Any:
    """Return with how many blocks like these the test would show it in four of five studies; missing if too many."""
    quantiles = NormalDist().inv_cdf(1 - _LEVEL / tests) + NormalDist().inv_cdf(_POWER)
    for times in np.geomspace(0.1, 1_000, 185):  # steps of 5%
        if _compute_statistic(losses, margin, float(times)) < -quantiles:
            return math.ceil(times * len(losses.values))
    return pd.NA


def _compute_bound(losses: Losses) -> float:
    """Return the smallest margin that the test shows at 5%: the upper end of a one-sided interval of 95%."""
    low, high = -1.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if compute_no_worse_p(losses, middle) < _LEVEL else (middle, high)
    return high


def compare_with_dearer(
    contests: Mapping[Place, Contest], unit_prices: Mapping[str, float], margin: float, baseline: str = ""
) -> pd.DataFrame:
    """Return of each cheaper system whether it is no worse than a dearer one, or than the one in use.

    P-values are corrected by Holm's method, together with those of the differences of the systems.
    """
    rows: list[dict[str, Any]] = []
    others: list[float] = []
    measured: list[Losses] = []
    for (code, condition), contest in contests.items():
        names = [name for name in contest.names if name in unit_prices]
        others += contest.p_values
        for dear, cheap in permutations(names, 2):
            if unit_prices[cheap] < unit_prices[dear] and baseline in {"", dear}:
                losses = contest.measure_losses(dear, cheap)
                measured.append(losses)
                ratio = unit_prices[cheap] / unit_prices[dear]
                place = {
                    "language": code,
                    "condition": condition,
                    "a": dear,
                    "b": cheap,
                    "price_ratio": ratio,
                }
                rows.append({**place, **_test_losses(losses, margin / 100)})
    p_holm = holm([*(row["p"] for row in rows), *others])[: len(rows)]
    tests = len(others) + sum(not row["untested"] for row in rows)
    for row, losses, p in zip(rows, measured, p_holm, strict=True):
        needed = pd.NA if row["untested"] else _count_needed(losses, margin / 100, tests)
        row |= {"p_holm": p, "no_worse": bool(p < _LEVEL), "needed": needed}
    return pd.DataFrame(rows, columns=[*COLUMNS]).astype(COLUMNS)


def _test_losses(losses: Losses, margin: float) -> dict[str, Any]:
    """Return the figures of a pair; without a test where rows failed, or there are few."""
    few = f"{format_count(len(losses.values), 'block')}, and it takes {ENOUGH}"
    untested = losses.untested or (few if len(losses.values) < ENOUGH else "")
    if not untested and losses.worst <= margin:
        untested = "nobody could lose more than the margin"
    return {
        "blocks": len(losses.values),
        "difference": float(losses.values.sum() / max(losses.sizes.sum(), 1)),
        "margin": margin,
        "unit": losses.unit,
        "untested": untested,
        "bound": math.nan if untested else _compute_bound(losses),
        "p": math.nan if untested else compute_no_worse_p(losses, margin),
    }


def build_contest(known: AnswerEvidence, scores: pd.DataFrame) -> Contest:
    """Return the systems of an order, with the errors of their scored rows."""
    by_system = {
        str(name): rows.drop_duplicates("recording").set_index("recording")
        for name, rows in scores[scores["errors"].notna()].groupby("system", observed=True)
    }
    order = known.order
    measure = partial(_count_more_errors, known, by_system)
    return Contest(order.systems["system"].tolist(), order.pairs["p"].dropna().tolist(), measure)


def _count_more_errors(
    known: AnswerEvidence, rows: Mapping[str, pd.DataFrame], dear: str, cheap: str
) -> Losses:
    """Return how many errors more the cheaper of two systems makes in each block."""
    one, other = rows[dear], rows[cheap]
    both = one.index.intersection(other.index)
    one, other = one.loc[both], other.loc[both]
    keys = one[BLOCK].to_numpy() if BLOCK in one.columns else both.to_numpy()
    errors = (other["errors"] - one["errors"]).astype("float64")
    lengths = one["reference_length"].astype("float64")
    sums = pd.DataFrame({"errors": errors, "length": lengths}).groupby(keys).sum().to_numpy()
    untested = describe_failed_rows((cheap, dear), known.failed, known.counts)
    if not untested and known.about:
        untested = f"this is about {known.about} alone"
    unit = str(one["unit"].iloc[0]) if len(one) else "word"
    row_length = float(lengths.mean()) if len(lengths) else 0.0
    return Losses(sums[:, 0], sums[:, 1], row_length, unit=unit, untested=untested)


def describe_failed_rows(names: Sequence[str], failed: Mapping[str, int], counts: Mapping[str, int]) -> str:
    """Return that the first of some systems that failed on rows did so; empty if none failed."""
    return next(
        (
            f"{quote_name(name)} failed on {failed[name]} of {counts[name]}"
            for name in names
            if failed.get(name)
        ),
        "",
    )


def _describe_price(ratio: float) -> str:
    for share, words in _SHARES.items():
        if abs(ratio / share - 1) <= 0.03:
            return f"at {words}"
    return f"at {ratio:.0%} of the price" if ratio >= 0.01 else "at less than a hundredth of the price"


def _describe_claim(row: Mapping[Any, Any], *, is_finite: bool = True) -> str:
    """Return what it is to be no worse, behind the name of the cheaper system: ``makes …``, or ``make …``."""
    number, dear = f"{100 * row['margin']:g}", quote_name(row["a"])
    s = "" if number == "1" else "s"
    if row["unit"] == CHRF:
        return f"{'is' if is_finite else 'be'} at most {number} point{s} of chrF below {dear}"
    unit = {"word": "words", "char": "characters", "reading": "kana"}.get(str(row["unit"]), "tokens")
    verb = "makes" if is_finite else "make"
    return f"{verb} at most {number} error{s} in 100 {unit} more than {dear}"


def _describe_no_worse(row: Mapping[Any, Any]) -> str:
    """Return the words for a cheaper system that is no worse, behind its name."""
    return f"{_describe_claim(row)} (95%), {_describe_price(row['price_ratio'])}"


def build_price_findings(tests: pd.DataFrame, label: str = "recording") -> tuple[Finding, ...]:
    """Return what the tests show, and why something is not shown, each as a finding."""
    findings = []
    for row in tests.to_dict("records"):
        cheap, dear = quote_name(row["b"]), quote_name(row["a"])
        numbers = {name: row[name] for name in ("margin", "bound", "p_holm", "price_ratio", "needed")}
        if row["no_worse"]:
            words = f"{cheap} {_describe_no_worse(row)}: {describe_p_value(row['p_holm'])}."
        elif row["untested"]:
            words = f"Whether {cheap} is no worse than {dear} was not tested: {row['untested']}."
        else:
            p = describe_p_value(row["p_holm"])
            claim = _describe_claim(row, is_finite=False)
            words = f"{cheap}, {_describe_price(row['price_ratio'])}, is not shown to {claim} ({p})"
            if not pd.isna(row["needed"]) and row["needed"] > row["blocks"]:
                needed = format_needed(row["needed"])
                words += f"; if nothing changes, {needed} {label}s would show it in four of five studies"
            words += "."
        where = ", ".join(filter(None, (str(row["language"]), str(row["condition"]))))
        code = str(row["language"]).rpartition(" ")[2]  # of a direction, that of its target
        place = (code, str(row["condition"]), (str(row["a"]), str(row["b"])))
        findings.append(
            Finding(f"{where}: {words}", *place, numbers, "page" if row["no_worse"] else "method")
        )
    return tuple(findings)


def apply_prices(advice: Advice, tied: Sequence[str], tests: pd.DataFrame, baseline: str = "") -> Advice:
    """Return the advice on systems, with what it costs less: to take a cheaper system that is no worse.

    Of the systems that are ``tied`` at the top one may be taken that is no worse than all others of them.
    """
    shown = {(row["a"], row["b"]): row for row in tests[tests["no_worse"]].to_dict("records")}
    if advice.certainty == "open":
        for name in dict.fromkeys(cheap for _, cheap in shown):
            rivals = [baseline] if baseline else [other for other in tied if other != name]
            if name in tied and all((rival, name) in shown for rival in rivals):
                words = f"it {_describe_no_worse(shown[rivals[0], name])}"
                lead = Lead("take", (name,))
                return replace(advice, name=name, lead=lead, clauses=(words, advice.words), more=None)
    cheaper = [row for (dear, _), row in shown.items() if dear == advice.name]
    if not cheaper:
        return advice
    best = min(cheaper, key=lambda row: row["price_ratio"])
    words = f"{quote_name(best['b'])} {_describe_no_worse(best)}"
    return replace(advice, clauses=(advice.words, words))
