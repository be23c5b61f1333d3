"""The report of the study of translations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from speechlab._arguments import is_missing
from speechlab._platform import package_version
from speechlab.evaluate._speech.scorers import SCORE
from speechlab.evaluate._speech.speed import no_times
from speechlab.evaluate._speech.tables import load_views
from speechlab.evaluate._translation.answer import (
    difference_findings,
    translation_answer,
    translation_differences,
)
from speechlab.evaluate._translation.measures import Columns
from speechlab.evaluate._writing.columns import Shown, View, count, number, rate, text
from speechlab.evaluate._writing.contents import Contents, Drawing, ShownRows
from speechlab.evaluate._writing.differences import differences_view
from speechlab.evaluate._writing.methods import Methods, methods_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

_NAMES = Columns("text", "reference", "source_lang", "target_lang")


def translation_report(
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
    calls = no_times() if speed is None else speed
    terms_table = pd.DataFrame() if terms is None else terms
    differences = translation_differences(table, columns)
    score = next(
        (name for name in ("chrf", "back_chrf") if name in summary and summary[name].notna().any()), None
    )
    keys = [*(["system"] if "system" in summary else []), *columns[2:]]
    drawings = (
        []
        if score is None
        else [Drawing("Scores", "translation_scores", ("scores",), {"score": score, "by": keys})]
    )
    views = [_scores_view(summary, columns, score)]
    if len(differences):
        note = "Each system against the first, on the texts that all of them translated, by paired randomisation."
        views.append(differences_view(differences, "Differences from the first system", note))
        drawings.append(Drawing("Differences from the first system", "differences", ("differences",)))
    views += [_terms_view(terms_table)] if len(terms_table) else []
    if len(calls):
        by = [*(["system"] if (calls["system"] != "").any() else []), "source_lang", "target_lang"]
        options = {"column": "first_word_s", "by": by}
        drawings.append(Drawing("Time to the first word", "distributions", ("speed",), options))
    signatures = [] if "signature" not in summary else list(summary["signature"].dropna())
    return Contents(
        title,
        table,
        summary,
        translation_answer(summary, differences, table, columns),
        "translation",
        findings=difference_findings(differences),
        notes=tuple(notes),
        differences=differences,
        speed=calls,
        tables={"terms": terms_table, "scores": summary if score is None else _comparable(summary, score)},
        columns=dict(zip(_NAMES._fields, columns, strict=True)),
        views=(*views, *load_views(calls)),
        drawings=tuple(drawings),
        shown=_display(table, columns),
        said=_methods(title, table, summary, differences, calls),
        facts={
            "speechlab": package_version(),
            "chrF": str(next(iter(signatures), "none")),
            "speed": f"{len(calls)} streams, one at a time, in turns" if len(calls) else "not measured",
            **({} if columns.reference else {"references": "none"}),
        },
        record=record or {},
    )


def _methods(
    title: str, table: pd.DataFrame, summary: pd.DataFrame, differences: pd.DataFrame, speed: pd.DataFrame
) -> Methods:
    scored = {
        name for name in ("chrf", "back_chrf") if name in summary.columns and summary[name].notna().any()
    }
    methods = {
        "chrf": "chrf" in scored,
        "back": "back_chrf" in scored,
        "terms": "terms_expected" in summary.columns,
        "streams": len(speed) > 0,
        "loops": "loop" in table.columns,
        "randomization": len(differences) > 0,
        "holm": len(differences) > 0,
        "paired intervals": differences["low"].notna().any(),
    }
    return methods_of(title, *(name for name, applies in methods.items() if applies))


def _scores_view(summary: pd.DataFrame, columns: Columns, score: str | None) -> View:
    view_columns = [
        Shown("direction", lambda row: _direction(row, *columns[2:]), strong=True),
        Shown("texts", _texts, figure=True),
        number("chrF", "chrf", ".1f", strong=True, optional=score == "back_chrf"),
        number("chrF back", "back_chrf", ".1f", optional=True),
        Shown("on the same texts", _common, figure=True, optional=True),
        *(
            number(str(name).removeprefix(SCORE), str(name), ".3f")
            for name in summary
            if str(name).startswith(SCORE)
        ),
        number("length", "length_ratio"),
        count("copies", "copies", optional=True),
        count("loops", "loops", optional=True),
        rate("terms kept", "terms_kept", optional=True),
        number("first word (s)", "first_word_s", optional=True),
        number("whole (s)", "total_s", optional=True),
    ]
    note = "Length: characters of the translation over those of the text."
    return View.of("Translations by direction", view_columns, summary, note)


def _texts(row: Mapping[Hashable, Any]) -> str:
    translated, total = (
        row["utterances"],
        row.get("texts", row["utterances"]),
    )  # reports of 0.1 have the former alone
    return f"{translated:,.0f}" if translated == total else f"{translated:,.0f} of {total:,.0f}"


def _common(row: Mapping[Hashable, Any]) -> str | None:
    score, shared = row.get("common_chrf"), row.get("common_utterances")
    return None if is_missing(score) else f"{score:.1f} on {shared:.0f}"


def _comparable(summary: pd.DataFrame, score: str) -> pd.DataFrame:
    """The summary with the scores on the texts that all systems have, where some lack a text."""
    if "common_chrf" not in summary.columns:
        return summary
    has_common = summary["common_chrf"].notna()
    counts = {"utterances": summary["utterances"].mask(has_common, summary["common_utterances"])}
    return summary.assign(**counts, **{score: summary[score].mask(has_common, summary["common_chrf"])})


def _terms_view(terms: pd.DataFrame) -> View:
    view_columns = [
        text("term", "term", strong=True),
        Shown("accepted translations", lambda row: str(row["target"])),
        Shown("direction", _direction),
        count("expected", "expected"),
        rate("kept", "preserved"),
    ]
    return View.of("Terms of the glossary", view_columns, terms)


def _display(table: pd.DataFrame, columns: Columns) -> ShownRows:
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


def _direction(row: Mapping[Hashable, Any], source: str = "source_lang", target: str = "target_lang") -> str:
    direction = f"{row[source]} → {row[target]}"
    return f"{row['system']}, {direction}" if row.get("system") else direction
