"""Systems of translation compared with the first, and the answer: which one to take, or how close it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab.evaluate._writing.columns import listed, named, p_words, plural, sentence
from speechlab.evaluate._writing.contents import Conclusion, Finding
from speechlab.evaluate._writing.differences import BACK, CHRF, difference_words, of_study
from speechlab.metrics import BETTER, WORSE, compare_translations, judge, value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from speechlab.evaluate._translation.measures import Columns


_FEWEST = 6


def translation_answer(
    summary: pd.DataFrame, differences: pd.DataFrame, table: pd.DataFrame, columns: Columns
) -> Conclusion:
    """Return which system to take for each direction; for one system, how close its translations are."""
    untranslated = int(table["translation"].isna().sum())
    untranslated_words = (
        f" {untranslated:,} of {plural(len(table), 'text')} {'has' if untranslated == 1 else 'have'} no translation."
        if untranslated
        else ""
    )
    if len(differences):
        answer = _choice(differences)
    elif len(summary):
        answer = _scores(summary, columns)
    else:
        answer = Conclusion("Nothing was translated.")
    return Conclusion(answer.text, f"{answer.certainty}{untranslated_words}".strip())


def _choice(differences: pd.DataFrame) -> Conclusion:
    leads, certainties = [], []
    directions = differences.groupby("language", sort=False)
    for direction, rows in directions:
        for_direction = f" for {direction}" if directions.ngroups > 1 else ""
        baseline = str(rows["a"].iloc[0])
        better = {str(name): group for name, group in rows.groupby("b", sort=False) if _helps(group)}
        if better:
            best = max(better, key=lambda name: float(better[name]["difference"].max()))
            leads.append(f"take {best}{for_direction}")
            certainties.append(_better_words(best, baseline, better[best]) + _runner_up(best, better))
            continue
        leads.append(f"keep {baseline}{for_direction}")
        count = int(rows["n"].max())
        texts = plural(count, "text")
        scope = (
            f"; {texts} {'is' if count == 1 else 'are'} too few to show any"
            if count < _FEWEST
            else f" on {texts}"
        )
        worse = [
            str(name) for name, group in rows.groupby("b", sort=False) if (group["verdict"] == WORSE).any()
        ]
        harm = f", and {listed(worse)} {'is' if len(worse) == 1 else 'are'} worse" if worse else ""
        certainties.append(f"nothing is shown to be better than {baseline}{scope}{harm}")
    lead = listed(leads)
    certainty = "; ".join(certainties)
    return Conclusion(f"{sentence(lead)}.", f"{sentence(certainty)}.")


def _runner_up(best: str, good: Mapping[str, pd.DataFrame]) -> str:
    """The runner-up of the systems that are better than the first."""
    runners_up = {name: rows for name, rows in good.items() if name != best}
    if not runners_up:
        return ""
    name = max(runners_up, key=lambda system: float(runners_up[system]["difference"].max()))
    row = runners_up[name].sort_values("difference").to_dict("records")[-1]
    score = value_text(row["value_b"], row["unit"])
    return f", and so is {name} ({score}); these two were not tested against each other"


def _helps(rows: pd.DataFrame) -> bool:
    verdicts = set(rows["verdict"])
    return BETTER in verdicts and WORSE not in verdicts


def _better_words(system: str, baseline: str, rows: pd.DataFrame) -> str:
    better = rows[rows["verdict"] == BETTER].to_dict("records")
    clauses = [
        f"{row['measure']} ({value_text(row['value_b'], row['unit'])} against "
        f"{value_text(row['value_a'], row['unit'])}, {p_words(row['p_holm'])}, {plural(int(row['n']), 'text')})"
        for row in better
    ]
    elsewhere = "" if (rows["verdict"] == BETTER).all() else ", and no loss is shown elsewhere"
    return f"{system} is better than {baseline} in {listed(clauses)}{elsewhere}"


def _scores(summary: pd.DataFrame, columns: Columns) -> Conclusion:
    column, what = ("chrf", "chrF") if columns.reference else ("back_chrf", "when translated back chrF")
    clauses, counts = [], []
    for row in summary.to_dict("records"):
        system = f"{row['system']}: " if row.get("system") else ""
        source, target = (named(str(row.get(name))) for name in (columns.source_lang, columns.target_lang))
        subject = f"{system}translations from {source} to {target}"
        counts.append(int(row.get("utterances", 0)))
        if not is_missing(row.get(column)):
            clauses.append(f"{subject} reach {what} {row[column]:.1f} of 100")
    if not clauses:
        texts = plural(sum(counts), "text")
        return Conclusion(
            f"{texts} were translated, and nothing was scored.",
            "Give references, or have them translated back.",
        )
    flags = {"copies": "copies", "loops": "loops"}
    oddities = [
        f"{int(summary[name].sum())} {word}"
        for name, word in flags.items()
        if name in summary and summary[name].sum()
    ]
    among = f", among them {listed(oddities)}" if oddities else ""
    return Conclusion(
        sentence(f"{'; '.join(clauses)}."), f"{plural(sum(counts), 'text')}{among}; 100 is the same text."
    )


KEPT = "terms kept"
WITH, WITHOUT = "texts with terms", "texts without terms"


def translation_differences(table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Compare each system with the first one, on the texts that all of them translated.

    Returns:
        A row for each further system, direction (``language``), set of texts (``condition``: those with and without
        terms of the glossary, if there is one) and measure (chrF; chrF of the back-translation, without references;
        terms kept, a fraction, the mean of the texts), as of :func:`speechlab.metrics.judge`. Without rows for one
        system.
    """
    if "system" not in table.columns:
        return judge([])
    comparisons: list[dict[str, Any]] = []
    place = table.groupby("system", sort=False).cumcount()
    measure = CHRF if columns.reference else BACK
    output = "translation" if columns.reference else "back_translation"
    for (source, target), group in table.assign(_place=place).groupby(
        [columns.source_lang, columns.target_lang], sort=False
    ):
        systems = {str(name): rows.set_index("_place") for name, rows in group.groupby("system", sort=False)}
        shared = _of_all(systems, ["translation"])
        facts = {"language": f"{source} → {target}"}
        if "terms_expected" in table.columns:
            first = next(iter(systems.values()))
            terms = first.loc[shared, "terms_expected"].gt(0)
            with_terms = [place for place, has in zip(shared, terms, strict=True) if has]
            comparisons += [
                {**row, **facts, "condition": WITH} for row in _compared(systems, with_terms, KEPT, columns)
            ]
            groups = {WITH: with_terms, WITHOUT: [place for place in shared if place not in set(with_terms)]}
        else:
            groups = {"": shared}
        if output not in table.columns:
            continue
        scored = set(_of_all(systems, [output, columns.reference or columns.text]))
        for texts, places in groups.items():
            rows = _compared(systems, [place for place in places if place in scored], measure, columns)
            comparisons += [{**row, **facts, "condition": texts} for row in rows]
    return of_study(judge(comparisons, more=BETTER))


