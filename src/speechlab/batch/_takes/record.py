"""The table of checked takes as a run of its own, since several runs made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from speechlab.batch._plan.steps import SynthesisStep
from speechlab.batch._run.execution import build_run_id
from speechlab.batch._table.assemble import ResultDigest, format_row_key
from speechlab.tables import to_parquet_bytes

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.store import Store

_THERE = frozenset({"ok", "cached"})


def record_takes(store: Store, runs: Sequence[str], table: pd.DataFrame, prefix: str) -> str:
    """Keep the table of the best takes, and return the id of its run; its usage is that of all its runs."""
    records = [store.run(run) for run in runs]
    ends = [record for record in records if record.status != "finished"]
    first, last = records[0], ends[0] if ends else records[-1]
    usage: Counter[str] = Counter()
    for record in records:
        usage.update(record.manifest["usage"])
    status, keys, errors = (table[prefix + name].tolist() for name in ("status", "key", "error"))
    stored, digest = (
        store.get_many([key for key in keys if isinstance(key, str)]),
        ResultDigest(SynthesisStep),
    )
    for one, key, error in zip(status, keys, errors, strict=True):
        name = key if isinstance(key, str) else None
        digest.add(format_row_key(name, error), stored.get(key) if name and one in _THERE else None)
    manifest = {
        **first.manifest,
        "runs": list(runs),
        "reason": last.manifest.get("reason"),
        "rows": len(table),
        "statuses": dict(Counter(map(str, status))),
        "usage": {name: round(amount, 6) for name, amount in usage.items()},
        "output_sha256": digest.hexdigest(),
    }
    whole = replace(
        first, id=build_run_id(), status=last.status, ended=records[-1].ended, manifest=manifest, parts=()
    )
    store.save_run(whole)
    store.add_part(whole.id, to_parquet_bytes(table), len(table))
    return whole.id
