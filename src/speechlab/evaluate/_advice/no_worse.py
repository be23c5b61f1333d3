"""Cheaper systems that are no worse than a dearer one: tests of non-inferiority within a margin.

A cheaper system is *no worse* if its error rate exceeds the dearer one's by less than the margin, beyond chance. The
test is Student's t of the blocks' errors beyond the margin, corrected for their skewness (P. Hall, On the removal of
skewness by transformation, 1992). As in the bootstrap's intervals, a third of one more utterance, which the cheaper
system alone has wholly wrong, counts with the sample: what seldom happens may be missing in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._pandas import pd
from speechlab.display import format_count
from speechlab.evaluate._advice.advice import Lead
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._writing.columns import describe_p_value
from speechlab.evaluate._writing.contents import Finding
from speechlab.evaluate._writing.differences import ENOUGH, format_needed
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


def compute_no_worse_p(
    differences: NDArray[np.float64], lengths: NDArray[np.float64], margin: float, row_length: float
) -> float:
    """Return the one-sided p-value of the hypothesis that one system has ``margin`` more errors per token, or worse.

    ``differences`` are its errors beyond the other's in each block, ``lengths`` the blocks' tokens, ``row_length``
    those of an utterance.
    """
    statistic = _compute_statistic(differences - margin * lengths, row_length * (1 - margin))
    tail = compute_student_p(statistic, len(differences) - 1) / 2
    return tail if statistic < 0 else 1 - tail


def _compute_statistic(beyond: NDArray[np.float64], unseen: float, times: float = 1.0) -> float:
    """Return Student's t of errors beyond the margin, each of them ``times`` times, with an unseen utterance."""
    values = np.append(beyond, unseen)
    weights = np.append(np.full(len(beyond), times), _UNSEEN_WEIGHT)
    total = float(weights.sum())
    centered = values - float(weights @ values) / total
    deviation = math.sqrt(float(weights @ centered**2) / total * len(beyond) / (len(beyond) - 1))
    ratio = float(weights @ values) / total / deviation
    skewness = float(weights @ centered**3) / total / deviation**3
    # Hall's transformation, which is monotone.
    corrected = ratio + skewness * ratio**2 / 3 + skewness**2 * ratio**3 / 27 + skewness / (6 * total)
    return math.sqrt(total) * corrected


def _count_needed(beyond: NDArray[np.float64], unseen: float, tests: int) -> Any:
    """Return with how many blocks like these the test would show it in four of five studies; missing if too many."""
    quantiles = NormalDist().inv_cdf(1 - _LEVEL / tests) + NormalDist().inv_cdf(_POWER)
    for times in np.geomspace(0.1, 1_000, 185):  # steps of 5%
        if _compute_statistic(beyond, unseen, float(times)) < -quantiles:
            return math.ceil(times * len(beyond))
    return pd.NA


def _compute_bound(
    differences: NDArray[np.float64], lengths: NDArray[np.float64], row_length: float
) -> float:
    """Return the smallest margin that the test shows at 5%: the upper end of a one-sided interval of 95%."""
    low, high = -1.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        shown = compute_no_worse_p(differences, lengths, middle, row_length) < _LEVEL
        low, high = (low, middle) if shown else (middle, high)
    return high


def compare_with_dearer(
    evidence: Mapping[Place, AnswerEvidence],
    scores: Mapping[Place, pd.DataFrame],
    unit_prices: Mapping[str, float],
    margin: float,
    baseline: str = "",
) -> pd.DataFrame:
    """Return of each cheaper system whether it is no worse than a dearer one, or than the one in use.

    P-values are corrected by Holm's method, together with those of the differences of the systems.
    """
    rows, others = [], []
    for (code, condition), known in evidence.items():
        names = [name for name in known.order.systems["system"] if name in unit_prices]
        others += known.order.pairs["p"].dropna().tolist()
        for dear, cheap in permutations(names, 2):
            if unit_prices[cheap] < unit_prices[dear] and baseline in {"", dear}:
                figures = _test_pair(known, scores[code, condition], dear, cheap, margin / 100)
                ratio = unit_prices[cheap] / unit_prices[dear]
                rows.append({"language": code, "condition": condition, **figures, "price_ratio": ratio})
    p_holm = holm([*(row["p"] for row in rows), *others])[: len(rows)]
    tests = len(others) + sum(not row["untested"] for row in rows)
    for row, p in zip(rows, p_holm, strict=True):
        beyond, unseen = row.pop("beyond")
        needed = pd.NA if row["untested"] else _count_needed(beyond, unseen, tests)
        row |= {"p_holm": p, "no_worse": bool(p < _LEVEL), "needed": needed}
    return pd.DataFrame(rows, columns=[*COLUMNS]).astype(COLUMNS)


