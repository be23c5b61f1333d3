"""The report of an audit: who leads, ranks that chance could give, wrong references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from speechlab._pandas import pd
from speechlab.display import format_count, format_percent
from speechlab.evaluate._advice.evidence import find_runaway_row
from speechlab.evaluate._advice.findings import list_output_findings
from speechlab.evaluate._audit.followers import MIN_PLACES, find_followers
from speechlab.evaluate._speech.blocks import BLOCK
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_charted_rate_column,
    build_count_column,
    build_text_column,
)
from speechlab.evaluate._writing.contents import Conclusion, Contents, ShownRows
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
    quote_name,
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
    settings = record["settings"]
    block = BLOCK if BLOCK in rows.columns else "utterance"
    options: dict[str, Any] = {"system": "system", "utterance": "utterance", "groups": block}
    counted = rows.drop(columns=["text", "hypothesis", "recording"])  # tables of texts take memory
    ranking = rank(counted, **options)
    sets = rank(counted, by="set", draws=2, **options) if rows["set"].nunique() > 1 else {}
    errors = rows.pivot_table("errors", block, "system", "sum", observed=True)
    followers = find_followers(rows, block)
    summary = _place_systems(ranking)
    summary["needed"] = _count_needed(summary, errors, (1 - ranking.level) / len(ranking.pairs))
    summary = summary.merge(followers.systems, on="system", how="left")
    facts = {"language": settings["language"], "condition": _ALL}
    differences = [build_study_differences(ranking.pairs, **facts)]
    placed = {name: _place_systems(of_set) for name, of_set in sets.items()}
    for name, of_set in sets.items():
        facts["condition"] = name
        differences.append(build_study_differences(of_set.pairs.assign(low=None, high=None), **facts))
    tables = {"suspects": followers.places}
    if placed:
        tables["sets"] = pd.concat(placed, names=["set"]).reset_index("set").reset_index(drop=True)
    steps = ("sign-flip", "holm", *(["followers"] if len(followers.places) else []))
    runaway = _describe_runaway_rows(counted, summary, options)
    certainty = " ".join(filter(None, [runaway, _describe_certainty(ranking), settings.get("left_out", "")]))
    return Contents(
        title,
        rows,
        summary,
        Conclusion(_describe_ranks(summary), certainty),
        "audit",
        findings=(*followers.findings, *list_output_findings(rows, "text", "language")),
        notes=tuple(notes),
        differences=pd.concat(differences, ignore_index=True),
        tables=tables,
        columns={"text": "text", "language": "language"},
        views=_build_views(summary, placed, block),
        shown=ShownRows(scored=True, options=_ROW_OPTIONS),
        said=describe_methods(title, *steps, signatures=list_distinct_values(rows, "signature")),
        record=record,
    )


def _place_systems(ranking: Ranking) -> pd.DataFrame:
    """Return the systems in order, with the ranks that chance could give them."""
    systems, pairs = ranking.systems, ranking.pairs
    is_apart = build_significance_mask(pairs)
    apart = set(map(frozenset, pairs.loc[is_apart, ["a", "b"]].itertuples(index=False)))
    names = systems["system"].tolist()
    differs = [[frozenset((name, other)) in apart for other in names] for name in names]
    # Behind the last one that is significantly better, before the first that is significantly worse.
    lows = [max((at + 2 for at in range(own) if row[at]), default=1) for own, row in enumerate(differs)]
    highs = [
        next((at for at in range(own, len(row)) if row[at]), len(row)) for own, row in enumerate(differs)
    ]
    columns = ["system", "unit", "utterances", "reference_length", "errors", "error_rate", "group"]
    return systems[columns].assign(rank=range(1, len(names) + 1), rank_low=lows, rank_high=highs)


def _count_needed(summary: pd.DataFrame, errors: pd.DataFrame, alpha: float) -> pd.Series[Any]:
    """Return how many utterances would show the difference from the rank before, where that is not shown."""
    changes = errors[summary["system"]].diff(axis="columns").fillna(0).astype("int64")
    needed = [compute_utterances_needed(changes[name].to_numpy(), alpha, _POWER) for name in changes]
    return pd.Series(needed, dtype="Int64").where(summary["rank_low"] < summary["rank"])


def _describe_ranks(summary: pd.DataFrame) -> str:
    """Return the first sentence: who leads, and who is worse, by name as far as that fits."""
    is_leader, count = summary["rank_low"] == 1, len(summary)
    leaders, others = (summary.loc[mask, "system"].tolist() for mask in (is_leader, ~is_leader))
    if not others:
        return f"None of {count} systems can be told apart."
    number = format_count(len(others), "other", in_words=True).split()[0]
    leads = [join_names(leaders, most=count), f"{len(leaders)} of {count} systems"]
    verb = "leads" if len(leaders) == 1 else "lead and cannot be told apart"
    worse = [join_names(others, most=count), f"the other {number}"]
    sentences = [
        f"{lead} {verb}; {rest} {'is' if len(others) == 1 else 'are'} worse."
        for lead, rest in product(leads, worse)
    ]
    words = next((words for words in sentences if count_words(words) <= TITLE_WORDS), sentences[-1])
    return capitalize_unless_name(words, leaders)


def _describe_runaway_rows(rows: pd.DataFrame, summary: pd.DataFrame, options: Mapping[str, Any]) -> str:
    """Return which systems have over a third of their errors in one utterance, and the ranks without these."""
    found = {}
    for name in summary["system"]:
        own = rows[rows["system"] == name]
        if (place := find_runaway_row(own)) is not None:
            found[name] = own.loc[place]
    if not found:
        return ""
    name, row = next(iter(found.items()))
    errors, of_errors = int(row["errors"]), int(summary.set_index("system")["errors"][name])
    words, it = f"One utterance makes {errors:,} of {of_errors:,} errors of {quote_name(name)}", "it"
    if len(found) > 1:
        words, it = f"One utterance each makes over a third of the errors of {join_names([*found])}", "them"
    left = rows[~rows["utterance"].isin([row["utterance"] for row in found.values()])]
    if not len(left):
        return f"{words}."
    without = _describe_ranks(_place_systems(rank(left, draws=2, **options)))
    ranks = "the ranks hold" if without == _describe_ranks(summary) else without.rstrip(".")
    return (
        f"{words}; without {it}, {ranks[:1].lower() if ranks.startswith('None ') else ranks[:1]}{ranks[1:]}."
    )


def _describe_certainty(ranking: Ranking) -> str:
    """Return how many pairs differ, and on how much that stands."""
    pairs, count = ranking.pairs, int(ranking.systems["utterances"].iloc[0])
    on = describe_rows_and_blocks(count, int(pairs["blocks"].iloc[0]), "utterance")
    shown = int(build_significance_mask(pairs).sum())
    return (
        f"Of {format_count(len(pairs), 'pair')} {shown or 'none'} differ on {on} (exact paired test, Holm)."
    )


def _format_ranks(row: Mapping[Any, Any]) -> str:
    low, high = row["rank_low"], row["rank_high"]
    return f"{low}" if low == high else f"{low} to {high}"


def _format_followed(row: Mapping[Any, Any]) -> str | None:
    """Return the share of suspected references, with the number of these where it is too small."""
    if not row["suspects"]:
        return None
    share = format_percent(row["followed"])
    return share if row["suspects"] >= MIN_PLACES else f"{share} of {row['suspects']:,}"


def _build_views(summary: pd.DataFrame, sets: Mapping[str, pd.DataFrame], unit: str) -> list[View]:
    columns = [
        build_text_column("system", "system", strong=True),
        build_charted_rate_column("error rate", "error_rate", lambda row: row["rank_low"] == 1),
        build_count_column("rank", "rank"),
        DisplayColumn("ranks by chance", _format_ranks, figure=True),
        build_text_column("group", "group"),
        DisplayColumn("settled by", lambda row: format_needed(row["needed"]), True, optional=True),
        DisplayColumn("agrees with wrong references", _format_followed, True, optional=True),
    ]
    note = (
        f"Systems that share a letter cannot be told apart. Settled by: {unit}s that would show the difference from "
        "the rank before in four of five samples."
    )
    if summary["suspects"].between(1, MIN_PLACES - 1).any():
        note += f" It takes {MIN_PLACES} wrong references to say that a system follows them."
    rows = [
        {"set": name, "utterances": placed["utterances"].iloc[0], "lead": _describe_ranks(placed)}
        for name, placed in sets.items()
    ]
    heads = [
        build_text_column("set", "set", strong=True),
        build_count_column("utterances", "utterances"),
        build_text_column("ranks", "lead"),
    ]
    views = [View.from_rows("Ranks", columns, summary, note)]
    return [*views, *([View.from_rows("By set", heads, rows)] if rows else [])]
