"""What data sets there are, and the SHA-256 of each of their files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

__all__ = ["CATEGORIES", "DATASETS", "LANGUAGES", "Dataset"]

LANGUAGES = ("ja", "en", "zh")
CATEGORIES = (
    "numbers", "names", "dates", "homophones", "loanwords", "questions", "short", "long", "everyday", "technical",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dataset:
    """One data set.

    Attributes:
        name: Its name, and that of its folder.
        version: Raised with every change of a file.
        rows: Rows of its table.
        languages: Codes of the languages in it.
        licence: SPDX expression.
        files: SHA-256 of each file that is loaded, by name.
    """

    name: str
    version: str
    rows: int
    languages: tuple[str, ...]
    licence: str
    files: dict[str, str]

    @property
    def sha256(self) -> str:
        """SHA-256 of the sorted list of the files' hashes, written as ``sha256sum`` does."""
        lines = (f"{digest}  {name}\n" for name, digest in sorted(self.files.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()


DATASETS: dict[str, Dataset] = {
    one.name: one
    for one in (
        Dataset(
            name="prompts",
            version="1.0.0",
            rows=201,
            languages=LANGUAGES,
            licence="CC0-1.0",
            files={
                "DATASHEET.md": "bd0eaf62083453fe32614e09de10cc097e7090885617bdd87c7a97680fff1c22",
                "LICENSE": "3182ef1e4adbb179f3755b1917653a6992ff790162b677d4fc14217aff8f18cb",
                "en.csv": "80c6951f5af6b52909149349f1c28a69693de53ada8fcd355b067a34786366c7",
                "ja.csv": "20830935fcab80cc962c5761439d9cf74bebf474ed3d12a1a6b3e5e9e7fca5a4",
                "zh.csv": "abb526ae35eee2ea9ba76e7f875e356aab71f958f1e0205010a1816b21ac4d6d",
            },
        ),
        Dataset(
            name="zh-speech",
            version="1.0.0",
            rows=0,
            languages=("zh",),
            licence="CC0-1.0 AND Apache-2.0",
            files={},
        ),
    )
}
