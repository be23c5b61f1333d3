"""The record of a study: when, with which versions and settings, and what its batches say of themselves."""

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
        study: Its name, such as ``"recognition"``.
        store: Where its batches keep their runs.
        *tables: What the batches gave.
        **settings: What the study was told, plain values.

    Returns:
        ``study``, ``made`` (UTC), ``speechlab``, ``settings``, and ``runs``: of each batch its id, operation, status
        and manifest (versions, service, parameters, counts, usage, digests; never a credential).
    """
    runs = []
    for table in tables:
        with suppress(StoreError, InvalidRequestError):  # nothing was asked, or nothing could be written down
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
    """The service that a record names; empty if it names none."""
    return ", ".join(
        dict.fromkeys(str(run["service"]) for run in record.get("runs", ()) if run.get("service"))
    )
