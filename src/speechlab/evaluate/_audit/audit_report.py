"""The report of an audit: groups that can be told apart, ranks that chance could give, wrong references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from speechlab._pandas import pd
from speechlab.display import format_count
from speechlab.evaluate._advice.findings import list_output_findings
from speechlab.evaluate._audit.followers import find_followers
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_charted_rate_column,
    build_count_column,
    build_rate_column,
    build_text_column,
)
from speechlab.evaluate._writing.contents import Conclusion, Contents, Finding, ShownRows
from speechlab.evaluate._writing.differences import (
    build_study_differences,
    describe_rows_and_blocks,
    format_needed,
)
from speechlab.evaluate._writing.methods import describe_methods, list_distinct_values
from speechlab.evaluate._writing.sentences import (
    TITLE_WORDS,
    capitalize_unless_name,
    count_words,
    join_names,
)
from speechlab.metrics import (
    build_significance_mask,
    choose_unit,
    compute_utterances_needed,
    error_rate,
    rank,
    to_scored_table,
)

if TYPE_CHECKING:
    from speechlab.metrics import Ranking

# Power of the number of utterances that is named as needed.
_POWER = 0.8
_ALL = "all sets"
_ROW_OPTIONS = {
    "reference": "text",
    "language": "language",
    "columns": ["system", "set", "text", "hypothesis", "error_rate", "errors"],
}


def score_predictions(rows: pd.DataFrame, record: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows that have both texts, with their errors."""
    language, normalize = (record["settings"][name] for name in ("language", "normalize"))
    whole = rows.dropna(subset=["text", "hypothesis"]).reset_index(drop=True)
    rate = error_rate(whole, unit=choose_unit(language), language=language, normalize=normalize)
    return to_scored_table(rate, None, {}).assign(language=language)


def build_audit_report(
    title: str, rows: pd.DataFrame, record: Mapping[str, Any], notes: Sequence[str]
) -> Contents:
    """Report scored predictions of utterances that all systems have."""
    language = str(record["settings"]["language"])
    block = BLOCK if BLOCK in rows.columns else None
    options: dict[str, Any] = {"system": "system", "utterance": "utterance", "groups": block}
    counted = rows.drop(columns=["text", "hypothesis", "recording"])  # tables of texts take memory
    ranking = rank(counted, **options)
    sets = rank(counted, by="set", draws=2, **options) if rows["set"].nunique() > 1 else {}
    errors = rows.pivot_table("errors", block or "utterance", "system", "sum", observed=True)
    followers = find_followers(rows, block or "utterance")
    summary = _place_systems(ranking, errors).merge(followers.systems, on="system", how="left")
    facts = {"language": language, "condition": _ALL}
    differences = [build_study_differences(ranking.pairs, **facts)]
    findings = [*followers.findings, *list_output_findings(rows, "text", "language")]
    places = []
    for name, of_set in sets.items():
        placed = _place_systems(of_set)
        places.append(placed.assign(set=name))
        findings.append(
            Finding(f"{name}: {_describe_ranks(placed, of_set.pairs)}", language, name, shown="method")
        )
        pairs = of_set.pairs.assign(low=None, high=None)
        differences.append(build_study_differences(pairs, language=language, condition=name))
    tables = {"sets": pd.concat(places, ignore_index=True)} if places else {}
    signatures = list_distinct_values(rows, "signature")
    steps = ("sign-flip", "holm", *(["followers"] if len(followers.places) else []))
    return Contents(
        title,
        rows,
        summary,
        Conclusion(_describe_ranks(summary, ranking.pairs), _describe_certainty(ranking)),
        "audit",
        findings=tuple(findings),
        notes=tuple(notes),
        differences=pd.concat(differences, ignore_index=True),
        tables={**tables, "suspects": followers.places},
        columns={"text": "text", "language": "language"},
        views=_build_views(summary, places, "block" if block else "utterance"),
        shown=ShownRows(scored=True, options=_ROW_OPTIONS),
        said=describe_methods(title, *steps, signatures=signatures),
        record=record,
    )


