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
    lost = int(table["translation"].isna().sum())
    missing = (
        f" {lost:,} of {plural(len(table), 'text')} {'has' if lost == 1 else 'have'} no translation."
        if lost
        else ""
    )
    if len(differences):
        answer = _choice(differences)
    elif len(summary):
        answer = _scores(summary, columns)
    else:
        answer = Conclusion("Nothing was translated.")
    return Conclusion(answer.text, f"{answer.certainty}{missing}".strip())


def _choice(differences: pd.DataFrame) -> Conclusion:
    leads, sure = [], []
    directions = differences.groupby("language", sort=False)
    for way, rows in directions:
        where = f" for {way}" if directions.ngroups > 1 else ""
        baseline = str(rows["a"].iloc[0])
        good = {str(name): part for name, part in rows.groupby("b", sort=False) if _helps(part)}
        if good:
            best = max(good, key=lambda name: float(good[name]["difference"].max()))
            leads.append(f"take {best}{where}")
            sure.append(_told(best, baseline, good[best]) + _next(best, good))
            continue
        leads.append(f"keep {baseline}{where}")
        count = int(rows["n"].max())
        texts = plural(count, "text")
        few = (
            f"; {texts} {'is' if count == 1 else 'are'} too few to show any"
            if count < _FEWEST
            else f" on {texts}"
        )
        worse = [
            str(name) for name, part in rows.groupby("b", sort=False) if (part["verdict"] == WORSE).any()
        ]
        harm = f", and {listed(worse)} {'is' if len(worse) == 1 else 'are'} worse" if worse else ""
        sure.append(f"nothing is shown to be better than {baseline}{few}{harm}")
    lead = listed(leads)
    told = "; ".join(sure)
    return Conclusion(f"{sentence(lead)}.", f"{sentence(told)}.")


def _next(best: str, good: Mapping[str, pd.DataFrame]) -> str:
    """The runner-up of the systems that are better than the first."""
    others = {name: rows for name, rows in good.items() if name != best}
    if not others:
        return ""
    name = max(others, key=lambda one: float(others[one]["difference"].max()))
    row = others[name].sort_values("difference").to_dict("records")[-1]
    score = value_text(row["value_b"], row["unit"])
    return f", and so is {name} ({score}); these two were not tested against each other"


def _helps(rows: pd.DataFrame) -> bool:
    verdicts = set(rows["verdict"])
    return BETTER in verdicts and WORSE not in verdicts


def _told(system: str, baseline: str, rows: pd.DataFrame) -> str:
    better = rows[rows["verdict"] == BETTER].to_dict("records")
    parts = [
        f"{row['measure']} ({value_text(row['value_b'], row['unit'])} against "
        f"{value_text(row['value_a'], row['unit'])}, {p_words(row['p_holm'])}, {plural(int(row['n']), 'text')})"
        for row in better
    ]
    rest = "" if (rows["verdict"] == BETTER).all() else ", and no loss is shown elsewhere"
    return f"{system} is better than {baseline} in {listed(parts)}{rest}"


def _scores(summary: pd.DataFrame, columns: Columns) -> Conclusion:
    column, what = ("chrf", "chrF") if columns.reference else ("back_chrf", "when translated back chrF")
    told, counts = [], []
    for row in summary.to_dict("records"):
        system = f"{row['system']}: " if row.get("system") else ""
        source, target = (named(str(row.get(name))) for name in (columns.source_lang, columns.target_lang))
        way = f"{system}translations from {source} to {target}"
        counts.append(int(row.get("utterances", 0)))
        if not is_missing(row.get(column)):
            told.append(f"{way} reach {what} {row[column]:.1f} of 100")
    if not told:
        texts = plural(sum(counts), "text")
        return Conclusion(
            f"{texts} were translated, and nothing was scored.",
            "Give references, or have them translated back.",
        )
    flags = {"copies": "copies", "loops": "loops"}
    odd = [
        f"{int(summary[name].sum())} {word}"
        for name, word in flags.items()
        if name in summary and summary[name].sum()
    ]
    among = f", among them {listed(odd)}" if odd else ""
    return Conclusion(
        sentence(f"{'; '.join(told)}."), f"{plural(sum(counts), 'text')}{among}; 100 is the same text."
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
        code = str(way).rpartition(" ")[2]
        said.append(Finding(words, code, systems=(str(system), str(baseline)), shown="method"))
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
