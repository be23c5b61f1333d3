"""The report of the study of translations: systems compared with the first, and which to take, or how close it is."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab._platform import get_package_version
from speechlab.display import format_count, join_with_and
from speechlab.evaluate._advice.choice import MARGIN
from speechlab.evaluate._advice.no_worse import build_price_findings, compare_with_dearer
from speechlab.evaluate._speech.costs import add_costs, build_cost_views, list_cost_notes, read_unit_prices
from speechlab.evaluate._speech.scorers import SCORE_PREFIX
from speechlab.evaluate._speech.speed import build_empty_stream_table
from speechlab.evaluate._speech.summary import build_load_views
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._translation.translation_choice import build_systems_conclusion
from speechlab.evaluate._translation.translation_differences import (
    build_contests,
    build_difference_findings,
    compare_systems,
    list_beaten_systems,
)
from speechlab.evaluate._translation.translation_measures import Columns, score_corpus
from speechlab.evaluate._writing.columns import (
    Bar,
    DisplayColumn,
    View,
    build_count_column,
    build_count_of_total_column,
    build_number_column,
    build_rate_column,
    build_text_column,
    format_language,
)
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, ShownRows
from speechlab.evaluate._writing.differences import (
    build_differences_view,
)
from speechlab.evaluate._writing.methods import describe_methods
from speechlab.evaluate._writing.sentences import capitalize_unless_name, join_fitting_clauses, quote_name

# Share of empty translations from which on the first sentence has them.
_EMPTY_SHARE = 0.1
_NAMES = Columns("text", "reference", "source_lang", "target_lang")


def build_translation_report(
    title: str,
    table: pd.DataFrame,
    summary: pd.DataFrame,
    columns: Columns = _NAMES,
    *,
    terms: pd.DataFrame | None = None,
    speed: pd.DataFrame | None = None,
    record: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Contents:
    """Report measured translations."""
    settings = (record or {}).get("settings", {})
    prices = read_unit_prices(settings)
    summary = add_costs(summary, table, settings, columns.text, columns[2:])
    calls = build_empty_stream_table() if speed is None else speed
    terms_table = pd.DataFrame() if terms is None else terms
    differences = compare_systems(table, columns)
    claims = settings.get("margin", MARGIN), settings.get("baseline", "")
    contests = build_contests(table, differences, columns) if prices else {}
    no_worse = compare_with_dearer(contests, prices, *claims)
    scores = [name for name in ("chrf", "back_chrf") if name in summary and summary[name].notna().any()]
    score = next(iter(scores), None)
    keys = [*(["system"] if "system" in summary else []), *columns[2:]]
    beaten = list_beaten_systems(differences)
    best_first = _sort_best_first(summary, columns, score)
    leading = [not _is_beaten(row, columns, beaten) for row in best_first.to_dict("records")]
    options: dict[str, Any] = {"score": score, "by": keys, "highlight": leading}
    drawings = [] if score is None else [Drawing("Scores", "translation_scores", ("scores",), options)]
    views = [_build_scores_view(best_first, columns, score, beaten)]
    if len(differences):
        note = "Each pair on the texts that both translated, by paired randomization."
        views.append(build_differences_view(differences, "Differences of systems", note))
        drawings.append(Drawing("Differences of systems", "differences", ("differences",)))
    views += [_build_terms_view(terms_table)] if len(terms_table) else []
    if len(calls):
        by = [*(["system"] if (calls["system"] != "").any() else []), "source_lang", "target_lang"]
        options = {"column": "first_word_s", "by": by}
        drawings.append(Drawing("Time to the first word", "distributions", ("speed",), options))
    signatures = [] if "signature" not in summary else list(summary["signature"].dropna())
    return Contents(
        title,
        table,
        summary,
        _build_conclusion(summary, differences, table, columns, claims, no_worse),
        "translation",
        findings=(*build_difference_findings(differences), *build_price_findings(no_worse, "text")),
        notes=tuple(dict.fromkeys([*notes, *list_cost_notes(table, settings, columns.text)])),
        differences=differences,
        speed=calls,
        tables={
            "terms": terms_table,
            **({"no_worse": no_worse} if prices else {}),
            "scores": best_first if score is None else _substitute_common_scores(best_first, score),
        },
        columns=dict(zip(_NAMES._fields, columns, strict=True)),
        views=(
            *views,
            *build_load_views(calls),
            *build_cost_views(summary, _build_leading_columns(columns, score, beaten)),
        ),
        drawings=tuple(drawings),
        shown=_choose_row_display(table, columns),
        said=describe_methods(title, *_list_methods(summary, scores, table, calls, differences, no_worse)),
        facts={
            "speechlab": get_package_version(),
            "chrF": str(next(iter(signatures), "none")),
            "speed": f"{len(calls)} streams, one at a time, in turns" if len(calls) else "not measured",
            **({} if columns.reference else {"references": "none"}),
        },
        record=record or {},
    )


def _list_methods(
    summary: pd.DataFrame,
    scores: Sequence[str],
    table: pd.DataFrame,
    calls: pd.DataFrame,
    differences: pd.DataFrame,
    no_worse: pd.DataFrame,
) -> list[str]:
    """Return the keys of the methods that apply."""
    methods = {
        "chrf": "chrf" in scores,
        "back": "back_chrf" in scores,
        "terms": "terms_expected" in summary,
        "streams": len(calls),
        "loops": "loop" in table,
        "randomization": len(differences),
        "holm": len(differences),
        "paired intervals": differences["low"].notna().any(),
        **dict.fromkeys(("no worse", "pseudo-values"), no_worse["p"].notna().any()),
    }
    return [name for name, applies in methods.items() if applies]


def _sort_best_first(summary: pd.DataFrame, columns: Columns, score: str | None) -> pd.DataFrame:
    """Return a summary with the highest score of each direction first."""
    if score is None or "system" not in summary.columns:
        return summary
    places = summary.groupby([*columns[2:]], sort=False, observed=True).ngroup()
    order = summary.assign(_place=places).sort_values(
        ["_place", score], ascending=[True, False], kind="stable"
    )
    return order.drop(columns="_place")


def _is_beaten(row: Mapping[Any, Any], columns: Columns, beaten: Collection[tuple[str, str]]) -> bool:
    """Return whether another system is significantly better than the one of this line."""
    return (f"{row[columns.source_lang]} → {row[columns.target_lang]}", str(row.get("system"))) in beaten


def _build_scores_view(
    summary: pd.DataFrame, columns: Columns, score: str | None, beaten: Collection[tuple[str, str]]
) -> View:
    view_columns = [
        *_build_leading_columns(columns, score, beaten),
        build_number_column("chrF back", "back_chrf", ".1f", optional=True),
        DisplayColumn("on the same texts", _format_common_score, figure=True, optional=True),
        *(
            build_number_column(str(name).removeprefix(SCORE_PREFIX), str(name), ".3f")
            for name in summary
            if str(name).startswith(SCORE_PREFIX)
        ),
        build_number_column("length", "length_ratio"),
        build_count_column("empty", "empties", optional=True, counted=("empty", True)),
        build_count_column("copies", "copies", optional=True, counted=("copied", True)),
        build_count_column("loops", "loops", optional=True, counted=("loop", True)),
        build_rate_column("terms kept", "terms_kept", optional=True),
        build_number_column("first word (s)", "first_word_s", optional=True),
        build_number_column("whole (s)", "total_s", optional=True),
    ]
    note = "Length: characters of the translation over those of the text."
    note += " Gray: another one is significantly better." if beaten else ""
    return View.from_rows("Translations by direction", view_columns, summary, note)


def _build_leading_columns(
    columns: Columns, score: str | None, beaten: Collection[tuple[str, str]]
) -> list[DisplayColumn]:
    """Return the columns of a line of the summary: its direction, its texts and its score."""

    def build_bar(row: Mapping[Any, Any]) -> Bar | None:
        strong = not _is_beaten(row, columns, beaten)
        return None if is_missing(row.get("chrf")) else Bar(float(row["chrf"]), strong=strong)

    chrf = build_number_column("chrF", "chrf", ".1f", strong=True, optional=score == "back_chrf")
    return [
        DisplayColumn("direction", lambda row: _format_direction(row, *columns[2:]), strong=True),
        build_count_of_total_column("texts", "utterances", "texts"),
        chrf._replace(bar=build_bar),
    ]


def _format_common_score(row: Mapping[Hashable, Any]) -> str | None:
    score, shared = row.get("common_chrf"), row.get("common_utterances")
    return None if is_missing(score) else f"{score:.1f} on {shared:.0f}"


def _substitute_common_scores(summary: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the summary with the scores on the texts that all systems have, where some lack a text."""
    if "common_chrf" not in summary.columns:
        return summary
    has_common = summary["common_chrf"].notna()
    counts = {"utterances": summary["utterances"].mask(has_common, summary["common_utterances"])}
    return summary.assign(**counts, **{score: summary[score].mask(has_common, summary["common_chrf"])})


