"""The answer of a study of translations: which system to take, or how close the translations are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab._arguments import is_missing
from speechlab.evaluate._writing.columns import listed, p_words, plural
from speechlab.evaluate._writing.contents import Conclusion
from speechlab.metrics import BETTER, WORSE, value_text

if TYPE_CHECKING:
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
            sure.append(_told(best, baseline, good[best]))
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
    return Conclusion(f"{lead[:1].upper()}{lead[1:]}.", f"{told[:1].upper()}{told[1:]}.")


def _helps(rows: pd.DataFrame) -> bool:
    verdicts = set(rows["verdict"])
    return BETTER in verdicts and WORSE not in verdicts


def _told(system: str, baseline: str, rows: pd.DataFrame) -> str:
    better = rows[rows["verdict"] == BETTER].to_dict("records")
    parts = [
        f"{row['measure']} ({value_text(row['value_a'], row['unit'])} to {value_text(row['value_b'], row['unit'])}, "
        f"{p_words(row['p_holm'])}, {plural(int(row['n']), 'text')})"
        for row in better
    ]
    rest = "" if (rows["verdict"] == BETTER).all() else ", and no loss is shown elsewhere"
    return f"{system} is better than {baseline} in {listed(parts)}{rest}"


def _scores(summary: pd.DataFrame, columns: Columns) -> Conclusion:
    column, what = ("chrf", "chrF") if columns.reference else ("back_chrf", "chrF when translated back")
    told, counts = [], []
    for row in summary.to_dict("records"):
        system = f"{row['system']}, " if row.get("system") else ""
        way = f"{system}{row.get(columns.source_lang)} → {row.get(columns.target_lang)}"
        counts.append(int(row.get("utterances", 0)))
        if not is_missing(row.get(column)):
            told.append(f"{way} reaches {what} {row[column]:.1f}")
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
        f"{'; '.join(told)}.", f"{plural(sum(counts), 'text')}{among}; chrF is 0 to 100, more is closer."
    )
