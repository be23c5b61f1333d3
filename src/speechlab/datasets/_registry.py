"""Registry of the data sets, with the SHA-256 of each of their files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

LANGUAGES = ("ja", "en", "zh")
CATEGORIES = (
    "numbers", "names", "dates", "homophones", "loanwords", "questions", "short", "long", "everyday", "technical",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dataset:
    """One data set.

    Attributes:
        name: Name of the data set and of its folder.
        version: Version, raised with every change of a file.
        rows: Number of rows of its table.
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
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="prompts",
            version="1.0.0",
            rows=201,
            languages=LANGUAGES,
            licence="CC0-1.0",
            files={
                "DATASHEET.md": "bd0eaf62083453fe32614e09de10cc097e7090885617bdd87c7a97680fff1c22",
                "LICENSE": "3182ef1e4adbb179f3755b1917653a6992ff790162b677d4fc14217aff8f18cb",
                "en.csv": "329465262175da8edae4a7292a0bf5d2c90d54a5e55e5d64244bd8077f9ef403",
                "ja.csv": "7ffe6fe04c4eacab3aafb8057f8294ec58920cfd5d3392ac291ce33f619f115d",
                "zh.csv": "abb526ae35eee2ea9ba76e7f875e356aab71f958f1e0205010a1816b21ac4d6d",
            },
        ),
        Dataset(
            name="zh-speech",
            version="1.0.0",
            rows=8,
            languages=("zh",),
            licence="CC0-1.0",
            files={
                "DATASHEET.md": "87938ec0ecdb4b14ec1d6315a1dd01bfba5c698acf74837f32258872f9bb8cce",
                "manifest.csv": "bbfe626272d62f7e5973a59b19eca5aa76e93641b2bcda3d247515772e4f97b6",
                "zh-023.ogg": "52298f0b980fb541a031c4cb366fd2cd86ef4b27b06ed64fb80862334a87d307",
                "zh-025.ogg": "fcf909baf2e5767cb3a30a27c8d7c08a8646dc70658a1df5652688eb05c943bf",
                "zh-028.ogg": "2393ac8d1922e0149b4638b90143d75d4c3f28a74775e093311381375d3f906e",
                "zh-036.ogg": "6f93397fc8e5334518f38cce4811bf0f86a4be76334266cfdc6dcc1bf6a730d2",
                "zh-052.ogg": "b9a5dfa329974821321d7970b99281cf5367b936a0d12d7f5f98b7ccf5a280dd",
                "zh-054.ogg": "3e1e066386679bb3bb30c19b306055d6cc007c42da77c820d197f0e4ed843bc6",
                "zh-055.ogg": "a7090b3c0f7197a9df7029c9261f79c6a8c9a1cfc81df5cf6d76fff959a9bea8",
                "zh-057.ogg": "e795ca4e02b7eb29f806c3c6512a8ed6061af93d210ee99ed2a3d4f69da57c09",
            },
        ),
    )
}
