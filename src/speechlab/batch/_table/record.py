"""The record of a run: versions, and the table as Parquet files."""

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
"""Key of the run's id in a table's ``attrs``, and of the manifest in the metadata of an exported file."""


def environment() -> dict[str, Any]:
    """Return the versions that a run depends on, without facts about the user or the machine."""
    return {
        "contract": CONTRACT_VERSION,
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": {name: installed_version(name) for name in ("speechlab", "pandas", "pyarrow", "numpy")},
    }


def table_bytes(frame: pd.DataFrame) -> bytes:
    """Return a table as a Parquet file; ``storable`` converts values that Parquet does not support."""
    import pyarrow.parquet as pq

    file = BytesIO()
    pq.write_table(arrow_table(frame), file, compression="zstd")
    return file.getvalue()


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table that :func:`table_bytes` wrote, with its original column labels.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not such a table.
    """
    import pyarrow.parquet as pq

    return pandas_table(pq.read_table(path, partitioning=None))
