"""Data for studies: readers of manifests and corpora, samples of tables, and small bundled data sets.

The bundled data sets (prompts in three languages, a few Chinese recordings) are for first notebooks, comparisons and
tests without a download. They are not benchmarks, because they are small and have one author. The SHA-256 of each
file is pinned and checked on loading, so a published number can name its data.
Notebooks, studies, the command line and tests use this room.
"""

from speechlab._door import set_module_to_room as _name_after
from speechlab.datasets._corrections import apply_corrections, read_corrections, row_keys
from speechlab.datasets._load import available, datasheet, prompts, zh_speech
from speechlab.datasets._manifests import MANIFEST_ENDINGS as MANIFEST_ENDINGS
from speechlab.datasets._manifests import find_usual_columns
from speechlab.datasets._manifests import read_manifest as read_manifest
from speechlab.datasets._places import build_empty_folder_error as build_empty_folder_error
from speechlab.datasets._places import is_recording_file
from speechlab.datasets._read import from_hugging_face, read, to_table
from speechlab.datasets._replies import transcript_of
from speechlab.datasets._sample import sample
from speechlab.datasets._transcripts import transcripts_in

__all__ = [
    "apply_corrections",
    "available",
    "datasheet",
    "from_hugging_face",
    "prompts",
    "read",
    "row_keys",
    "sample",
    "transcript_of",
    "transcripts_in",
    "zh_speech",
]

_name_after(__name__, globals())
