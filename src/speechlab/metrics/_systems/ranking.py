"""Ranking: several systems on the same utterances, in order, and how sure the order is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from speechlab._arguments import build_argument_error, is_number, require_columns
from speechlab._pandas import pd
from speechlab.display import format_count, format_percent, join_with_and, table
from speechlab.errors import InvalidRequestError
from speechlab.metrics._columns import build_table
from speechlab.metrics._rates.compare import compare_all_pairs
from speechlab.metrics._rates.tables import join_table_signatures, to_scored_table
from speechlab.metrics._statistics.bootstrap import Bootstrap
from speechlab.metrics._statistics.significance import build_significance_mask, judge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from speechlab.metrics._rates.tables import Scorable


def assign_letters(names: Sequence[str], apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the letters of each system."""
    different = {frozenset(pair) for pair in apart}
    groups: list[set[str]] = []
    for first, second in combinations_with_replacement(names, 2):
        pair = {first, second}
        if pair in different or any(pair <= group for group in groups):
            continue
        for name in names:
            if not any({name, member} in different for member in pair):
                pair.add(name)
        groups.append(pair)
    place = {name: number for number, name in enumerate(names)}
    groups.sort(key=lambda group: sorted(place[name] for name in group))
    signs = [chr(ord("a") + number) if number < 26 else f"({number + 1})" for number in range(len(groups))]
    return {
        name: "".join(sign for sign, group in zip(signs, groups, strict=True) if name in group)
        for name in names
    }


