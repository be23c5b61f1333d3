"""What could overturn an order of systems: rows that failed, one row with most errors, few speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._statistics import MIN_PAIRS, compute_sign_p
from speechlab.metrics import BETTER, WORSE, rank

if TYPE_CHECKING:
    from speechlab.metrics import Ranking

# Share of rows that a system may lack beyond another one without consequences.
MAX_LACK = 0.05
# Such a share from which on a system has no place in an order of others, from whom it would take too many rows.
_ABSENT = 0.2
# Share of all errors of a system from which on one row is named, and the fewest errors of such a row.
_RUNAWAY_SHARE, _RUNAWAY_ERRORS = 1 / 3, 5
# Verdicts in place of *better* and *worse*.
LACKING, FEW_SPEAKERS = "not settled, as one failed on more rows", "differs with these few speakers"
FEW_TEXTS = "differs with these few texts"
# Rows below which no row is called an exception.
_MIN_ROWS = 6
_LEVEL = 0.05
_MAX_QUOTED = 40


@dataclass(frozen=True)
class Runaway:
    """A row that makes over a third of the errors of a system, and the order without it."""

    system: str
    name: str
    errors: int
    of_errors: int
    inserted: int
    order: Ranking | None = None


@dataclass(frozen=True)
class AnswerEvidence:
    """What is known of systems.

    Attributes:
        order: The ranking, on the items that all have.
        counts: Number of rows with a reference, of each system.
        failed: Number of those without an output, of each system.
        empty: Number of outputs without a word, of each system, and the share of its errors that they make.
        absent: Systems that failed on so many rows that they have no place in the order.
        lacking: Systems that lack more rows than another one: by 5% of them, or by more than chance.
        penalized: The order if a failed row counts as all wrong, where a system lacks more rows than another.
        runaway: The row that makes over a third of the errors of one of the first two, if there is one.
        wins: Of each system, the number of blocks in which it has fewer errors than the first.
        blocks: Number of blocks that the test counts, and what they are called.
        about: The speakers or texts that the verdict is about, if they are too few for others.
        texts: Number of different texts, where that is known.
    """

    order: Ranking
    counts: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    empty: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    penalized: Ranking | None = None
    runaway: Runaway | None = None
    wins: Mapping[str, int] = field(default_factory=dict)
    blocks: tuple[int, str] = (0, "")
    about: str = ""
    texts: int = 0

    def qualify_verdicts(self, differences: pd.DataFrame) -> pd.DataFrame:
        """Return differences of these systems without verdicts that failures or few speakers would overturn."""
        shares = {name: self.failed.get(name, 0) / max(count, 1) for name, count in self.counts.items()}
        return replace_uncertain_verdicts(differences, self.lacking, shares, self.about)


def mark_failures(scores: pd.DataFrame, text: str) -> pd.Series[bool]:
    """Return which rows have a reference, but neither an output nor a score."""
    return scores["errors"].isna() & scores["hypothesis"].isna() & scores[text].notna()


def list_mostly_failing_systems(scores: pd.DataFrame, text: str, system: str) -> list[str]:
    """Return the systems that failed on so many rows that an order of the others is better without them."""
    if scores[system].nunique() <= 2:  # which are compared whatever happened
        return []
    failed = mark_failures(scores, text)
    usable = scores[failed | scores["errors"].notna()]
    counts = usable.assign(failed=failed).groupby(usable[system].astype(str))["failed"].agg(["sum", "size"])
    shares = (counts["sum"] / counts["size"]).astype("float64").sort_values(ascending=False)
    most = max(len(shares) - 2, 0)
    return shares.index[shares - shares.min() >= _ABSENT].astype(str).tolist()[:most]


def build_answer_evidence(
    scores: pd.DataFrame,
    order: Ranking,
    text: str,
    item: str,
    *,
    system: str,
    block: str | None,
    **facts: Any,
) -> AnswerEvidence:
    """Gather what could overturn an order, from the scored rows of all systems."""
    failed = mark_failures(scores, text)
    rows = scores[failed | scores["errors"].notna()].assign(failed=failed)
    rows[system], rows["errors"] = rows[system].astype(str), rows["errors"].astype("Float64")
    rows[item] = rows[item].astype(str)
    placed = rows[rows[system].isin(order.systems["system"])]
    lacking = list_systems_failing_more(placed, system, item)
    options = {"system": system, "utterance": item, "groups": block, "draws": 1}
    penalized = (
        _rank_systems_if_possible(_score_failures_as_wrong(placed, item), options) if lacking else None
    )
    alive = placed[placed["errors"].notna()]
    by_system = rows.groupby(system, sort=False)
    return AnswerEvidence(
        order,
        counts={str(name): int(count) for name, count in by_system.size().items()},
        failed={str(name): int(count) for name, count in by_system["failed"].sum().items() if count},
        empty=summarize_empty_outputs(alive, system),
        lacking=lacking,
        penalized=penalized,
        runaway=_rank_without_runaway_row(alive, order, text, item, system, options),
        wins=_count_wins_over_first(alive, order, system, item, block or item),
        **facts,
    )


def replace_uncertain_verdicts(
    differences: pd.DataFrame, lacking: Sequence[str], shares_failed: Mapping[str, float], about: str = ""
) -> pd.DataFrame:
    """Return differences without verdicts that failures or few speakers would overturn."""
    verdicts = []
    for row in differences.to_dict("records"):
        verdict = str(row["verdict"])
        if verdict in {WORSE, BETTER}:
            better, other = (row["a"], row["b"]) if verdict == WORSE else (row["b"], row["a"])
            if better in lacking and shares_failed.get(better, 0) > shares_failed.get(other, 0):
                verdict = LACKING
            elif about:
                verdict = FEW_SPEAKERS if name_few(about) == "speakers" else FEW_TEXTS
        verdicts.append(verdict)
    return differences.assign(verdict=pd.array(verdicts, dtype="string"))


def name_few(about: str) -> str:
    """Return of what there are few in ``three speakers``, or in ``one text``."""
    return "texts" if about.endswith(("text", "texts")) else "speakers"


def describe_few(about: str) -> str:
    """Return that a verdict on few speakers, or texts, is about these alone, and what it takes for others."""
    return f"this says nothing about other {name_few(about)}: test {MIN_PAIRS} or more for that"


def _rank_systems_if_possible(rows: pd.DataFrame, options: dict[str, Any]) -> Ranking | None:
    """Return an order, or None where nothing is left to be ranked."""
    try:
        order: Ranking = rank(rows, by=None, **options)
    except InvalidRequestError:
        return None
    return order


def list_systems_failing_more(rows: pd.DataFrame, system: str, item: str) -> tuple[str, ...]:
    """Return the systems that lack more rows than another one: by 5% of them, or by more than chance."""
    if not rows["failed"].any():
        return ()
    items = rows[item].astype(str)  # cells may be no texts
    failed = rows.groupby([items, rows[system]], observed=True)["failed"].mean().unstack(system)
    shares = failed.mean()
    lacking = []
    for name in shares.index:
        others = [other for other in shares.index if shares[other] < shares[name]]
        if any(
            shares[name] - shares[other] >= MAX_LACK - 1e-9
            or _compute_failure_p_value(failed[name], failed[other]) < _LEVEL
            for other in others
        ):
            lacking.append(str(name))
    return tuple(lacking)


def _compute_failure_p_value(one: pd.Series[float], other: pd.Series[float]) -> float:
    """Return the p-value of the exact test of McNemar (1947), two-sided."""
    return compute_sign_p(int((one > other).sum()), int((one < other).sum()))


def _score_failures_as_wrong(rows: pd.DataFrame, item: str) -> pd.DataFrame:
    """Return rows in which a failure is a text of which every word is missing."""
    known = ["unit", "signature", "reference_normalized", "reference_length"]
    scored = rows[rows["errors"].notna()].drop_duplicates(item).set_index(item)
    filled = rows.astype(dict.fromkeys(known, object))
    for name in known:
        values = filled[item].map(scored[name].astype(object))
        filled[name] = filled[name].where(~filled["failed"], values)
    filled["errors"] = filled["errors"].where(~filled["failed"], filled["reference_length"].astype("Float64"))
    filled["hypothesis_normalized"] = (
        filled["hypothesis_normalized"].astype(object).where(~filled["failed"], "")
    )
    filled["reference_length"] = filled["reference_length"].astype("Float64")
    return filled[filled["errors"].notna()]


def summarize_empty_outputs(rows: pd.DataFrame, by: str) -> dict[Any, tuple[int, float]]:
    """Return how many outputs have no word where the reference has some, and their share of the errors."""
    is_empty = mark_empty_outputs(rows)
    found = {}
    for name, part in rows[rows["errors"].notna()].groupby(by, observed=True, sort=False):
        empty = part[is_empty[part.index]]
        if len(empty):
            found[name] = (len(empty), float(empty["errors"].sum() / max(float(part["errors"].sum()), 1.0)))
    return found


def mark_empty_outputs(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows came back without a word, though their reference has some."""
    texts = (
        rows["hypothesis_normalized"]
        .astype(object)
        .map(lambda text: is_missing(text) or not str(text).strip())
    )
    spoken = (rows["reference_length"].astype("Float64") > 0).fillna(value=False).astype(bool)
    return texts.astype(bool) & spoken & rows["errors"].notna()