def _build_terms_view(terms: pd.DataFrame) -> View:
    """Return the terms that some system lost, with what each system kept of them side by side."""
    terms = terms.assign(system=terms["system"].astype(str) if "system" in terms.columns else "kept")
    keys = ["term", *terms.columns.intersection(["source_lang", "target_lang"])]
    systems = list(dict.fromkeys(terms["system"]))
    kept = terms.pivot_table("preserved", keys, "system", "first", sort=False, observed=True).reset_index()
    facts = terms.drop_duplicates(keys)[[*keys, "target", "expected"]]
    rows = facts.merge(kept, on=keys, how="left")
    lost = rows[(rows[systems] < 1).any(axis=1)]
    others = format_count(len(rows) - len(lost), "other term was kept", "other terms were kept")
    view_columns = [
        build_text_column("term", "term", strong=True),
        DisplayColumn("accepted", _format_other_translations, optional=True),
        DisplayColumn("direction", _format_direction),
        build_count_column("expected", "expected"),
        *(build_rate_column(name, name) for name in systems),
    ]
    return View.from_rows("Terms that were lost", view_columns, lost, f"{others} throughout.")


def _format_other_translations(row: Mapping[Hashable, Any]) -> str | None:
    """Return the accepted translations of a term, if it need not stay as it is."""
    accepted = str(row["target"])
    return None if accepted == row["term"] else accepted


