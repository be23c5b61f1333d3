"""Effects of a service or setting: terms kept, and the change of other scores, by paired tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.evaluate._finding import Finding
from speechlab.evaluate._report import verdicts_of
from speechlab.evaluate._speech.summary import ENOUGH
from speechlab.evaluate._writing.columns import listed, p_words
from speechlab.evaluate._writing.methods import RANDOMIZATION
from speechlab.metrics import compare_translations, holm

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import pandas as pd

    from speechlab.evaluate._translation.measures import Columns

CHRF, BACK, KEPT = MEASURES = ("chrF", "chrF of the translation back", "terms kept")
"""Measures for the comparison of systems, from 0 to 100; more is better."""
WITH, WITHOUT, ALL = "texts with terms", "texts without terms", "all texts"
_LEVEL = 0.95
_COLUMNS = (
    *("system", "baseline", "source_lang", "target_lang", "texts", "measure", "utterances"),
    *("score_baseline", "score", "difference", "difference_low", "difference_high"),
    *("p", "p_holm", "significant", "verdict", "test"),
)

_FIGURES = ("score_baseline", "score", "difference", "difference_low", "difference_high", "p")


def effects(table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Compare each system with the first one, on the texts that all of them translated.

    Args:
        table: The rows of the study.
        columns: Their columns.

    Returns:
        A row for each further system, direction, set of texts and measure: ``system``, ``baseline``,
        ``source_lang``, ``target_lang``, ``texts`` (all texts, or those with and without terms of the glossary),
        ``measure`` (chrF; chrF of the back-translation, without references; terms kept, in percent, the mean of the
        texts), ``utterances``, ``score_baseline``, ``score``, ``difference`` with ``difference_low`` and
        ``difference_high`` (95 %, from 20 texts on), ``p``, ``p_holm`` (corrected for the number of rows),
        ``significant``, ``verdict`` and ``test``. Empty with one system.
    """
    import pandas as pd

    if "system" not in table.columns:
        return pd.DataFrame(columns=list(_COLUMNS))
    found = []
    place = table.groupby("system", sort=False).cumcount()
    measure = CHRF if columns.reference else BACK
    kept = "translation" if columns.reference else "back_translation"
    for (source, target), part in table.assign(_place=place).groupby(
        [columns.source_lang, columns.target_lang], sort=False
    ):
        systems = {str(name): rows.set_index("_place") for name, rows in part.groupby("system", sort=False)}
        whole = _of_all(systems, ["translation"])
        facts = {"source_lang": source, "target_lang": target}
        if "terms_expected" in table.columns:
            first = next(iter(systems.values()))
            terms = first.loc[whole, "terms_expected"].gt(0)
            with_terms = [place for place, has in zip(whole, terms, strict=True) if has]
            found += [
                {**facts, "texts": WITH, **row} for row in _compared(systems, with_terms, KEPT, columns)
            ]
            groups = {WITH: with_terms, WITHOUT: [place for place in whole if place not in set(with_terms)]}
        else:
            groups = {ALL: whole}
        if kept not in table.columns:
            continue
        scored = set(_of_all(systems, [kept, columns.reference or columns.text]))
        for texts, places in groups.items():
            rows = _compared(systems, [place for place in places if place in scored], measure, columns)
            found += [{**facts, "texts": texts, **row} for row in rows]
    return _judged(
        pd.DataFrame(
            found, columns=[name for name in _COLUMNS if name not in {"p_holm", "significant", "verdict"}]
        )
    )


def effect_findings(table: pd.DataFrame) -> tuple[Finding, ...]:
    """Return the effects as findings, one for each system and direction."""
    said = []
    for (system, baseline, source, target), part in table.assign(p=table["p_holm"].map(p_words)).groupby(
        ["system", "baseline", "source_lang", "target_lang"], sort=False
    ):
        told = [
            f"{row['measure']} in {row['texts']} {'went ' if number == 0 else ''}"
            f"from {_score(row, 'score_baseline')} to {_score(row, 'score')} "
            f"({row['verdict']}, {_interval(row)}{row['p']}, {row['utterances']:,} "
            f"{'text' if row['utterances'] == 1 else 'texts'})"
            for number, row in enumerate(part.to_dict("records"))
        ]
        words = f"{system} instead of {baseline}, {source} → {target}: {listed(told)}."
        said.append(Finding(words, str(target), systems=(str(system), str(baseline))))
    return tuple(said)


def _score(row: Mapping[Hashable, Any], name: str) -> str:
    """Write a score; shares are in percent."""
    return f"{row[name]:.1f}{'%' if row['measure'] == KEPT else ''}"


def _interval(row: Mapping[Hashable, Any]) -> str:
    low, high = row["difference_low"], row["difference_high"]
    return f"95 % interval of the difference {low:+.1f} to {high:+.1f}, " if low == low else ""


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
            (source, translated): 100 * found / expected
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
    rows = found[found["metric"] == (KEPT if measure == KEPT else "chrf")].to_dict("records")
    base, *others = rows
    return [
        {
            "system": row["system"],
            "baseline": base["system"],
            "measure": measure,
            "utterances": row["utterances"],
            "score_baseline": base["score"],
            "score": row["score"],
            **compared_difference(row),
            "test": RANDOMIZATION,
        }
        for row in others
    ]


def compared_difference(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Return the difference of a row of a comparison, with its interval if the coverage is sound."""
    ends = ("difference_low", "difference_high")
    sound = row["blocks"] >= ENOUGH
    return {
        "difference": row["difference"],
        **{end: row[end] if sound else None for end in ends},
        "p": row["p"],
    }


def _judged(found: pd.DataFrame) -> pd.DataFrame:
    out = found.astype(dict.fromkeys(_FIGURES, "float64"))
    out["p_holm"] = holm(out["p"].to_numpy())
    out["significant"] = out["p_holm"] < 1 - _LEVEL
    out["verdict"] = verdicts_of(out["significant"], -out["difference"])
    return out[list(_COLUMNS)]
