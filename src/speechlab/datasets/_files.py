"""Files of the bundled data sets: their installed places, and checks of their hashes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from speechlab._files import file_sha256
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from speechlab.datasets._registry import Dataset

_HERE = Path(__file__).resolve().parent
# A wheel has the data in the folder of this module; an editable install finds it at the top of the checkout.
_PLACES = (_HERE / "_data", _HERE.parents[2] / "datasets")


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