def _choose_row_display(table: pd.DataFrame, columns: Columns) -> ShownRows:
    source, reference, source_lang, target_lang = columns
    roles: dict[str, Any] = {"reference": reference, "hypotheses": "translation", "language": target_lang}
    if not reference and "back_translation" in table.columns:
        roles = {"reference": source, "hypotheses": "back_translation", "language": source_lang}
    elif not reference:
        roles = {}
    texts = ("system", source, "translation", reference, "back_translation")
    flags = [name for name in ("copied", "loop") if name in table.columns and table[name].any()]
    candidates = (*texts, "chrf", "back_chrf", *flags, "error")
    filled = [name for name in candidates if name in table.columns and table[name].notna().any()]
    lowest = next((name for name in ("chrf", "back_chrf") if name in filled), "")
    return ShownRows(options={**roles, "columns": filled}, lowest=lowest)


def _format_direction(
    row: Mapping[Hashable, Any], source: str = "source_lang", target: str = "target_lang"
) -> str:
    direction = f"{row[source]} → {row[target]}"
    return f"{row['system']}, {direction}" if row.get("system") else direction


def _build_conclusion(
    summary: pd.DataFrame,
    differences: pd.DataFrame,
    table: pd.DataFrame,
    columns: Columns,
    claims: tuple[float, str],
    no_worse: pd.DataFrame,
) -> Conclusion:
    """Return which system to take for each direction; for one system, how close its translations are."""
    if "system" in table.columns and table["system"].nunique() > 1 and len(differences):
        return build_systems_conclusion(differences, table, columns, *claims, no_worse)
    if not len(summary):
        return Conclusion("Nothing was translated.")
    return _build_scores_conclusion(summary, table, columns)


