"""Differences between systems that translate: each pair on the texts that both translated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._pandas import pd
from speechlab.evaluate._advice.evidence import list_systems_failing_more, replace_uncertain_verdicts
from speechlab.evaluate._advice.no_worse import Contest, describe_failed_rows
from speechlab.evaluate._speech.blocks import fold_text
from speechlab.evaluate._writing.contents import Finding
from speechlab.evaluate._writing.differences import BACK, CHRF, build_study_differences, describe_difference
from speechlab.evaluate._writing.sentences import quote_name
from speechlab.metrics import BETTER, WORSE, compare_translations, compute_chrf_pseudo_values, judge

if TYPE_CHECKING:
    from speechlab.evaluate._translation.translation_measures import Columns

KEPT_TERMS = "terms kept"
WITH, WITHOUT = "texts with terms", "texts without terms"
_SYSTEM, _PLACE = "system", "_place"


def place_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the position of their text, which all systems share, and whether they have no translation."""
    failed, places = table["translation"].isna(), table.groupby("system", sort=False).cumcount()
    return table.assign(_place=places, system=table["system"].astype(str), failed=failed)


def choose_measure_and_text_columns(columns: Columns) -> tuple[str, str, str]:
    """Return the measure of translations, and the columns of the texts that it compares."""
    if columns.reference:
        return CHRF, columns.reference, "translation"
    return BACK, columns.text, "back_translation"


