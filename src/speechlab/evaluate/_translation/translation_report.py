"""The report of the study of translations: systems compared with the first, and which to take, or how close it is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce
from typing import Any

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab._platform import get_package_version
from speechlab.display import format_count, join_with_and
from speechlab.evaluate._speech.scorers import SCORE_PREFIX
from speechlab.evaluate._speech.speed import build_empty_stream_table
from speechlab.evaluate._speech.summary import build_load_views
from speechlab.evaluate._statistics import MIN_PAIRS
from speechlab.evaluate._translation.translation_measures import Columns
from speechlab.evaluate._writing.columns import (
    DisplayColumn,
    View,
    build_count_column,
    build_count_of_total_column,
    build_number_column,
    build_rate_column,
    build_text_column,
    capitalize_sentence,
    format_language,
)
from speechlab.evaluate._writing.contents import Conclusion, Contents, Drawing, Finding, ShownRows
from speechlab.evaluate._writing.differences import (
    BACK,
    CHRF,
    build_differences_view,
    build_study_differences,
    describe_difference,
)
from speechlab.evaluate._writing.methods import describe_methods
from speechlab.metrics import BETTER, WORSE, compare_translations, format_value, judge

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
    calls = build_empty_stream_table() if speed is None else speed
    terms_table = pd.DataFrame() if terms is None else terms
    differences = compare_systems(table, columns)
    scores = [name for name in ("chrf", "back_chrf") if name in summary and summary[name].notna().any()]
    score = next(iter(scores), None)
    keys = [*(["system"] if "system" in summary else []), *columns[2:]]
    options: dict[str, Any] = {"score": score, "by": keys}
    drawings = [] if score is None else [Drawing("Scores", "translation_scores", ("scores",), options)]
    views = [_build_scores_view(summary, columns, score)]
    if len(differences):
        note = "Each system against the first, on the texts that all of them translated, by paired randomization."
        views.append(build_differences_view(differences, "Differences from the first system", note))
        drawings.append(Drawing("Differences from the first system", "differences", ("differences",)))
    views += [_build_terms_view(terms_table)] if len(terms_table) else []
    if len(calls):
        by = [*(["system"] if (calls["system"] != "").any() else []), "source_lang", "target_lang"]
        options = {"column": "first_word_s", "by": by}
        drawings.append(Drawing("Time to the first word", "distributions", ("speed",), options))
    signatures = [] if "signature" not in summary else list(summary["signature"].dropna())
    methods = {
        "chrf": "chrf" in scores,
        "back": "back_chrf" in scores,
        "terms": "terms_expected" in summary,
        "streams": len(calls),
        "loops": "loop" in table,
        "randomization": len(differences),
        "holm": len(differences),
        "paired intervals": differences["low"].notna().any(),
    }
    return Contents(
        title,
        table,
        summary,
        build_translation_conclusion(summary, differences, table, columns),
        "translation",
        findings=build_difference_findings(differences),
        notes=tuple(notes),
        differences=differences,
        speed=calls,
        tables={
            "terms": terms_table,
            "scores": summary if score is None else _substitute_common_scores(summary, score),
        },
        columns=dict(zip(_NAMES._fields, columns, strict=True)),
        views=(*views, *build_load_views(calls)),
        drawings=tuple(drawings),
        shown=_build_shown_rows(table, columns),
        said=describe_methods(title, *(name for name, applies in methods.items() if applies)),
        facts={
            "speechlab": get_package_version(),
            "chrF": str(next(iter(signatures), "none")),
            "speed": f"{len(calls)} streams, one at a time, in turns" if len(calls) else "not measured",
            **({} if columns.reference else {"references": "none"}),
        },
        record=record or {},
    )


def _build_scores_view(summary: pd.DataFrame, columns: Columns, score: str | None) -> View:
    view_columns = [
        DisplayColumn("direction", lambda row: _format_direction(row, *columns[2:]), strong=True),
        build_count_of_total_column("texts", "utterances", "texts"),
        build_number_column("chrF", "chrf", ".1f", strong=True, optional=score == "back_chrf"),
        build_number_column("chrF back", "back_chrf", ".1f", optional=True),
        DisplayColumn("on the same texts", _format_common_score, figure=True, optional=True),
        *(
            build_number_column(str(name).removeprefix(SCORE_PREFIX), str(name), ".3f")
            for name in summary
            if str(name).startswith(SCORE_PREFIX)
        ),
        build_number_column("length", "length_ratio"),
        build_count_column("copies", "copies", optional=True),
        build_count_column("loops", "loops", optional=True),
        build_rate_column("terms kept", "terms_kept", optional=True),
        build_number_column("first word (s)", "first_word_s", optional=True),
        build_number_column("whole (s)", "total_s", optional=True),
    ]
    note = "Length: characters of the translation over those of the text."
    return View.from_rows("Translations by direction", view_columns, summary, note)


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
    view_columns = [
        build_text_column("term", "term", strong=True),
        DisplayColumn("accepted translations", lambda row: str(row["target"])),
        DisplayColumn("direction", _format_direction),
        build_count_column("expected", "expected"),
        build_rate_column("kept", "preserved"),
    ]
    return View.from_rows("Terms of the glossary", view_columns, terms)


def _build_shown_rows(table: pd.DataFrame, columns: Columns) -> ShownRows:
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


def build_translation_conclusion(
    summary: pd.DataFrame, differences: pd.DataFrame, table: pd.DataFrame, columns: Columns
) -> Conclusion:
    """Return which system to take for each direction; for one system, how close its translations are."""
    untranslated = int(table["translation"].isna().sum())
    untranslated_words = (
        f" {untranslated:,} of {format_count(len(table), 'text')} "
        f"{'has' if untranslated == 1 else 'have'} no translation."
        if untranslated
        else ""
    )
    if len(differences):
        answer = _build_choice_conclusion(differences)
    elif len(summary):
        answer = _build_scores_conclusion(summary, columns)
    else:
        answer = Conclusion("Nothing was translated.")
    return Conclusion(answer.text, f"{answer.certainty}{untranslated_words}".strip())


def _build_choice_conclusion(differences: pd.DataFrame) -> Conclusion:
    leads, certainties = [], []
    directions = differences.groupby("language", sort=False)
    for direction, rows in directions:
        for_direction = f" for {direction}" if directions.ngroups > 1 else ""
        baseline = str(rows["a"].iloc[0])
        verdicts = rows.groupby("b", sort=False)["verdict"].agg(set)
        names = [name for name, each in verdicts.items() if BETTER in each and WORSE not in each]
        better = {str(name): rows[rows["b"] == name] for name in names}
        if better:
            best = max(better, key=lambda name: float(better[name]["difference"].max()))
            leads.append(f"take {best}{for_direction}")
            subject = best if directions.ngroups > 1 else "it"
            certainties.append(
                _describe_advantage(subject, baseline, better[best]) + _describe_runner_up(best, better)
            )
            continue
        leads.append(f"keep {baseline}{for_direction}")
        count = int(rows["n"].max())
        texts = format_count(count, "text")
        scope = f" on {texts}"
        if count < MIN_PAIRS:
            scope = f"; {texts} {'is' if count == 1 else 'are'} too few to show any"
        worse = [str(name) for name, each in verdicts.items() if WORSE in each]
        harm = f", and {join_with_and(worse)} {'is' if len(worse) == 1 else 'are'} worse" if worse else ""
        certainties.append(f"nothing is shown to be better than {baseline}{scope}{harm}")
    lead = join_with_and(leads)
    certainty = "; ".join(certainties)
    return Conclusion(f"{capitalize_sentence(lead)}.", f"{capitalize_sentence(certainty)}.")


def _describe_runner_up(best: str, good: Mapping[str, pd.DataFrame]) -> str:
    """Return the runner-up of the systems that are better than the first."""
    runners_up = {name: rows for name, rows in good.items() if name != best}
    if not runners_up:
        return ""
    name = max(runners_up, key=lambda system: float(runners_up[system]["difference"].max()))
    row = runners_up[name].sort_values("difference").to_dict("records")[-1]
    score = format_value(row["value_b"], row["unit"])
    return f", and so is {name} ({score}); these two were not tested against each other"


def _describe_advantage(system: str, baseline: str, rows: pd.DataFrame) -> str:
    better = rows[rows["verdict"] == BETTER].to_dict("records")
    clauses = [
        f"{row['measure']} ({format_value(row['value_b'], row['unit'])} against "
        f"{format_value(row['value_a'], row['unit'])}, {format_count(int(row['n']), 'text')})"
        for row in better
    ]
    elsewhere = "" if (rows["verdict"] == BETTER).all() else ", and no loss is shown elsewhere"
    return f"{system} is better than {baseline} in {join_with_and(clauses)}{elsewhere}"


def _build_scores_conclusion(summary: pd.DataFrame, columns: Columns) -> Conclusion:
    column, what = ("chrf", "chrF") if columns.reference else ("back_chrf", "when translated back chrF")
    clauses, counts = [], []
    for row in summary.to_dict("records"):
        system = f"{row['system']}: " if row.get("system") else ""
        source, target = (
            format_language(str(row.get(name))) for name in (columns.source_lang, columns.target_lang)
        )
        subject = f"{system}translations from {source} to {target}"
        counts.append(int(row.get("utterances", 0)))
        if not is_missing(row.get(column)):
            clauses.append(f"{subject} reach {what} {row[column]:.1f} of 100")
    if not clauses:
        texts = format_count(sum(counts), "text")
        return Conclusion(
            f"{texts} were translated, and nothing was scored.",
            "Give references, or have them translated back.",
        )
    flags = {name: int(summary[name].sum()) for name in ("copies", "loops") if name in summary}
    oddities = [f"{count_of} {name}" for name, count_of in flags.items() if count_of]
    among = f", among them {join_with_and(oddities)}" if oddities else ""
    return Conclusion(
        capitalize_sentence(f"{'; '.join(clauses)}."),
        f"{format_count(sum(counts), 'text')}{among}; 100 is the same text.",
    )


KEPT_TERMS = "terms kept"
WITH, WITHOUT = "texts with terms", "texts without terms"


def compare_systems(table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Compare each system with the first one, on the texts that all of them translated.

    Returns:
        A row for each further system, direction (``language``), set of texts (``condition``: those with and without
        terms of the glossary, if there is one) and measure (chrF; chrF of the back-translation, without references;
        terms kept, a fraction, the mean of the texts), as from :func:`speechlab.metrics.judge`. Without rows for one
        system.
    """
    if "system" not in table.columns:
        return judge([])
    comparisons: list[dict[str, Any]] = []
    measure, output = (CHRF, "translation") if columns.reference else (BACK, "back_translation")
    placed = table.assign(_place=table.groupby("system", sort=False).cumcount())
    for (source, target), group in placed.groupby([columns.source_lang, columns.target_lang], sort=False):
        systems = {str(name): rows.set_index("_place") for name, rows in group.groupby("system", sort=False)}
        shared = _find_common_positions(systems, ["translation"])
        scored = (
            _find_common_positions(systems, [output, columns.reference or columns.text])
            if output in group
            else shared[:0]
        )
        sets = {"": shared}
        tests = []
        if "terms_expected" in table.columns:
            has_terms = next(iter(systems.values())).loc[shared, "terms_expected"] > 0
            sets = {WITH: shared[has_terms], WITHOUT: shared[~has_terms]}
            tests = [(WITH, KEPT_TERMS, sets[WITH])]
        tests += [(texts, measure, places.intersection(scored)) for texts, places in sets.items()]
        comparisons += [
            {**row, "language": f"{source} → {target}", "condition": texts}
            for texts, measured, places in tests
            for row in _compare_systems_with_first(systems, places, measured, columns)
        ]
    return build_study_differences(judge(comparisons, more=BETTER))


