"""The bundled data sets as tables: their installed files, compared with pinned hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from speechlab._files import compute_file_sha256
from speechlab._pandas import pd
from speechlab.errors import ConfigurationError, InvalidRequestError
from speechlab.tables import read_delimited

LANGUAGES = ("ja", "en", "zh")
CATEGORIES = (
    "numbers", "names", "dates", "homophones", "loanwords", "questions", "short", "long", "everyday", "technical",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dataset:
    """One data set."""

    name: str  # of the data set and of its folder
    version: str  # raised with every change of a file
    rows: int  # of its table
    languages: tuple[str, ...]  # codes
    license: str  # SPDX expression
    files: dict[str, str]  # SHA-256 of each file that is loaded, by name

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
            license="CC0-1.0",
            files={
                "DATASHEET.md": "f43f9912ccadb12220aab42942ad3e914ce77b4ea7eed0c6705e4e1053e4cfe0",
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
            license="CC0-1.0",
            files={
                "DATASHEET.md": "f88d382b8a7e4024b88df921b1240a4fbb21707ed5fd07957093e41258e674f8",
                "manifest.csv": "27a1527238e4adc612fb81c0c6f22d922c44ef43e57dfb309ae80548f99fda0e",
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


_HERE = Path(__file__).resolve().parent
# A wheel has the data in the folder of this module; an editable install finds it at the top of the checkout.
_DATA_FOLDERS = (_HERE / "_data", _HERE.parents[2] / "datasets")
_PROMPT_COLUMNS = (
    "id", "language", "category", "text", "reading", "pinyin", "translation_ja", "translation_en", "quick", "note",
)  # fmt: skip


def prompts(
    language: str | None = None, category: str | None = None, quick: bool | None = None
) -> pd.DataFrame:
    """Sentences for synthesis, recognition or translation, each with a category of difficulty.

    Args:
        language: ``"ja"``, ``"en"`` or ``"zh"``; None for all, in this order.
        category: For example ``"numbers"`` or ``"homophones"``; None for all.
        quick: True for short and clear sentences (about 3 to 5 s of speech) for a first try, False for the others,
            None for all.

    Returns:
        One row for each sentence, always in the same order, indexed from 0. Columns: ``id``, ``language``,
        ``category``, ``text``, ``reading`` (Japanese only: katakana as spoken), ``pinyin`` (Chinese only: tone
        numbers), ``translation_ja`` (English only), ``translation_en`` (Japanese and Chinese), ``quick`` and
        ``note``. Missing values are ``pandas.NA``. Both category dtypes keep all their values after filtering, so
        that parts can be joined again.

    Raises:
        InvalidRequestError: The language or category does not exist, or ``quick`` is not True, False or None.
        ConfigurationError: A file is missing or differs from the published file.

    Examples:
        >>> frame = prompts("ja", category="homophones")
        >>> frame.loc[0, "text"]
        '測定の精度を上げるには、時間がかかります。'
    """
    _check_choice("language", language, LANGUAGES)
    _check_choice("category", category, CATEGORIES)
    _check_choice("quick", quick, (True, False))
    dataset = DATASETS["prompts"]
    tables = [
        read_delimited(check_data_file(dataset, f"{code}.csv"))
        for code in LANGUAGES
        if language in (None, code)
    ]
    frame = pd.concat([rows.reindex(columns=list(_PROMPT_COLUMNS)).astype("string") for rows in tables])
    frame["language"] = pd.Categorical(frame["language"], categories=LANGUAGES)
    frame["category"] = pd.Categorical(frame["category"], categories=CATEGORIES)
    frame["quick"] = (frame["quick"] == "true").astype(bool)
    if category is not None:
        frame = frame[frame["category"] == category]
    if quick is not None:
        frame = frame[frame["quick"] == quick]
    return frame.reset_index(drop=True)


def zh_speech() -> pd.DataFrame:
    """Chinese recordings for recognition: synthetic speech of some of the Chinese prompts, 24 kHz OGG/Opus.

    Returns:
        One row for each recording. Columns: ``audio`` (absolute path), ``id`` (of the prompt), ``language``,
        ``text``, ``voice``, ``license``, ``sha256`` and ``duration_s`` (seconds).

    Raises:
        ConfigurationError: A file is missing or differs from the published file.

    Examples:
        >>> from pathlib import Path
        >>> all(Path(path).is_absolute() for path in zh_speech()["audio"])
        True
    """
    dataset = DATASETS["zh-speech"]
    frame = read_delimited(check_data_file(dataset, "manifest.csv"))
    frame["audio"] = pd.array(
        [str(check_data_file(dataset, name)) for name in frame["audio"]], dtype="string"
    )
    frame["language"] = pd.Categorical(frame["language"], categories=LANGUAGES)
    frame["duration_s"] = frame["duration_s"].astype("float64")
    return frame


def available() -> pd.DataFrame:
    """Return the data sets that come with speechlab.

    Returns:
        One row for each data set. Columns: ``name``, ``rows``, ``languages`` (codes, joined by commas), ``license``,
        ``version`` and ``sha256`` (of the list of the files' pinned hashes, as ``sha256sum`` prints it).

    Example:
        >>> available()[["name", "rows"]]
                name  rows
        0    prompts   201
        1  zh-speech     8
    """
    names = ["name", "rows", "languages", "license", "version", "sha256"]
    rows = [[getattr(dataset, name) for name in names] for dataset in DATASETS.values()]
    frame = pd.DataFrame(rows, columns=names)
    frame["languages"] = frame["languages"].map(",".join)
    return frame.astype(dict.fromkeys(names, "string") | {"rows": "int64"})


def datasheet(name: str) -> str:
    """Return the datasheet of a data set as Markdown: its content, its making, and its unsuitable uses.

    Args:
        name: Name of the data set, as in :func:`available`.

    Raises:
        InvalidRequestError: The data set does not exist.
        ConfigurationError: The file is missing or differs from the published file.

    Example:
        >>> datasheet("prompts").splitlines()[0]
        '# Datasheet: speechlab prompts 1.0.0'
    """
    _check_choice("name", name, DATASETS, needed=True)
    return check_data_file(DATASETS[name], "DATASHEET.md").read_text(encoding="utf-8")


def _check_choice(
    parameter: str, value: object, allowed: Collection[object], *, needed: bool = False
) -> None:
    if value is None and not needed:
        return
    # compared one by one with their types: 1 equals True, and an unhashable value cannot be looked up in a dict
    if not any(isinstance(value, type(choice)) and value == choice for choice in allowed):
        names = ", ".join(repr(choice) for choice in allowed)
        raise InvalidRequestError(f"{parameter} must be one of {names}; got {value!r}", parameter=parameter)


def resolve_data_root(places: tuple[Path, ...] = _DATA_FOLDERS) -> Path:
    """Return the folder with one folder for each data set."""
    for place in places:
        if (place / "prompts").is_dir():
            return place
    looked = " and ".join(str(place) for place in places)
    raise ConfigurationError(
        f"the data sets are not where they should be (looked at {looked}); "
        "install speechlab again: pip install --force-reinstall --no-deps speechlab"
    )


def check_data_file(dataset: Dataset, name: str, root: Path | None = None) -> Path:
    """Return the path of one file of a data set, after a comparison of its SHA-256 with the pinned one."""
    path = (root or resolve_data_root()) / dataset.name / name
    expected = dataset.files[name]
    remedy = (
        "install speechlab again (pip install --force-reinstall --no-deps speechlab), or, if you changed the data on "
        "purpose, pin the new hash in speechlab/datasets/_load.py and increase the version there"
    )
    try:
        digest = compute_file_sha256(path)
    except FileNotFoundError:
        raise ConfigurationError(f"{path} is missing from the data set {dataset.name!r}; {remedy}") from None
    if digest != expected:
        raise ConfigurationError(f"{path} has SHA-256 {digest}, but {expected} was published; {remedy}")
    return path
