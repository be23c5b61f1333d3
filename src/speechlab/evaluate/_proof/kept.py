"""A report compared with the store of its batches: replies under their digests, and texts equal to its rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from speechlab import batch
from speechlab.errors import InvalidRequestError, StoreError

if TYPE_CHECKING:
    import os

    from speechlab.evaluate._proof.compared import NumberCheck
    from speechlab.evaluate._writing.contents import Contents

_TEXTS = {"transcribe": ("hypothesis",), "translate": ("translation", "back_translation")}
"""Columns of a report that have what a batch of an operation returned."""


def compare_with_store(compared: NumberCheck, report: Contents, store: str | os.PathLike[str]) -> str:
    """Compare a report with the store of its batches; return what was compared, in a sentence."""
    texts: dict[str, Counter[str]] = {}
    results, runs = 0, report.record.get("runs", ())
    for number, recorded in enumerate(runs):
        place = f"store, batch {number}"
        try:
            run = batch.load(str(recorded["id"]), str(store))
            verified = run.verify()
            compared.digest(place, str(recorded.get("output_sha256")), str(run.manifest.get("output_sha256")))
            compared.digest(place, "as recorded", "; ".join(verified.problems) or "as recorded")
            results += verified.results
            for column in _TEXTS.get(run.record.operation, ())[:1]:
                cells = run.table()[f"{run.manifest.get('prefix', '')}{column}"].dropna().astype(str)
                texts.setdefault(run.record.operation, Counter()).update(cells)
        except (StoreError, InvalidRequestError) as error:
            compared.digest(place, "a batch", f"not in this store ({error})")
    for operation, replies in texts.items():
        stands: Counter[str] = Counter()
        for column in _TEXTS[operation]:
            stands.update(_texts_of_service(report, column))
        for text, count in (stands - replies).items():
            compared.digest(f"store, {operation}, {count} rows", text, "no such reply")
    return f"{results:,} replies of {len(runs):,} batches were compared with the store."


def _texts_of_service(report: Contents, column: str) -> list[str]:
    """The texts of a column that a service was asked for; those that existed before are in no store."""
    rows = report.table
    had = report.record.get("asked", {}).get("arguments", {}).get("hypotheses") or ()
    if column not in rows.columns:
        return []
    if had and "system" in rows.columns:
        rows = rows[~rows["system"].isin([had] if isinstance(had, str) else list(had))]
    return rows[column].dropna().astype(str).tolist()
