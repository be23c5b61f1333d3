"""Values of the wrong kind for nearly any argument, and which of them a function takes."""

import math
import typing

import numpy as np
import pandas as pd

from speechlab.client import Client
from speechlab.errors import AudioError, ConfigurationError, InvalidRequestError, SegmentError

WRONG = {
    "None": None,
    **{str(number): number for number in (0, 2, 5, -1, 1.5)},
    "True": True,
    "x": "x",
    "empty": "",
    "bytes": b"x",
    "[]": [],
    "[5]": [5],
    "[None]": [None],
    "[nan]": [math.nan],
    "{}": {},
    "nan": math.nan,
    "NA": pd.NA,
    "object": object(),
    "array": np.zeros((2, 2, 2)),
    "table": pd.DataFrame({"text": ["a"]}),
}


def list_client_options() -> list[str]:
    """Return the names of the options of a client, from its signature."""
    (options,) = typing.get_args(typing.get_type_hints(Client.__init__)["options"])
    return list(options.__annotations__)


def list_accepted(function, good, names=None, *, values=WRONG, aliases=None):
    """Return which values each argument takes, by their labels; all others are refused in words that name it."""
    accepted, faults = {}, []
    for name in names or good:
        accepted[name] = []
        for label, value in values.items():
            try:
                function(**{**good, name: value})
            except (
                InvalidRequestError,
                SegmentError,
                AudioError,
                ConfigurationError,
                FileNotFoundError,
            ) as error:
                if not _is_clear(error, name, value, (aliases or {}).get(name, name)):
                    faults.append(f"{name}={label}: {error!r:.300}")
            else:
                accepted[name].append(label)
    assert not faults, "\n".join(faults)
    return {name: " ".join(labels) for name, labels in accepted.items()}


def _is_clear(error, name, value, alias):
    """Return whether an error names the argument, the column that was given for it, or the text."""
    text = str(error)
    columns = [value, *(value if isinstance(value, list) else [])]
    quotes = any(f"no column {column!r:.60}" in text for column in columns)
    quotes |= isinstance(value, str) and repr(value) in text
    quotes |= "columns named" in text
    if isinstance(error, FileNotFoundError):
        return quotes
    if isinstance(error, SegmentError | AudioError):  # they say what is wrong with a table or a sound
        return len(text) > 15
    names = name in text or alias in text or getattr(error, "parameter", None) == name
    return (names or quotes) and 15 < len(text) < 2_000