def build_difference_findings(differences: pd.DataFrame) -> tuple[Finding, ...]:
    """Return a finding for each system and direction."""
    findings = []
    for (system, baseline, direction), rows in differences.groupby(["b", "a", "language"], sort=False):
        clauses = [
            f"{row['condition']}{', ' if row['condition'] else ''}{describe_difference(row)}: {row['verdict']}"
            for row in rows.to_dict("records")
        ]
        words = f"{system} instead of {baseline}, {direction}: {'; '.join(clauses)}."
        code = str(direction).rpartition(" ")[2]
        findings.append(Finding(words, code, systems=(str(system), str(baseline)), shown="method"))
    return tuple(findings)


def _find_common_positions(systems: Mapping[str, pd.DataFrame], names: Sequence[str]) -> pd.Index[int]:
    """Positions of the texts for which all systems have a result."""
    answered = [rows.index[rows[list(names)].notna().all(axis=1)] for rows in systems.values()]
    return reduce(lambda places, others: places.intersection(others), answered).sort_values()


def _compare_systems_with_first(
    systems: Mapping[str, pd.DataFrame], places: pd.Index[int], measure: str, columns: Columns
) -> list[dict[Any, Any]]:
    """Return the tests of each system against the first one, on the texts at some positions."""
    if not len(places) or len(systems) < 2:
        return []
    shared = {name: rows.loc[places] for name, rows in systems.items()}
    first = next(iter(shared.values()))
    sources = [str(cell) for cell in first[columns.text]]  # translations that exist may be of no text
    # A repeated text counts as one text: its translations are swapped together.
    groups = None if len(set(sources)) == len(sources) else sources
    column = "back_translation" if measure == BACK else "translation"
    references = first[columns.reference].tolist() if measure == CHRF else sources
    texts = {name: rows[column].tolist() for name, rows in shared.items()}
    scorers = {}
    if measure == KEPT_TERMS:
        cells = [columns.text, "translation", "terms_found", "terms_expected"]
        shares = {
            (source, translated): matched / expected
            for rows in shared.values()
            for source, translated, matched, expected in rows[cells].itertuples(index=False, name=None)
        }
        scorers = {
            KEPT_TERMS: lambda said, translated, _: [
                shares[pair] for pair in zip(said, translated, strict=True)
            ]
        }
    comparison = compare_translations(
        references, texts, sources=sources, groups=groups, metrics=["chrf"], scorers=scorers
    )
    rows = comparison[comparison["measure"] == (KEPT_TERMS if scorers else "chrf")]
    return rows.assign(measure=measure, **({"unit": "term"} if scorers else {})).to_dict("records")
