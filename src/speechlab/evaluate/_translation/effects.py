"""What a setting changes: terms that are kept, and what it costs or brings elsewhere, tested in pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.evaluate._report import verdicts_of
from speechlab.metrics import compare_translations, holm

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from speechlab.evaluate._translation.measures import Columns

CHRF, BACK, KEPT = MEASURES = ("chrF", "chrF of the translation back", "terms kept")
"""What settings are compared by; of each more is better, from 0 to 100."""
WITH, WITHOUT, ALL = "texts with terms", "texts without terms", "all texts"
RANDOMIZATION = "approximate randomisation"
_LEVEL = 0.95
_COLUMNS = (
    *("setting", "baseline", "source_lang", "target_lang", "texts", "measure", "utterances"),
    *("score_baseline", "score", "difference", "p", "p_holm", "significant", "verdict", "test"),
)


def effects(table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Compare each setting with the first, by the texts that all of them translated.

    Args:
        table: The rows of the study.
        columns: Of them.

    Returns:
        For each setting but the first, direction, set of texts and measure a row: ``setting``, ``baseline``,
        ``source_lang``, ``target_lang``, ``texts`` (all texts, or those with and without terms of the glossary),
        ``measure`` (chrF; chrF of the translation back, where there are no references; terms kept, in percent, the
        mean of the texts), ``utterances``, ``score_baseline``, ``score``, ``difference``, ``p``, ``p_holm``
        (corrected for the number of rows), ``significant``, ``verdict`` and ``test``. Empty with one setting.
    """
    import pandas as pd

    if "setting" not in table.columns:
        return pd.DataFrame(columns=list(_COLUMNS))
    found = []
    place = table.groupby("setting", sort=False).cumcount()
    measure = CHRF if columns.reference else BACK
    kept = "translation" if columns.reference else "back_translation"
    for (source, target), part in table.assign(_place=place).groupby(
        [columns.source_lang, columns.target_lang], sort=False
    ):
        settings = {str(name): rows.set_index("_place") for name, rows in part.groupby("setting", sort=False)}
        whole = _of_all(settings, ["translation"])
        facts = {"source_lang": source, "target_lang": target}
        if "terms_expected" in table.columns:
            first = next(iter(settings.values()))
            terms = first.loc[whole, "terms_expected"].gt(0)
            with_terms = [place for place, has in zip(whole, terms, strict=True) if has]
            found += [
                {**facts, "texts": WITH, **row} for row in _compared(settings, with_terms, KEPT, columns)
            ]
            groups = {WITH: with_terms, WITHOUT: [place for place in whole if place not in set(with_terms)]}
        else:
            groups = {ALL: whole}
        if kept not in table.columns:
            continue
        scored = set(_of_all(settings, [kept, columns.reference or columns.text]))
        for texts, places in groups.items():
            rows = _compared(settings, [place for place in places if place in scored], measure, columns)
            found += [{**facts, "texts": texts, **row} for row in rows]
    return _judged(
        pd.DataFrame(
            found, columns=[name for name in _COLUMNS if name not in {"p_holm", "significant", "verdict"}]
        )
    )


def effects_in_words(table: pd.DataFrame) -> tuple[str, ...]:
    """The effects in sentences that a person can quote."""
    said = []
    for (setting, baseline, source, target), part in table.assign(
        p=[f"p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}" for p in table["p_holm"]]
    ).groupby(["setting", "baseline", "source_lang", "target_lang"], sort=False):
        told = [
            f"{row['measure']} in {row['texts']} {row['score_baseline']:.1f} to {row['score']:.1f}: {row['verdict']} "
            f"({row['p']}, {row['utterances']:,} "
            f"{'text' if row['utterances'] == 1 else 'texts'})"
            for row in part.to_dict("records")
        ]
        said.append(f"{setting} instead of {baseline}, {source} → {target}: {'; '.join(told)}.")
    return tuple(said)


def _of_all(settings: dict[str, pd.DataFrame], names: Sequence[str]) -> list[int]:
    """Places of the texts of which all settings have something."""
    places: set[int] | None = None
    for rows in settings.values():
        there = set(rows.dropna(subset=list(names)).index) if set(names) <= set(rows.columns) else set()
        places = there if places is None else places & there
    return sorted(places or ())


def _compared(
    settings: dict[str, pd.DataFrame], places: list[int], measure: str, columns: Columns
) -> list[dict[str, Any]]:
    if not places or len(settings) < 2:
        return []
    here = {name: rows.loc[places] for name, rows in settings.items()}
    first = next(iter(here.values()))
    sources = first[columns.text].tolist()
    # One text that stands there twice is one text: its translations are swapped together.
    how: dict[str, Any] = {
        "groups": None if len(set(sources)) == len(sources) else sources,
        "metrics": ["chrf"],
    }
    heard = "back_translation" if measure == BACK else "translation"
    said = first[columns.reference].tolist() if measure == CHRF else sources
    systems = {name: rows[heard].tolist() for name, rows in here.items()}
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
    found = compare_translations(said, systems, **how)
    rows = found[found["metric"] == (KEPT if measure == KEPT else "chrf")].to_dict("records")
    base, *others = rows
    return [
        {
            "setting": row["system"],
            "baseline": base["system"],
            "measure": measure,
            "utterances": row["utterances"],
            "score_baseline": base["score"],
            "score": row["score"],
            "difference": row["difference"],
            "p": row["p"],
            "test": RANDOMIZATION,
        }
        for row in others
    ]


def _judged(found: pd.DataFrame) -> pd.DataFrame:
    out = found.astype(dict.fromkeys(("score_baseline", "score", "difference", "p"), "float64"))
    out["p_holm"] = holm(out["p"].to_numpy())
    out["significant"] = out["p_holm"] < 1 - _LEVEL
    out["verdict"] = verdicts_of(out["significant"], -out["difference"])
    return out[list(_COLUMNS)]
