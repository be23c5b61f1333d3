"""Small data sets that come with speechlab: prompts in three languages, and a few Chinese recordings.

They are here so that a first notebook, a comparison and a test have something honest to work on without a download.
They are not benchmarks: too small, and written by one hand. Each file's SHA-256 is pinned and checked when it is
loaded, so a published number can name the data it came from. Notebooks, studies and tests use this room.
"""

from speechlab._door import name_after as _name_after
from speechlab.datasets._load import available, datasheet, prompts, zh_speech

__all__ = ["available", "datasheet", "prompts", "zh_speech"]

_name_after(__name__, globals(), __all__)
