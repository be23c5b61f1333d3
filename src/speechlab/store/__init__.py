"""The store: results, their audio and every attempt, kept on disk as they come.

A store is an SQLite file and a folder of content-addressed files. It serves as cache, resume and replay: a result is
written in one transaction as soon as it arrives, so a crash loses nothing that was finished and pays for nothing
twice. It knows keys, JSON and bytes, not clients, tables or audio. Clients, batches and studies use it.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.store._blobs import STORE_FILE as STORE_FILE
from speechlab.store._blobs import Blob
from speechlab.store._blobs import BlobFolder as BlobFolder
from speechlab.store._claims import Claims as Claims
from speechlab.store._store import PART_SUFFIX as PART_SUFFIX
from speechlab.store._store import Attempt, Store, StoredResult
from speechlab.store._store import RunPart as RunPart
from speechlab.store._store import RunRecord as RunRecord

__all__ = ["Store"]

_name_after(__name__, globals())
