"""The record of a study: time, versions, settings, and the records of its batches."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._platform import package_version
from speechlab.errors import InvalidRequestError, StoreError

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.store import Store


def record_of(
    study: str, store: Store | str | None, *tables: pd.DataFrame, **settings: Any
) -> dict[str, Any]:
    """Return the record of a study.

    Args:
        study: Name of the study, such as ``"recognition"``.
        store: Store of the runs of its batches.
        *tables: Tables of the batches.
        **settings: Settings of the study, plain values.

    Returns:
        ``study``, ``made`` (UTC), ``speechlab``, ``settings``, and ``runs``: id, operation, status and manifest of
        each batch (versions, service, parameters, counts, usage, digests; never a credential).
    """
    runs = []
    for table in tables:
        with suppress(StoreError, InvalidRequestError):  # no calls, or no recorded run
            run = batch.load(table, store)
            runs.append(
                {"id": run.id, "operation": run.record.operation, "status": run.status, **run.manifest}
            )
    return {
        "study": study,
        "made": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "speechlab": package_version(),
        "settings": settings,
        "runs": runs,
    }


def service_of(record: dict[str, Any]) -> str:
    """Return the service of a record; empty if it has none."""
    return ", ".join(
        dict.fromkeys(str(run["service"]) for run in record.get("runs", ()) if run.get("service"))
    )