def _test_pair(
    known: AnswerEvidence, scores: pd.DataFrame, dear: str, cheap: str, margin: float
) -> dict[str, Any]:
    """Return the figures of a pair; without a test where rows failed, or there are few."""
    of = scores.assign(system=scores["system"].astype(str))[scores["errors"].notna()]
    one, other = (
        of[of["system"] == name].drop_duplicates("recording").set_index("recording") for name in (dear, cheap)
    )
    both = one.index.intersection(other.index)
    one, other = one.loc[both], other.loc[both]
    keys = one[BLOCK].to_numpy() if BLOCK in one.columns else both.to_numpy()
    errors = (other["errors"] - one["errors"]).astype("float64")
    lengths = one["reference_length"].astype("float64")
    sums = pd.DataFrame({"errors": errors, "length": lengths}).groupby(keys).sum().to_numpy()
    differences, sizes = sums[:, 0], sums[:, 1]
    figures = {
        "a": dear,
        "b": cheap,
        "blocks": len(sums),
        "difference": float(errors.sum() / max(lengths.sum(), 1)),
        "margin": margin,
        "unit": str(one["unit"].iloc[0]) if len(one) else "word",
        **dict.fromkeys(("bound", "p"), math.nan),
        "untested": _explain_untested(known, dear, cheap, len(sums)),
    }
    row_length = float(lengths.mean()) if len(lengths) else 0.0
    figures["beyond"] = (differences - margin * sizes, row_length * (1 - margin))
    if figures["untested"]:
        return figures
    p = compute_no_worse_p(differences, sizes, margin, row_length)
    return figures | {"p": p, "bound": _compute_bound(differences, sizes, row_length)}


def _explain_untested(known: AnswerEvidence, dear: str, cheap: str, blocks: int) -> str:
    """Return why a pair is not tested; empty if it is."""
    failed = next((name for name in (cheap, dear) if known.failed.get(name)), None)
    if failed is not None:
        return f"{quote_name(failed)} failed on {known.failed[failed]} of {known.counts[failed]}"
    if known.about:
        return f"this is about {known.about} alone"
    return f"{format_count(blocks, 'block')}, and it takes {ENOUGH}" if blocks < ENOUGH else ""


def _describe_price(ratio: float) -> str:
    for share, words in _SHARES.items():
        if abs(ratio / share - 1) <= 0.03:
            return f"at {words}"
    return f"at {ratio:.0%} of the price" if ratio >= 0.01 else "at less than a hundredth of the price"


def _describe_margin(row: Mapping[Any, Any]) -> str:
    number = f"{100 * row['margin']:g}"
    unit = {"word": "words", "char": "characters", "reading": "kana"}.get(str(row["unit"]), "tokens")
    return f"at most {number} error{'' if number == '1' else 's'} in 100 {unit} more"


def _describe_no_worse(row: Mapping[Any, Any]) -> str:
    """Return the words for a cheaper system that is no worse, behind its name."""
    than = quote_name(row["a"])
    return f"makes {_describe_margin(row)} than {than} (95%), {_describe_price(row['price_ratio'])}"


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
            words = f"{cheap}, {_describe_price(row['price_ratio'])}, is not shown to make {_describe_margin(row)} "
            words += f"than {dear} ({p})"
            if not pd.isna(row["needed"]) and row["needed"] > row["blocks"]:
                needed = format_needed(row["needed"])
                words += f"; if nothing changes, {needed} {label}s would show it in four of five studies"
            words += "."
        where = ", ".join(filter(None, (str(row["language"]), str(row["condition"]))))
        place = (str(row["language"]), str(row["condition"]), (str(row["a"]), str(row["b"])))
        findings.append(
            Finding(f"{where}: {words}", *place, numbers, "page" if row["no_worse"] else "method")
        )
    return tuple(findings)


def apply_prices(advice: Advice, known: AnswerEvidence, tests: pd.DataFrame, baseline: str = "") -> Advice:
    """Return the advice on systems, with what it costs less: to take a cheaper system that is no worse."""
    shown = {(row["a"], row["b"]): row for row in tests[tests["no_worse"]].to_dict("records")}
    tied = known.order.tied
    if advice.certainty == "open" and known.runaway is None:
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
