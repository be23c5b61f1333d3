"""Files where they lie: addresses such as ``s3://…``, files in archives, and their copies on this machine.

The room knows addresses and bytes, neither sound nor tables. Credentials in an address stay in the memory of the
process. All rooms that read recordings or tables ask it where a file is; local paths pass through.
"""

from __future__ import annotations

from speechlab.remote._addresses import find_file_name as find_file_name
from speechlab.remote._addresses import find_folder as find_folder
from speechlab.remote._addresses import hide_secrets as hide_secrets
from speechlab.remote._addresses import is_remote as is_remote
from speechlab.remote._addresses import join_address as join_address
from speechlab.remote._addresses import may_name as may_name
from speechlab.remote._archives import find_archive_kind as find_archive_kind
from speechlab.remote._fetching import PREFETCHED_ROWS as PREFETCHED_ROWS
from speechlab.remote._fetching import list_archive as list_archive
from speechlab.remote._fetching import list_file_names as list_file_names
from speechlab.remote._fetching import locate_file as locate_file
from speechlab.remote._fetching import prefetch as prefetch
from speechlab.remote._fetching import read_archive as read_archive

__all__: list[str] = []