def _place_systems(ranking: Ranking, errors: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the systems in order, with groups that can be told apart and the ranks that chance could give them."""
    pairs, names = ranking.pairs, ranking.systems["system"].tolist()
    apart = _list_pairs_that_differ(pairs)
    differs = [[frozenset((name, other)) in apart for other in names] for name in names]
    # The length of the longest chain of systems that ends with this one, each apart from the one before.
    groups: list[int] = []
    for own, row in enumerate(differs):
        groups.append(1 + max((groups[at] for at in range(own) if row[at]), default=0))
    needed: list[int | None] = [None]
    for own, (before, name) in enumerate(pairwise(names)):
        change = None
        if errors is not None and not differs[own][own + 1]:
            change = (errors[name] - errors[before]).to_numpy(dtype="int64")
        alpha = (1 - ranking.level) / len(pairs)
        needed.append(None if change is None else compute_utterances_needed(change, alpha, _POWER))
    # Behind the last one that is significantly better, before the first that is significantly worse.
    lows = [max((at + 2 for at in range(own) if row[at]), default=1) for own, row in enumerate(differs)]
    highs = [
        next((at for at in range(own, len(names)) if row[at]), len(names)) for own, row in enumerate(differs)
    ]
    columns = ["system", "unit", "utterances", "reference_length", "errors", "error_rate"]
    ranks = {"rank": range(1, len(names) + 1), "group": groups, "rank_low": lows, "rank_high": highs}
    return ranking.systems[columns].assign(**ranks, needed=pd.array(needed, dtype="Int64"))


def _list_pairs_that_differ(pairs: pd.DataFrame) -> set[frozenset[str]]:
    """Return the pairs of systems that differ significantly."""
    shown = pairs.loc[build_significance_mask(pairs), ["a", "b"]].itertuples(index=False)
    return {frozenset(pair) for pair in shown}


def _describe_ranks(summary: pd.DataFrame, pairs: pd.DataFrame) -> str:
    """Return the first sentence: who leads, or of whom it is open, and who is worse, by name as far as that fits."""
    if summary["group"].max() == 1:
        return f"None of {len(summary)} systems can be told apart."
    leaders = summary.loc[summary["rank_low"] == 1, "system"].tolist()
    apart = _list_pairs_that_differ(pairs)
    others = [name for name in summary["system"] if name not in leaders]
    is_clear = all(frozenset((name, other)) in apart for name in leaders for other in others)
    sentences = [
        _name_leaders_and_others(leaders, others, leaders_most, others_most, is_clear=is_clear)
        for leaders_most, others_most in ((len(leaders), len(others)), (len(leaders), 1), (1, 2), (1, 1))
    ]
    return next((words for words in sentences if count_words(words) <= TITLE_WORDS), sentences[-1])


def _name_leaders_and_others(
    leaders: Sequence[str], others: Sequence[str], leaders_most: int, others_most: int, *, is_clear: bool
) -> str:
    """Return who leads and who is worse: so many by name, of more systems their number."""
    counted = f"{len(leaders)} of {len(leaders) + len(others)} systems"
    names = join_names(leaders, most=leaders_most) if len(leaders) <= leaders_most else counted
    number = format_count(len(others), "other", in_words=True).split()[0]
    worse = join_names(others, most=others_most) if len(others) <= others_most else f"the other {number}"
    rest = f"{worse} {'is' if len(others) == 1 else 'are'} worse"
    if len(leaders) == 1:
        lead = f"{names} leads"
    else:
        lead = f"{names} lead and cannot be told apart" if is_clear else f"which of {names} is best is open"
    return f"{capitalize_unless_name(lead, leaders)}; {rest}."


def _describe_certainty(ranking: Ranking) -> str:
    """Return how many pairs differ, and on how much that stands."""
    pairs, count = ranking.pairs, int(ranking.systems["utterances"].iloc[0])
    on = describe_rows_and_blocks(count, int(pairs["blocks"].iloc[0]), "utterance")
    shown = int(build_significance_mask(pairs).sum())
    return f"{shown} of {format_count(len(pairs), 'pair')} differ on {on} (exact paired test, Holm)."


def _format_ranks(row: Mapping[Any, Any]) -> str:
    low, high = row["rank_low"], row["rank_high"]
    return f"{low}" if low == high else f"{low} to {high}"


def _build_views(summary: pd.DataFrame, sets: Sequence[pd.DataFrame], unit: str) -> tuple[View, ...]:
    columns = [
        build_text_column("system", "system", strong=True),
        build_charted_rate_column("error rate", "error_rate", lambda row: row["group"] == 1),
        build_count_column("rank", "rank"),
        build_count_column("group", "group"),
        DisplayColumn("ranks by chance", _format_ranks, figure=True),
        DisplayColumn("settled by", lambda row: format_needed(row["needed"]), True, optional=True),
        build_rate_column("agrees with wrong references", "followed", optional=True),
    ]
    note = (
        f"Systems of one group cannot be told apart. Settled by: {unit}s that would show the difference from the "
        "rank before in four of five samples."
    )
    rows = [
        {
            "set": placed["set"].iloc[0],
            "utterances": placed["utterances"].iloc[0],
            "groups": placed["group"].max(),
            "first": join_names(placed.loc[placed["group"] == 1, "system"].tolist(), most=4),
        }
        for placed in sets
    ]
    heads = [
        build_text_column("set", "set", strong=True),
        build_count_column("utterances", "utterances"),
        build_count_column("groups", "groups"),
        build_text_column("in the first group", "first"),
    ]
    views = [View.from_rows("Ranks", columns, summary, note)]
    return (*views, *([View.from_rows("By set", heads, rows)] if rows else []))
