"""Data for studies: manifests and folders of one's own, samples of them, and small sets that come with speechlab.

The small sets (prompts in three languages, a few Chinese recordings) are here so that a first notebook, a comparison
and a test have something honest to work on without a download. They are not benchmarks: too small, and written by one
hand. Each file's SHA-256 is pinned and checked when it is loaded, so a published number can name its data.
Notebooks, studies, the command line and tests use this room.
"""

from speechlab._door import name_after as _name_after
from speechlab.datasets._load import available, datasheet, prompts, zh_speech
from speechlab.datasets._read import from_hugging_face, read
from speechlab.datasets._sample import sample

__all__ = ["available", "datasheet", "from_hugging_face", "prompts", "read", "sample", "zh_speech"]

_name_after(__name__, globals(), __all__)
