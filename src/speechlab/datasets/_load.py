"""The bundled data sets as tables: their installed files, compared with pinned hashes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from speechlab._files import file_sha256
from speechlab.datasets._registry import CATEGORIES, DATASETS, LANGUAGES
from speechlab.errors import ConfigurationError, InvalidRequestError
from speechlab.tables import read_texts

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd

    from speechlab.datasets._registry import Dataset

_HERE = Path(__file__).resolve().parent
# A wheel has the data in the folder of this module; an editable install finds it at the top of the checkout.
_PLACES = (_HERE / "_data", _HERE.parents[2] / "datasets")
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
    import pandas as pd

    _check("language", language, LANGUAGES)
    _check("category", category, CATEGORIES)
    _check("quick", quick, (True, False))
    dataset = DATASETS["prompts"]
    tables = [read_texts(verified(dataset, f"{code}.csv")) for code in LANGUAGES if language in (None, code)]
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
        ``text``, ``voice``, ``licence``, ``sha256`` and ``duration_s`` (seconds).

    Raises:
        ConfigurationError: A file is missing or differs from the published file.

    Examples:
        >>> from pathlib import Path
        >>> all(Path(path).is_absolute() for path in zh_speech()["audio"])
        True
    """
    import pandas as pd

    dataset = DATASETS["zh-speech"]
    frame = read_texts(verified(dataset, "manifest.csv"))
    frame["audio"] = pd.array([str(verified(dataset, name)) for name in frame["audio"]], dtype="string")
    frame["language"] = pd.Categorical(frame["language"], categories=LANGUAGES)
    frame["duration_s"] = frame["duration_s"].astype("float64")
    return frame


def available() -> pd.DataFrame:
    """The data sets that come with speechlab.

    Returns:
        One row for each data set. Columns: ``name``, ``rows``, ``languages`` (codes, joined by commas), ``licence``,
        ``version`` and ``sha256`` (of the list of the files' pinned hashes, as ``sha256sum`` prints it).

    Example:
        >>> available()[["name", "rows"]]
                name  rows
        0    prompts   201
        1  zh-speech     8
    """
    import pandas as pd

    rows = [
        (
            dataset.name,
            dataset.rows,
            ",".join(dataset.languages),
            dataset.licence,
            dataset.version,
            dataset.sha256,
        )
        for dataset in DATASETS.values()
    ]
    frame = pd.DataFrame(rows, columns=["name", "rows", "languages", "licence", "version", "sha256"])
    return frame.astype(
        dict.fromkeys(("name", "languages", "licence", "version", "sha256"), "string") | {"rows": "int64"}
    )


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
    _check("name", name, DATASETS, needed=True)
    return verified(DATASETS[name], "DATASHEET.md").read_text(encoding="utf-8")


def _check(parameter: str, value: object, allowed: Collection[object], *, needed: bool = False) -> None:
    if value is None and not needed:
        return
    # compared one by one with their types: 1 equals True, and an unhashable value cannot be looked up in a dict
    if not any(isinstance(value, type(choice)) and value == choice for choice in allowed):
        names = ", ".join(repr(choice) for choice in allowed)
        raise InvalidRequestError(f"{parameter} must be one of {names}; got {value!r}", parameter=parameter)


def data_root(places: tuple[Path, ...] = _PLACES) -> Path:
    """Return the folder with one folder for each data set."""
    for place in places:
        if (place / "prompts").is_dir():
            return place
    looked = " and ".join(str(place) for place in places)
    raise ConfigurationError(
        f"the data sets are not where they should be (looked at {looked}); "
        "install speechlab again: pip install --force-reinstall --no-deps speechlab"
    )


def verified(dataset: Dataset, name: str, root: Path | None = None) -> Path:
    """Return the path of one file of a data set, after a comparison of its SHA-256 with the pinned one."""
    path = (root or data_root()) / dataset.name / name
    expected = dataset.files[name]
    remedy = (
        "install speechlab again (pip install --force-reinstall --no-deps speechlab), or, if you changed the data on "
        "purpose, pin the new hash in speechlab/datasets/_registry.py and increase the version there"
    )
    try:
        digest = file_sha256(path)
    except FileNotFoundError:
        raise ConfigurationError(f"{path} is missing from the data set {dataset.name!r}; {remedy}") from None
    if digest != expected:
        raise ConfigurationError(f"{path} has SHA-256 {digest}, but {expected} was published; {remedy}")
    return path