def find_runaway_row(rows: pd.DataFrame) -> Any | None:
    """Return the label of the row that makes over a third of the errors, if there is one."""
    errors = rows["errors"].astype("Float64").fillna(0)
    if len(rows) < _MIN_ROWS or float(errors.max()) < max(
        _RUNAWAY_ERRORS, float(errors.sum()) * _RUNAWAY_SHARE
    ):
        return None
    return errors.idxmax()


def _rank_without_runaway_row(
    rows: pd.DataFrame, order: Ranking, text: str, item: str, system: str, options: dict[str, Any]
) -> Runaway | None:
    """Return the row that decides about one of the first two systems, and the order without it."""
    candidates = []
    for name in order.systems["system"].head(2):
        own = rows[rows[system] == name].reset_index(drop=True)
        place = find_runaway_row(own)
        if place is not None:
            candidates.append((float(own["errors"].iloc[place]), str(name), own.iloc[place], own))
    if not candidates:
        return None
    _, name, row, own = max(candidates, key=lambda candidate: candidate[0])
    left = rows[rows[item].astype(str) != str(row[item])]
    remaining = _rank_systems_if_possible(left, options)
    return Runaway(
        name,
        format_row_name(row, text),
        int(row["errors"]),
        int(own["errors"].sum()),
        _count_insertions(row),
        remaining,
    )