def compute_utterances_needed(differences: NDArray[np.int64], alpha: float, power: float) -> int | None:
    """Return the number of utterances with which the test finds a difference of the observed size, at this power."""
    if len(differences) < 2 or not differences.sum():
        return None
    normal = NormalDist()
    deviation = float(np.std(differences, ddof=1))
    effect = abs(float(differences.mean()))
    tested = ((normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * deviation / effect) ** 2
    share = float((differences != 0).mean())
    least = (math.floor(1 - math.log2(alpha)) + 1) / share
    return math.ceil(max(tested, least))


_TAKE = "speechlab take"
_MAX_NAMES = 4  # most systems that a sentence names; for more systems, it gives their number
_TYPES = {
    **dict.fromkeys(("system", "unit"), "string"),
    **dict.fromkeys(("utterances", "reference_length", "errors"), "Int64"),
    "error_rate": "Float64",
    "group": "string",
    **dict.fromkeys(("first_share", "p_best"), "Float64"),
    "needed": "Int64",
}


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """A ranking of systems, with the certainty of the order.

    Attributes:
        systems: One row for each system, the best first: ``system``, ``unit``, ``utterances`` (with scores of all
            systems; all other figures are for these utterances), ``reference_length`` (tokens), ``errors``,
            ``error_rate`` (fraction), ``group`` (letters: systems that share a letter do not differ significantly),
            ``first_share`` (share of the resampled sets of utterances in which the system has the lowest rate; ties
            are divided), ``p_best`` (Holm's p-value against the best; missing for the best) and ``needed`` (number of
            utterances that distinguish it from the best with the probability ``power``, if the true difference is the
            observed one; missing for the best, and without a difference).
        pairs: All pairs, each on the utterances that both have, as the table of :func:`compare`; without rows for one
            system.
        level: Confidence level of the groups, for all pairs together.
        excluded: Number of utterances left out because a system has no score. Takes that a system lacks are left out
            too.
        signature: Signature of the scores.
        tested: Unit of the test: ``"utterance"``, or the column of ``groups=``, which is the unit of ``first_share``
            and ``needed``, too.

    Example:
        >>> rows = pd.DataFrame(
        ...     {"voice": ["a", "b"], "text": ["hi there"] * 2, "hypothesis": ["hi there", "hi"]}
        ... )
        >>> rank(rows, language="en").tied
        ['a', 'b']
    """

    systems: pd.DataFrame
    pairs: pd.DataFrame
    level: float
    excluded: int
    signature: str
    tested: str = "utterance"

    @property
    def tied(self) -> list[str]:
        """Systems that do not differ significantly from the best, the best first."""
        apart = (self.systems["p_best"] < 1 - self.level).fillna(value=False).astype(bool)
        return self.systems.loc[~apart, "system"].tolist()

    @property
    def sentence(self) -> str:
        """The order in one sentence, which can be quoted."""
        best, count = self.systems.iloc[0], int(self.systems["utterances"].iloc[0])
        unit = "character" if best["unit"] == "char" else best["unit"]
        rate, on = f"{unit} error rate", f"on {format_count(count, 'utterance')}"
        first = self._describe_systems([best["system"]])
        other_names = self.systems["system"].tolist()[1:]
        if not other_names:
            return f"{first} has no other to be compared with: its {rate}, {on}."
        if (self.systems["error_rate"] == best["error_rate"]).all():
            ordered = [best["system"], *other_names]
            who = join_with_and(ordered) if len(ordered) <= _MAX_NAMES else f"All {len(ordered)} systems"
            return f"{who} have the same {rate} ({format_percent(best['error_rate'])}) {on}."
        tied = self.tied[1:]
        worse = [name for name in other_names if name not in tied]
        test = f"exact paired test by {self.tested}, Holm, {1 - self.level:.2g} level"
        if not worse:
            none = (
                f"{self._describe_systems(tied)} cannot"
                if len(tied) == 1
                else f"None of {self._describe_systems(tied)} can"
            )
            return f"{none} be distinguished from {first}, which has the lowest {rate} {on} ({test})."
        text = f"{self._describe_systems(worse)} {'has' if len(worse) == 1 else 'have'} a significantly higher one"
        if tied:
            text = f"{self._describe_systems(tied)} cannot be distinguished from it, {text}"
        return f"{first} has the lowest {rate} of {len(self.systems)} {on}; {text} ({test})."

    def _describe_systems(self, names: list[str]) -> str:
        """Systems with their rates; for many systems, their number and the range of their rates."""
        rates = self.systems.set_index("system")["error_rate"][names].map(format_percent)
        if len(names) > _MAX_NAMES:
            return f"{len(names)} others ({rates.iloc[0]} to {rates.iloc[-1]})"
        return join_with_and([f"{name} ({rate})" for name, rate in rates.items()])

    def __repr__(self) -> str:
        return f"<Ranking: {self.sentence}>"

    def _repr_html_(self) -> str:
        rows = self.systems.astype(object).where(self.systems.notna(), "–").to_numpy().tolist()
        return str(table(list(self.systems.columns), rows, caption=self.sentence))


@overload
def rank(scored: Scorable, *, by: None = None, **options: Any) -> Ranking: ...
@overload
def rank(scored: Scorable, *, by: str, **options: Any) -> dict[str, Ranking]: ...
def rank(
    scored: Scorable,
    *,
    by: str | None = None,
    system: str = "voice",
    utterance: str = "text",
    level: float = 0.95,
    power: float = 0.8,
    draws: int = 2_000,
    seed: int = 0,
    groups: str | None = None,
    **how: Any,
) -> Ranking | dict[str, Ranking]:
    """Rank several systems that were scored on the same utterances, with the certainty of the order.

    Pairs are compared by the exact test over utterances (:func:`compare` with ``groups=``), corrected by Holm's
    method. Several rows of one system and utterance are takes, and stay together.

    Args:
        scored: Result of :func:`score`, or a table without scores.
        by: Column of conditions, each of which has a ranking; rows without a condition are ignored. The p-values are
            corrected for all conditions together: with the probability ``level``, no false difference is called
            significant under any of them.
        system: Column of the systems.
        utterance: Column that identifies the utterances.
        level: Confidence level of all pairs together.
        power: Probability with which ``needed`` utterances show the difference, as a fraction.
        draws: Number of resampled sets of utterances for ``first_share``.
        seed: The same seed gives the same ranking.
        groups: Column of blocks of utterances, such as ``"speaker"``, that are tested and drawn as wholes; None for
            utterances.
        **how: Arguments of :func:`score` for a table without scores.

    Returns:
        The ranking; with ``by=``, the ranking of each condition, in the order of the table.

    Raises:
        InvalidRequestError: A column is missing, no utterance has scores of all systems (under one of the
            conditions), or rows were scored in different ways or units.

    Example:
        >>> import pandas as pd
        >>> said = [f"sentence number {number}" for number in range(12)]
        >>> rows = pd.DataFrame(
        ...     [{"voice": "a", "text": text, "hypothesis": text, "noise": "no"} for text in said]
        ...     + [{"voice": "b", "text": text, "hypothesis": "sentence", "noise": "no"} for text in said]
        ... )
        >>> rank(rows, language="en").sentence[:76]
        'a (0.0%) has the lowest word error rate of 2 on 12 utterances; b (66.7%) has'
        >>> rank(rows, by="noise", language="en")["no"].tied
        ['a']
    """
    bootstrap = Bootstrap(level, draws, seed, groups)
    if not is_number(power) or not 0 < float(power) < 1:
        raise build_argument_error("power", power, "a fraction between 0 and 1, such as 0.8")
    columns = [system, utterance, *(name for name in (by, groups) if name is not None)]
    table = to_scored_table(scored, None, how)
    table = require_columns(table, *columns, argument="scored")
    # The rows with scores and a value in each of these columns, which become texts.
    complete = table[table[["errors", *columns]].notna().all(axis=1)]
    scored_rows = complete.assign(**{name: complete[name].astype(str) for name in columns})
    if by is None or not len(scored_rows):
        return _build_rankings(
            {"": _sum_and_compare_systems(scored_rows, system, utterance, bootstrap)}, power, bootstrap
        )[""]
    sums = {
        str(key): _sum_and_compare_systems(rows_of, system, utterance, bootstrap, f" where {by!r} is {key!r}")
        for key, rows_of in scored_rows.groupby(by, sort=False)
    }
    return _build_rankings(sums, power, bootstrap)


class _Sums(NamedTuple):
    """Sums of the systems over their common utterances, the best system first."""

    tables: dict[str, pd.DataFrame]  # rows of each system
    errors: NDArray[np.int64]  # errors of each system (row) and utterance or block (column)
    lengths: NDArray[np.int64]  # reference tokens, in the same shape
    pairs: list[dict[str, Any]]  # rows of all pairs, as from :func:`compare`
    utterances: int  # number of common utterances
    excluded: int  # number of utterances that a system lacks


def _sum_and_compare_systems(
    done: pd.DataFrame, system: str, utterance: str, bootstrap: Bootstrap, where: str = ""
) -> _Sums:
    if not len(done):
        message = (
            "no row has scores and a value in each named column; look at 'score_error' and at the hypotheses"
        )
        raise InvalidRequestError(message, parameter="scored")
    count = done[system].nunique()
    numbered = done.assign(**{_TAKE: done.groupby([system, utterance]).cumcount()})
    # Takes with scores of all systems.
    common_rows = numbered[numbered.groupby([utterance, _TAKE])[system].transform("nunique") == count]
    if not len(common_rows):
        message = (
            f"no utterance has scores of all {count} systems{where}; leave out the system that failed, "
            "or rank those that have utterances in common"
        )
        raise InvalidRequestError(message, parameter="scored")
    common = common_rows[utterance].unique()
    tables = {str(name): system_rows for name, system_rows in common_rows.groupby(system, sort=False)}
    counts = ("errors", "reference_length")
    block = utterance if bootstrap.groups is None else bootstrap.groups
    mixed = common_rows[common_rows.groupby([utterance, _TAKE])[block].transform("nunique") > 1]
    if len(mixed):
        message = (
            f"groups={block!r}: the utterance {mixed[utterance].iloc[0]!r:.60} is in several blocks; give its rows "
            "the same block in all systems"
        )
        raise InvalidRequestError(message, parameter="groups")
    blocks = common_rows[block].unique()
    sums = [system_rows.groupby(block)[[*counts]].sum().loc[blocks] for system_rows in tables.values()]
    errors, lengths = (
        np.array([system[name].to_numpy(dtype=np.int64) for system in sums]) for name in counts
    )
    rates = errors.sum(axis=1) / np.maximum(lengths.sum(axis=1), 1)
    order = np.lexsort((list(tables), rates))  # equals by name, not by their order in the table
    ordered = {name: tables[name] for name in (list(tables)[place] for place in order)}
    # A pair is tested on all utterances that both have, so that a third system takes none from them.
    whole = {name: numbered[numbered[system] == name] for name in ordered}
    pairs = compare_all_pairs(whole, [utterance, _TAKE], replace(bootstrap, groups=block), {})
    excluded = done[utterance].nunique() - len(common)
    return _Sums(ordered, errors[order], lengths[order], pairs, len(common), excluded)


def _build_rankings(parts: dict[str, _Sums], power: float, bootstrap: Bootstrap) -> dict[str, Ranking]:
    """Return the rankings, with p-values that are corrected for all of them together."""
    pairs = judge((row for ranking in parts.values() for row in ranking.pairs), level=bootstrap.level)
    corrected, at = {}, 0
    for key, ranking in parts.items():
        own_pairs = pairs.iloc[at : at + len(ranking.pairs)].reset_index(drop=True)
        at += len(ranking.pairs)
        corrected[key] = _build_ranking(ranking, own_pairs, len(pairs), power, bootstrap)
    return corrected


def _build_ranking(
    one: _Sums, pairs: pd.DataFrame, tests: int, power: float, bootstrap: Bootstrap
) -> Ranking:
    """Return the ranking, from pairs with p-values that were corrected for the number of tests."""
    names, errors, lengths = list(one.tables), one.errors, one.lengths
    groups = assign_letters(
        names, pairs.loc[build_significance_mask(pairs), ["a", "b"]].itertuples(index=False)
    )
    # The share of draws in which each system (row) has the lowest rate; ties are divided.
    firsts: list[float | None] = [None] * len(errors)
    if len(sums := bootstrap.resample_sums(np.concatenate([errors, lengths]).T)):
        rates = sums[:, : len(errors)] / np.maximum(sums[:, len(errors) :], 1)
        first = rates <= rates.min(axis=1, keepdims=True) + 1e-12
        firsts = (first / first.sum(axis=1, keepdims=True)).mean(axis=0).tolist()
    # A pair may have utterances that others lack, and the opposite sign on them: that shows no lead of the first.
    p_best = {
        row["b"]: float(row["p_holm"]) if row["value_a"] <= row["value_b"] else 1.0
        for row in pairs[pairs["a"] == names[0]].to_dict("records")
    }
    alpha = (1 - bootstrap.level) / max(1, tests)
    rows = [
        {
            "system": name,
            "unit": str(one.tables[name]["unit"].iloc[0]),
            "utterances": one.utterances,
            "reference_length": int(lengths[at].sum()),
            "errors": int(errors[at].sum()),
            "error_rate": errors[at].sum() / max(1, lengths[at].sum()),
            "group": groups[name],
            "first_share": firsts[at],
            "p_best": p_best.get(name),
            "needed": compute_utterances_needed(errors[at] - errors[0], alpha, power) if at else None,
        }
        for at, name in enumerate(names)
    ]
    systems = build_table(rows, _TYPES)
    signature = join_table_signatures(pd.concat(list(one.tables.values())))
    tested = "utterance" if bootstrap.groups is None else str(bootstrap.groups)
    return Ranking(systems, pairs, bootstrap.level, one.excluded, signature, tested)
