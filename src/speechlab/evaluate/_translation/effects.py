"""Effects of a service or setting: terms kept, and the change of other scores, by paired tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.evaluate._writing.contents import Finding
from speechlab.evaluate._writing.differences import BACK, CHRF, difference_words, of_study
from speechlab.metrics import BETTER, compare_translations, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from speechlab.evaluate._translation.measures import Columns

KEPT = "terms kept"
WITH, WITHOUT = "texts with terms", "texts without terms"


def translation_differences(table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Compare each system with the first one, on the texts that all of them translated.

    Args:
        table: The rows of the study.
        columns: Their columns.

    Returns:
        A row for each further system, direction (``language``), set of texts (``condition``: those with and without
        terms of the glossary, if there is one) and measure (chrF; chrF of the back-translation, without references;
        terms kept, a fraction, the mean of the texts), as of :func:`speechlab.metrics.judge`. Without rows for one
        system.
    """
    if "system" not in table.columns:
        return judge([])
    found: list[dict[str, Any]] = []
    place = table.groupby("system", sort=False).cumcount()
    measure = CHRF if columns.reference else BACK
    kept = "translation" if columns.reference else "back_translation"
    for (source, target), part in table.assign(_place=place).groupby(
        [columns.source_lang, columns.target_lang], sort=False
    ):
        systems = {str(name): rows.set_index("_place") for name, rows in part.groupby("system", sort=False)}
        whole = _of_all(systems, ["translation"])
        facts = {"language": f"{source} → {target}"}
        if "terms_expected" in table.columns:
            first = next(iter(systems.values()))
            terms = first.loc[whole, "terms_expected"].gt(0)
            with_terms = [place for place, has in zip(whole, terms, strict=True) if has]
            found += [
                {**row, **facts, "condition": WITH} for row in _compared(systems, with_terms, KEPT, columns)
            ]
            groups = {WITH: with_terms, WITHOUT: [place for place in whole if place not in set(with_terms)]}
        else:
            groups = {"": whole}
        if kept not in table.columns:
            continue
        scored = set(_of_all(systems, [kept, columns.reference or columns.text]))
        for texts, places in groups.items():
            rows = _compared(systems, [place for place in places if place in scored], measure, columns)
            found += [{**row, **facts, "condition": texts} for row in rows]
    return of_study(judge(found, more=BETTER))


def difference_findings(differences: pd.DataFrame) -> tuple[Finding, ...]:
    """Return a finding for each system and direction."""
    said = []
    for (system, baseline, way), part in differences.groupby(["b", "a", "language"], sort=False):
        told = [
            f"{row['condition']}{', ' if row['condition'] else ''}{difference_words(row)}: {row['verdict']}"
            for row in part.to_dict("records")
        ]
        words = f"{system} instead of {baseline}, {way}: {'; '.join(told)}."
        said.append(Finding(words, str(way).rpartition(" ")[2], systems=(str(system), str(baseline))))
    return tuple(said)


def _of_all(systems: dict[str, pd.DataFrame], names: Sequence[str]) -> list[int]:
    """Positions of the texts for which all systems have a result."""
    places: set[int] | None = None
    for rows in systems.values():
        there = set(rows.dropna(subset=list(names)).index) if set(names) <= set(rows.columns) else set()
        places = there if places is None else places & there
    return sorted(places or ())


def _compared(
    systems: dict[str, pd.DataFrame], places: list[int], measure: str, columns: Columns
) -> list[dict[str, Any]]:
    if not places or len(systems) < 2:
        return []
    here = {name: rows.loc[places] for name, rows in systems.items()}
    first = next(iter(here.values()))
    sources = first[columns.text].tolist()
    # A repeated text counts as one text: its translations are swapped together.
    how: dict[str, Any] = {
        "groups": None if len(set(sources)) == len(sources) else sources,
        "metrics": ["chrf"],
    }
    heard = "back_translation" if measure == BACK else "translation"
    said = first[columns.reference].tolist() if measure == CHRF else sources
    texts = {name: rows[heard].tolist() for name, rows in here.items()}
    if measure == KEPT:
        shares = {
            (source, translated): found / expected
            for rows in here.values()
            for source, translated, found, expected in zip(
                rows[columns.text],
                rows["translation"],
                rows["terms_found"],
                rows["terms_expected"],
                strict=True,
            )
        }
        how |= {
            "sources": sources,
            "scorers": {
                KEPT: lambda given, heard, _: [shares[pair] for pair in zip(given, heard, strict=True)]
            },
        }
    found = compare_translations(said, texts, **how)
    rows = found[found["measure"] == (KEPT if measure == KEPT else "chrf")].to_dict("records")
    unit = {"unit": "term"} if measure == KEPT else {}
    return [{**{str(name): cell for name, cell in row.items()}, "measure": measure, **unit} for row in rows]