def _count_insertions(row: Any) -> int:
    """Return the number of words that were put in, as far as the counts of the row tell."""
    counted = row.get("insertions")
    return 0 if is_missing(counted) else min(int(counted), int(row["errors"]))


def format_row_name(row: Any, text: str) -> str:
    """Return what a sentence calls a row: its file, or the beginning of its text in quotation marks."""
    file = row.get("file")
    if not is_missing(file) and not str(file).startswith("row "):
        return str(file)
    return f"“{shorten(str(row[text]), _MAX_QUOTED, placeholder=' …')}”"


def _count_wins_over_first(
    rows: pd.DataFrame, order: Ranking, system: str, item: str, block: str
) -> dict[str, int]:
    """Return in how many blocks each system has fewer errors than the first, on the rows that both have."""
    first, wins = order.systems["system"].iloc[0], {}
    mine = rows[rows[system] == first].drop_duplicates(item).set_index(item)
    for name in order.systems["system"].iloc[1:]:
        theirs = rows[rows[system] == name].drop_duplicates(item).set_index(item)
        both = mine.index.intersection(theirs.index)
        difference = (mine.loc[both, "errors"] - theirs.loc[both, "errors"]).astype("float64")
        keys = pd.Series(both, both) if block == item else mine.loc[both, block].astype(str)
        wins[str(name)] = int((difference.groupby(keys.to_numpy()).sum() > 0).sum())
    return wins
