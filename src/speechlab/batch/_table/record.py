"""The record of a run besides its results: versions, and its table as Parquet files."""

from __future__ import annotations

import platform
from io import BytesIO
from typing import TYPE_CHECKING, Any

from speechlab._platform import installed_version
from speechlab.batch._table.storable import arrow_table, pandas_table
from speechlab.contract import CONTRACT_VERSION

if TYPE_CHECKING:
    import os

    import pandas as pd

RUN_ATTRIBUTE = "speechlab_run"
"""Under this name a table's ``attrs`` hold the id of the run that made it, and an exported file its manifest."""


def environment() -> dict[str, Any]:
    """Return the versions that a run depends on; nothing that tells of the user or the machine."""
    return {
        "contract": CONTRACT_VERSION,
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": {name: installed_version(name) for name in ("speechlab", "pandas", "pyarrow", "numpy")},
    }


def table_bytes(frame: pd.DataFrame) -> bytes:
    """Return a table as a Parquet file; what Parquet cannot hold is kept in another form, see ``storable``."""
    import pyarrow.parquet as pq

    file = BytesIO()
    pq.write_table(arrow_table(frame), file, compression="zstd")
    return file.getvalue()


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table that :func:`table_bytes` wrote, with the labels that its columns had.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no such file.
    """
    import pyarrow.parquet as pq

    return pandas_table(pq.read_table(path, partitioning=None))