def _build_scores_conclusion(summary: pd.DataFrame, table: pd.DataFrame, columns: Columns) -> Conclusion:
    """Return how close the translations are, with a line for each direction or system."""
    column, what = ("chrf", "chrF") if columns.reference else ("back_chrf", "when translated back chrF")
    rows = summary.to_dict("records")
    scored = [row for row in rows if not is_missing(row.get(column))]
    if not scored:
        texts = format_count(sum(int(row.get("utterances", 0)) for row in rows), "text")
        why = "Give references, or have them translated back."
        return Conclusion(f"{texts} were translated, and nothing was scored.", why)
    scores = list(dict.fromkeys(f"{score:.1f}" for score in sorted(row[column] for row in scored)))
    span = scores[0] if len(scores) == 1 else f"{scores[0]} to {scores[-1]}"
    labels = [_name_line(row, columns) for row in rows]
    if len(rows) > 1:
        lines = [
            ["" if is_missing(row.get(column)) else f"{what} {row[column]:.1f}", *_list_counts(row)]
            for row in rows
        ]
        words = [f"{label}: {join_fitting_clauses(line)}." for label, line in zip(labels, lines, strict=True)]
        if len({row.get(columns.target_lang) for row in rows}) > 1:
            words.append("chrF compares wording, not meaning; it cannot compare two languages.")
        few = _describe_few_texts(rows, "each")
        return Conclusion(few or f"Translations score {what} {span} of 100.", "\n".join(words))
    (row,), counts = rows, _list_counts(rows[0])
    if columns.reference and row.get("empties", 0) > _EMPTY_SHARE * row["utterances"]:
        others = table[table["chrf"].notna() & ~table["empty"].fillna(value=False).astype(bool)]
        score, _ = score_corpus(others, columns.reference, "translation", str(row[columns.target_lang]))
        rest = "" if score is None else f"the others score chrF {score:.1f} of 100, all together {span}"
        lead = f"{row['empties']} of {format_count(int(row['texts']), 'translation')} came back empty."
        line = join_fitting_clauses([rest, *(count for count in counts[1:] if "empty" not in count)])
        return Conclusion(lead, f"{capitalize_unless_name(line)}.")
    if few := _describe_few_texts(rows, f"from {labels[0]}"):
        reached = f"{what} {span} of 100, where 100 is the same text"
        return Conclusion(few, f"{join_fitting_clauses([reached, *counts[1:]])}.")
    return Conclusion(
        f"Translations from {labels[0]} score {what} {span} of 100.",
        f"{join_fitting_clauses(counts)}; 100 is the same text.",
    )


def _describe_few_texts(rows: Sequence[Mapping[Any, Any]], which: str) -> str:
    """Return that texts are too few to judge translations by, if they are."""
    counts = [int(row["utterances"]) for row in rows]
    if max(counts) >= MIN_PAIRS:
        return ""
    span = f"{min(counts)} to " if min(counts) < max(counts) else ""
    return f"{span}{format_count(max(counts), 'text')} {which}: too few to judge the translations."


def _name_line(row: Mapping[Any, Any], columns: Columns) -> str:
    """Return the direction of a line of the summary, after its system if there are several."""
    source, target = (
        format_language(str(row.get(name))) for name in (columns.source_lang, columns.target_lang)
    )
    return (
        f"{quote_name(row['system'])}, {source} to {target}" if row.get("system") else f"{source} to {target}"
    )


def _list_counts(row: Mapping[Any, Any]) -> list[str]:
    """Return how many texts were translated, and how many failed, were empty, copied or loops."""
    count, total = int(row.get("utterances", 0)), int(row.get("texts", 0))
    clauses = [format_count(count, "text")]
    if total > count:
        clauses.append(
            f"{total - count} of {total} failed and {'is' if total - count == 1 else 'are'} left out"
        )
    if row.get("empties"):
        clauses.append(f"{row['empties']} of {total} came back empty")
    oddities = [f"{row[name]} {name}" for name in ("copies", "loops") if row.get(name)]
    return clauses + ([f"among them {join_with_and(oddities)}"] if oddities else [])