def compare_systems(table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Compare each pair of systems on the texts that both translated.

    Returns:
        A row for each pair, direction (``language``), set of texts (``condition``: with a glossary also those with
        and those without its terms, if there are both) and measure (chrF; chrF of the back-translation, without
        references; terms kept, a fraction, the mean of the texts), as from :func:`speechlab.metrics.judge`. Without
        rows for one system. No system is better that lacks more rows than the other.
    """
    if _SYSTEM not in table.columns:
        return judge([])
    comparisons: list[dict[str, Any]] = []
    placed = place_texts(table)
    directions = [columns.source_lang, columns.target_lang]
    for (source, target), group in placed.groupby(directions, sort=False):
        systems = {str(name): rows.set_index(_PLACE) for name, rows in group.groupby(_SYSTEM, sort=False)}
        for pair in combinations(systems, 2):
            tests = _compare_pair({name: systems[name] for name in pair}, columns)
            comparisons += [{**row, "language": f"{source} → {target}"} for row in tests]
    judged = build_study_differences(judge(comparisons, more=BETTER))
    parts = []
    for language, rows in judged.groupby("language", sort=False):
        source, _, target = str(language).partition(" → ")
        group = placed[
            (placed[directions[0]].astype(str) == source) & (placed[directions[1]].astype(str) == target)
        ]
        shares = {str(name): float(share) for name, share in group.groupby(_SYSTEM)["failed"].mean().items()}
        parts.append(
            replace_uncertain_verdicts(rows, list_systems_failing_more(group, _SYSTEM, _PLACE), shares)
        )
    return pd.concat(parts, ignore_index=True) if parts else judged


def _compare_pair(systems: dict[str, pd.DataFrame], columns: Columns) -> list[dict[Any, Any]]:
    """Return the tests of two systems: on all texts, and with a glossary on those with and without its terms."""
    measure, reference, output = choose_measure_and_text_columns(columns)
    rows = next(iter(systems.values()))
    shared = find_common_positions(systems, ["translation"])
    scored = find_common_positions(systems, [output, reference]) if output in rows else shared[:0]
    tests = [("", measure, scored)]
    if "terms_expected" in rows.columns:
        has_terms = (rows.loc[shared, "terms_expected"] > 0).fillna(value=False).astype(bool)
        sets = {WITH: shared[has_terms], WITHOUT: shared[~has_terms]}
        split = [
            (texts, measure, places.intersection(scored)) for texts, places in sets.items() if len(places)
        ]
        tests = [(WITH, KEPT_TERMS, sets[WITH]), *split, *(tests if len(split) > 1 else [])]
    return [
        {**row, "condition": texts}
        for texts, measured, places in tests
        for row in run_tests(systems, places, measured, columns)
    ]


def build_difference_findings(differences: pd.DataFrame) -> tuple[Finding, ...]:
    """Return a finding for each pair of systems and direction."""
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


def build_contests(
    table: pd.DataFrame, differences: pd.DataFrame, columns: Columns
) -> dict[tuple[str, str], Contest]:
    """Return what the chrF of systems lacks, by direction; those that failed or came back empty are not tested."""
    contests = {}
    placed = place_texts(table)
    for (source, target), group in placed.groupby([columns.source_lang, columns.target_lang], sort=False):
        rows = {str(name): part.set_index(_PLACE) for name, part in group.groupby(_SYSTEM, sort=False)}
        sizes = {name: len(part) for name, part in rows.items()}
        # Corpus chrF leaves empty translations out.
        empty = {name: int((part["translation"].str.strip() == "").sum()) for name, part in rows.items()}
        untested = {
            name: f"{quote_name(name)} came back empty on {count} of {sizes[name]}"
            for name, count in empty.items()
            if count
        }
        untested |= describe_failed_rows(
            {name: int(part["failed"].sum()) for name, part in rows.items()}, sizes
        )
        untested |= {} if columns.reference else {"": "there is no reference"}
        tested = {name: part for name, part in rows.items() if not {name, ""} & {*untested}}
        needed = ["translation", *filter(None, [columns.reference])]
        places, lost = find_common_positions(tested or rows, needed), {}
        if len(tested) > 1 and len(places):
            shared = {name: part.loc[places] for name, part in tested.items()}
            first = next(iter(shared.values()))
            texts = {name: part["translation"].tolist() for name, part in shared.items()}
            blocks = group_repeated_texts(first[columns.text])
            values = compute_chrf_pseudo_values(first[columns.reference].tolist(), texts, blocks)
            lost = {name: 1 - of_system / 100 for name, of_system in values.items()}
        direction = f"{source} → {target}"
        p_values = differences.loc[differences["language"] == direction, "p"].dropna().tolist()
        frame = pd.DataFrame(lost)
        contests[direction, ""] = Contest(
            [*rows], p_values, frame, np.ones(len(frame)), len(places), CHRF, untested
        )
    return contests


def list_beaten_systems(differences: pd.DataFrame) -> set[tuple[str, str]]:
    """Return the systems, after their direction, than which another one has a significantly higher score."""
    scores = differences[(differences["condition"] == "") & differences["measure"].isin([CHRF, BACK])]
    return {
        (str(row["language"]), str(row["a"] if row["verdict"] == BETTER else row["b"]))
        for row in scores.to_dict("records")
        if row["verdict"] in {BETTER, WORSE}
    }


def find_common_positions(systems: dict[str, pd.DataFrame], names: Sequence[str]) -> pd.Index[int]:
    """Return the positions of the texts for which all systems have a result."""
    first, *others = [rows.index[rows[list(names)].notna().all(axis=1)] for rows in systems.values()]
    for positions in others:
        first = first.intersection(positions)
    return first.sort_values()


def group_repeated_texts(sources: Iterable[object]) -> list[str] | None:
    """Return blocks, in which a repeated text counts as one, so that its translations are swapped together."""
    folded = [fold_text(str(source)) for source in sources]
    return None if len(set(folded)) == len(folded) else folded


def run_tests(
    systems: dict[str, pd.DataFrame], places: pd.Index[int], measure: str, columns: Columns
) -> list[dict[Any, Any]]:
    """Return the test of two systems on the texts at some positions."""
    if not len(places) or len(systems) < 2:
        return []
    shared = {name: rows.loc[places] for name, rows in systems.items()}
    first = next(iter(shared.values()))
    sources = [str(cell) for cell in first[columns.text]]  # translations that exist may be of no text
    groups = group_repeated_texts(sources)
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