def difference_findings(differences: pd.DataFrame) -> tuple[Finding, ...]:
    """Return a finding for each system and direction."""
    findings = []
    for (system, baseline, direction), rows in differences.groupby(["b", "a", "language"], sort=False):
        clauses = [
            f"{row['condition']}{', ' if row['condition'] else ''}{difference_words(row)}: {row['verdict']}"
            for row in rows.to_dict("records")
        ]
        words = f"{system} instead of {baseline}, {direction}: {'; '.join(clauses)}."
        code = str(direction).rpartition(" ")[2]
        findings.append(Finding(words, code, systems=(str(system), str(baseline)), shown="method"))
    return tuple(findings)


def _of_all(systems: dict[str, pd.DataFrame], names: Sequence[str]) -> list[int]:
    """Positions of the texts for which all systems have a result."""
    places: set[int] | None = None
    for rows in systems.values():
        translated = set(rows.dropna(subset=list(names)).index) if set(names) <= set(rows.columns) else set()
        places = translated if places is None else places & translated
    return sorted(places or ())


def _compared(
    systems: dict[str, pd.DataFrame], places: list[int], measure: str, columns: Columns
) -> list[dict[str, Any]]:
    if not places or len(systems) < 2:
        return []
    shared = {name: rows.loc[places] for name, rows in systems.items()}
    first = next(iter(shared.values()))
    sources = first[columns.text].tolist()
    # A repeated text counts as one text: its translations are swapped together.
    options: dict[str, Any] = {
        "groups": None if len(set(sources)) == len(sources) else sources,
        "metrics": ["chrf"],
    }
    column = "back_translation" if measure == BACK else "translation"
    references = first[columns.reference].tolist() if measure == CHRF else sources
    texts = {name: rows[column].tolist() for name, rows in shared.items()}
    if measure == KEPT:
        shares = {
            (source, translated): comparison / expected
            for rows in shared.values()
            for source, translated, comparison, expected in zip(
                rows[columns.text],
                rows["translation"],
                rows["terms_found"],
                rows["terms_expected"],
                strict=True,
            )
        }
        options |= {
            "sources": sources,
            "scorers": {
                KEPT: lambda given, column, _: [shares[pair] for pair in zip(given, column, strict=True)]
            },
        }
    comparison = compare_translations(references, texts, **options)
    rows = comparison[comparison["measure"] == (KEPT if measure == KEPT else "chrf")].to_dict("records")
    unit = {"unit": "term"} if measure == KEPT else {}
    return [{**{str(name): cell for name, cell in row.items()}, "measure": measure, **unit} for row in rows]
