"""The record of a run besides its results: versions, and its table as Parquet files."""

from __future__ import annotations

import hashlib
import platform
from io import BytesIO
from typing import TYPE_CHECKING, Any

from speechlab._arguments import is_missing
from speechlab._platform import installed_version
from speechlab.audio import AudioClip
from speechlab.contract import CONTRACT_VERSION

if TYPE_CHECKING:
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
    """Return a table as a Parquet file; cells that Parquet cannot hold are replaced by what stands for them.

    A recording becomes ``sha256:…``, anything else its text.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kept = frame.copy(deep=False)
    for name in frame.columns:
        if frame[name].dtype == object or frame[name].dtype.kind == "c":  # no file has complex numbers
            kept[name] = _storable(frame[name])
    kept.columns = [str(name) for name in frame.columns]
    try:
        table = pa.Table.from_pandas(kept)
    except (pa.ArrowException, ValueError, TypeError):  # an index of several kinds of labels
        kept.index = kept.index.map(str)
        table = pa.Table.from_pandas(kept)
    file = BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def _storable(column: pd.Series[Any]) -> Any:
    import pandas as pd
    import pyarrow as pa

    try:
        values = column.tolist()
        if not any(isinstance(value, bytes | AudioClip) for value in values):
            pa.array(values, from_pandas=True)
            return column
    except (pa.ArrowException, ValueError, TypeError):
        pass
    return pd.Series([stand_in(value) for value in column], index=column.index, dtype="str")


def stand_in(value: object) -> str | None:
    """Return what stands for a cell in a file: ``sha256:…`` for a recording, None for nothing, or else its text."""
    if isinstance(value, AudioClip):
        return f"sha256:{hashlib.sha256(value.samples.tobytes()).hexdigest()}"
    if isinstance(value, bytes):
        return f"sha256:{hashlib.sha256(value).hexdigest()}"
    if is_missing(value):
        return None
    return str(value).encode("utf-8", "replace").decode()
