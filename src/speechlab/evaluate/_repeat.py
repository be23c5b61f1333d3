"""What a study was asked: its arguments and the hash of its table, in its record, so that it can be asked again."""

from __future__ import annotations

import inspect
import json
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar, cast

from speechlab import batch
from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab.batch import Price
from speechlab.datasets import to_table
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.evaluate._study_columns import SIDES
from speechlab.evaluate._writing.recordings import SOUNDS

if TYPE_CHECKING:
    from speechlab.evaluate._writing.contents import Contents

F = TypeVar("F", bound=Callable[..., Any])
_STUDIES: dict[str, Callable[..., Any]] = {}
# Arguments that are of one place, and change no result.
_LOCAL = frozenset({"lab", "frame", "store", "progress", "executor", "concurrency"})


def record_request(study: F) -> F:
    """Have the record of a study say what it was asked, under ``asked``."""
    signature = inspect.signature(study)
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    known = [name for name in defaults if name != "options"]
    if "options" in defaults:
        known += batch.list_call_options("translate" if study.__name__ == "translation" else "transcribe")

    @wraps(study)
    def run_study(*args: Any, **kwargs: Any) -> Any:
        batch.check_option_names(study.__name__, kwargs, known)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            bound = None
        if bound is None:  # Python's own message names the study and all arguments that are missing
            return study(*args, **kwargs)
        arguments = bound.arguments
        if "frame" in arguments:  # a table of any kind is one of pandas from here on
            arguments["frame"] = to_table(arguments["frame"])
        report = study(*bound.args, **bound.kwargs)
        request = _build_study_request({**arguments, **arguments.pop("options", {})}, defaults)
        return replace(report, record={**report.record, "asked": request})

    _STUDIES[study.__name__] = run_study
    return cast("F", run_study)


def _build_study_request(arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a study that have a plain form, the names of the others, and what its table was."""
    values, without = {}, []
    for name, value in arguments.items():
        if name in _LOCAL or (name in defaults and value is defaults[name]):
            continue
        try:
            values[name] = _to_json_value(value)
        except TypeError:
            without.append(name)
    lab, frame = arguments.get("lab"), arguments.get("frame")
    request: dict[str, Any] = {
        "arguments": values,
        "without": without,
        "services": sorted(lab) if isinstance(lab, Mapping) else [],
        "alone": lab is None,
    }
    if isinstance(frame, pd.DataFrame):
        names = [str(name) for name in frame.columns]
        revision = {key: frame.attrs[key] for key in ("revision",) if key in frame.attrs}
        request |= {"columns": names, "rows": len(frame), "sha256": hash_rows(frame), **revision}
    return request


def _to_json_value(value: Any) -> Any:
    """Return a value as JSON has it; a voice as its id."""
    if isinstance(value, Price):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): _to_json_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_value(item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(identifier := getattr(value, "id", None), str):
        return identifier
    if isinstance(value, Collection) and not isinstance(value, bytes | pd.DataFrame):
        return [_to_json_value(item) for item in value]
    raise TypeError(type(value).__name__)


def hash_rows(frame: pd.DataFrame) -> str:
    """The SHA-256 of the texts and numbers of a table; recordings have their own in the record of the batch."""
    names = [name for name in frame.columns if name not in SOUNDS]
    rows = [
        [str(name) for name in names],
        *(
            [None if is_missing(cell) else str(cell) for cell in row]
            for row in frame[names].itertuples(index=False)
        ),
    ]
    # By the module json, since orjson fails on half of a surrogate pair, which a study refuses in words.
    return sha256(json.dumps(rows).encode("ascii")).hexdigest()


def repeat_study(report: Contents, lab: Any, options: Mapping[str, Any]) -> Any:
    """Return the report of the same study, asked again.

    Raises:
        InvalidRequestError: The record does not say what was asked; an argument has no plain form and is not in
            ``options``; or the rows cannot be had from the report.
        StoreError: The record has arguments that no record of ours has.
    """
    request = report.record.get("asked")
    if not request or report.study not in _STUDIES:
        message = (
            "the record does not say what was asked: it was made of other reports, or by a study of your own"
        )
        raise InvalidRequestError(f"{message}; call the study itself", parameter="report")
    if absent := [name for name in request["without"] if name not in options]:
        message = f"{absent[0]} was a function or an object, which a record does not hold; give it again"
        raise InvalidRequestError(message, parameter=absent[0])
    if foreign := sorted(_LOCAL.intersection(request["arguments"])):
        # Our records never have them; those of strangers could name a store, or fill a service with calls.
        message = f"the record has {foreign[0]!r}, which is of one place; the report is damaged"
        raise StoreError(message)
    frame = _restore_input_rows(report, request)
    arguments = {**request["arguments"], **options}
    arguments["store"] = options.get("store") or tempfile.mkdtemp(prefix="speechlab-again-")
    again = _STUDIES[report.study](lab, frame, **arguments)
    if not _has_named_recordings(report, request):
        return again
    given = frame.drop(columns="file")  # the same table as the first time
    asked = again.record["asked"] | {"columns": list(given.columns), "sha256": hash_rows(given)}
    return replace(again, record={**again.record, "asked": asked})


def _has_named_recordings(report: Contents, request: Mapping[str, Any]) -> bool:
    """Return whether the study named the recordings of its rows, which had no names in the table."""
    names, has_names = request.get("columns", ()), "file" in report.table.columns
    return report.study == "recognition" and has_names and "audio" in names and "file" not in names


def _restore_input_rows(report: Contents, request: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of the table that the study was given, from those of its report."""
    table, names = report.table, list(request.get("columns", ()))
    if "condition" in table.columns and "condition" not in names:  # the first one is of unchanged recordings
        table = table[table["condition"] == table["condition"].iloc[0]]
    if lacking := [name for name in names if name not in table.columns]:
        message = (
            f"the report has no column {lacking[0]!r} of the table that was asked; call the study itself"
        )
        raise InvalidRequestError(message, parameter="report")
    sounds = [name for name in names if name in SOUNDS and table[name].isna().all()]
    if sounds and len(table):
        message = "the report has no recordings, as a page has previews alone; give its folder"
        raise InvalidRequestError(message, parameter="report")
    texts = table[names].astype(object).map(str).agg("\x1f".join, axis=1)
    sides = [name for name in (*SIDES, "voice", "take") if name in table.columns and name not in names]
    labels = table[sides].astype(object).map(str).agg("\x1f".join, axis=1) if sides else ""
    pairs = pd.DataFrame({"text": texts, "side": labels})
    number = pairs.groupby(["text", "side"]).cumcount()  # equal rows stay as many
    distinct = ~pairs.assign(number=number).duplicated(["text", "number"])
    # Recordings are called as before, though those of a saved report are copies with other names.
    names += ["file"] if _has_named_recordings(report, request) else []
    return table.loc[distinct, names].reset_index(drop=True)
