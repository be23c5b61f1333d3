"""Cheaper systems that are no worse than a dearer one: tests of non-inferiority within a margin.

A cheaper system is *no worse* if it loses less than the margin to the dearer one, beyond chance: errors, or chrF. The
test is Student's t of what it loses in each block beyond the margin, corrected for skewness (P. Hall, On the removal
of skewness by transformation, 1992). As in the intervals of rates, a third of one more utterance, which the cheaper
system alone has wholly wrong, counts with the sample: what seldom happens may be missing in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from speechlab._arguments import is_missing
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
    1 / 2: "half",
    1 / 3: "a third of",
    1 / 4: "a quarter of",
    1 / 5: "a fifth of",
    1 / 10: "a tenth of",
}
COLUMNS = {
    **dict.fromkeys(("language", "condition", "a", "b"), "string"),
    **dict.fromkeys(("price_ratio", "difference", "margin", "bound", "p", "p_holm"), "float64"),
    **dict.fromkeys(("blocks", "needed"), "Int64"),
    **dict.fromkeys(("unit", "untested"), "string"),
    "no_worse": "boolean",
}


class Losses(NamedTuple):
    """Hold what a cheaper system loses to a dearer one: errors more, or pseudo-values of chrF less (fractions)."""

    values: NDArray[np.float64]  # by block
    sizes: NDArray[np.float64]  # tokens of each block; of chrF, 1
    row_size: float
    worst: float = 1.0  # what a wholly wrong row loses for each unit of its size


class Contest(NamedTuple):
    """Hold what the systems of one place lose in each block: errors, or what their chrF lacks (fractions)."""

    names: Sequence[str]
    p_values: Sequence[float]  # of their differences
    lost: pd.DataFrame  # of those that are tested, by block
    sizes: NDArray[np.float64]
    rows: float  # of each system
    unit: str  # that of the margin
    untested: Mapping[str, str]  # why a system is not tested; below an empty name, why none is

    def measure_losses(self, dear: str, cheap: str, margin: float) -> Losses | str:
        """Return what the cheaper system loses, or why it is not tested."""
        few = f"{format_count(len(self.lost), 'block')}, and it takes {ENOUGH}"
        why = [self.untested[name] for name in (cheap, dear, "") if name in self.untested]
        if why or len(self.lost) < ENOUGH:
            return why[0] if why else few
        one, other = (self.lost[name].to_numpy(dtype=np.float64) for name in (dear, cheap))
        worst = 1 - float(one.mean()) if self.unit == CHRF else 1.0
        if worst <= margin:
            return "nobody could lose more than the margin"
        return Losses(other - one, self.sizes, float(self.sizes.sum() / self.rows), worst)


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
    contests: Mapping[Place, Contest], prices: Mapping[str, float], margin: float, baseline: str = ""
) -> pd.DataFrame:
    """Return of each cheaper system whether it is no worse than a dearer one, or than the one in use.

    P-values are corrected by Holm's method, together with those of the differences of the systems.
    """
    rows: list[dict[str, Any]] = []
    tests: list[tuple[dict[str, Any], Losses]] = []
    for (code, condition), contest in contests.items():
        for dear, cheap in permutations([name for name in contest.names if name in prices], 2):
            if prices[cheap] < prices[dear] and baseline in {"", dear}:
                place = {
                    "language": code,
                    "condition": condition,
                    "a": dear,
                    "b": cheap,
                    "unit": contest.unit,
                }
                facts = {"price_ratio": prices[cheap] / prices[dear], "margin": margin / 100}
                rows.append({**place, **facts, "blocks": len(contest.lost), "no_worse": False})
                losses = contest.measure_losses(dear, cheap, margin / 100)
                if isinstance(losses, str):
                    rows[-1]["untested"] = losses
                else:
                    tests.append((rows[-1], losses))
    others = [p for contest in contests.values() for p in contest.p_values]
    p_values = [compute_no_worse_p(losses, margin / 100) for _, losses in tests]
    for (row, losses), p, p_holm in zip(tests, p_values, holm([*p_values, *others]), strict=False):
        row |= {"p": p, "p_holm": p_holm, "no_worse": bool(p_holm < _LEVEL)}
        row["difference"] = losses.values.sum() / losses.sizes.sum()
        row["bound"] = _compute_bound(losses)
        row["needed"] = _count_needed(losses, margin / 100, len(tests) + len(others))
    return pd.DataFrame(rows, columns=[*COLUMNS]).astype(COLUMNS)


def build_contest(known: AnswerEvidence, scores: pd.DataFrame, system: str, item: str) -> Contest:
    """Return what the systems of an order lose, by their scored rows; those that failed on rows are not tested."""
    names = known.order.systems["system"].tolist()
    untested = describe_failed_rows(known.failed, known.counts)
    untested |= {"": f"this is about {known.about} alone"} if known.about else {}
    rows = scores[scores["errors"].notna() & scores[system].isin({*names} - {*untested})]
    block = BLOCK if BLOCK in rows.columns else item
    sums = [
        rows.pivot_table(name, block, system, "sum", observed=True) for name in ("errors", "reference_length")
    ]
    lost, sizes = sums[0].dropna(), sums[1].dropna().mean(axis="columns").to_numpy(dtype=np.float64)
    unit, p_values = str(known.order.systems["unit"].iloc[0]), known.order.pairs["p"].dropna().tolist()
    return Contest(names, p_values, lost, sizes, len(rows) / max(rows[system].nunique(), 1), unit, untested)


def describe_failed_rows(failed: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, str]:
    """Return of each system that failed on rows that it did so."""
    return {
        name: f"{quote_name(name)} failed on {count} of {counts[name]}"
        for name, count in failed.items()
        if count
    }


def _describe_price(ratio: float) -> str:
    for share, words in _SHARES.items():
        if abs(ratio / share - 1) <= 0.03:
            return f"at {words} the price"
    return f"at {ratio:.0%} of the price" if ratio >= 0.01 else "at less than a hundredth of the price"


def _describe_claim(row: Mapping[Any, Any]) -> str:
    """Return what it is to be no worse, behind the name of the cheaper system."""
    number, dear = f"{100 * row['margin']:g}", quote_name(row["a"])
    s = "" if number == "1" else "s"
    if row["unit"] == CHRF:
        words = f"is at most {number} point{s} of chrF below {dear}"
    else:
        unit = {"word": "words", "char": "characters", "reading": "kana"}.get(str(row["unit"]), "tokens")
        words = f"makes at most {number} error{s} in 100 {unit} more than {dear}"
    return f"{words} (95%), {_describe_price(row['price_ratio'])}"


def build_price_findings(tests: pd.DataFrame, label: str = "recording") -> tuple[Finding, ...]:
    """Return what the tests show, and why something is not shown, each as a finding."""
    findings = []
    for row in tests.to_dict("records"):
        claim = f"{quote_name(row['b'])} {_describe_claim(row)}"
        numbers = {name: row[name] for name in ("margin", "bound", "p_holm", "price_ratio", "needed")}
        if row["no_worse"]:
            words = f"{claim}: {describe_p_value(row['p_holm'])}."
        elif not is_missing(row["untested"]):
            words = f"That {claim}, was not tested: {row['untested']}."
        else:
            words = f"That {claim}, is not shown ({describe_p_value(row['p_holm'])})"
            if not is_missing(row["needed"]) and row["needed"] > row["blocks"]:
                needed = format_needed(row["needed"])
                words += f"; if nothing changes, {needed} {label}s would show it in four of five studies"
            words += "."
        where = ", ".join(filter(None, (row["language"], row["condition"])))
        code = row["language"].rpartition(" ")[2]  # of a direction, that of its target
        place = (code, row["condition"], (row["a"], row["b"]))
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
                words = f"it {_describe_claim(shown[rivals[0], name])}"
                return replace(
                    advice, name=name, lead=Lead("take", (name,)), clauses=(words, advice.words), more=None
                )
    cheaper = [row for (dear, _), row in shown.items() if dear == advice.name]
    if not cheaper:
        return advice
    best = min(cheaper, key=lambda row: row["price_ratio"])
    words = f"{quote_name(best['b'])} {_describe_claim(best)}"
    return replace(advice, clauses=(advice.words, words))
