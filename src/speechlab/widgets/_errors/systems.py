"""Scored tables as tables of errors: the classes and confusions of each row, for one or two systems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from speechlab._arguments import is_pandas_frame, require_columns
from speechlab._pandas import pd
from speechlab.errors import InvalidRequestError
from speechlab.metrics import edits, score
from speechlab.widgets._table.shown import TableView

_OPERATIONS = {"substitutions": "substitution", "deletions": "deletion", "insertions": "insertion"}
_CLASSES = ("notation", "homophone", "tone", "recognition")
_COUNTS = ("hits", *_OPERATIONS)
_SCORE_COLUMNS = (
    "unit",
    "signature",
    "reference_length",
    "reference_normalized",
    "hypothesis_normalized",
    *_COUNTS,
)
# The rate by which Japanese rows are sorted, because the spelling of a word is not an error of the speaker.
_READING_RATE = "reading_cer"
# The empty side of a deletion or an insertion.
_EMPTY_SIDE = "∅"
_NOT_SCORED = "not scored"
# Columns that each of two systems always has separately.
_SEPARATE_COLUMNS = ("error_rate", "errors", "error_classes", "confusions")


class ErrorTable(NamedTuple):
    """A table of errors, the worst rows first."""

    frame: pd.DataFrame
    reference: Any
    hypotheses: tuple[Any, ...]
    shown: list[Any]
    categories: list[Any]
    names: tuple[str, ...] = ()  # of the two systems


def to_error_table(
    scored: pd.DataFrame,
    other: pd.DataFrame | None = None,
    *,
    names: Iterable[str] | None = None,
    reference: Any = "text",
    hypothesis: Any = "hypothesis",
    language: Any = "language",
    audio: Any = None,
    columns: Iterable[Any] | None = None,
    max_rating: int = 5,
    static_rows: int = 8,
) -> TableView:
    """Return the table of an :class:`ErrorBrowser`, which has the same arguments, without the widget."""
    table = _build_error_table(scored, other, names, reference, hypothesis, language)
    if audio and audio not in table.frame.columns and table.names:
        audio = f"{audio}_{table.names[0]}"  # two systems that have other sounds
    return TableView(
        table.frame,
        audio=audio,
        columns=table.shown if columns is None else columns,
        reference=table.reference,
        hypotheses=table.hypotheses,
        language=language if language in table.frame.columns or language != "language" else None,
        title="Errors",
        categories=table.categories,
        max_rating=max_rating,
        static_rows=static_rows,
    )


def _build_error_table(
    scored: Any, other: Any, names: Iterable[str] | None, reference: Any, hypothesis: Any, language: Any
) -> ErrorTable:
    columns = list(hypothesis) if isinstance(hypothesis, list | tuple) else [hypothesis]
    if len(columns) > 2 or not columns:
        message = f"hypothesis names {len(columns)} columns; give one, or two for two systems"
        raise InvalidRequestError(message, parameter="hypothesis")
    if other is None and len(columns) == 1:
        if names is not None:
            raise InvalidRequestError("names are for two systems; leave them out for one", parameter="names")
        return build_single_error_table(scored, reference, columns[0], language)
    defaults: list[Any] = columns if other is None else ["a", "b"]
    called: tuple[Any, ...] = tuple(map(str, defaults)) if names is None else tuple(names)
    if len(called) != 2 or not all(isinstance(name, str) and name for name in called) or len(set(called)) < 2:
        message = f"names={called!r:.60} are not names of two systems; give two different texts"
        raise InvalidRequestError(message, parameter="names")
    first, second = called
    tables = (scored, scored if other is None else other)
    if other is None and hasattr(scored, "columns") and "signature" in scored.columns:
        # existing scores belong to one hypothesis
        message = (
            "two columns of one table are scored here; give a table without scores, or two scored tables"
        )
        raise InvalidRequestError(message, parameter="hypothesis")
    return build_paired_error_table(tables, (first, second), reference, (columns[0], columns[-1]), language)


def build_single_error_table(
    scored: pd.DataFrame, reference: Any, hypothesis: Any, language: Any
) -> ErrorTable:
    """Return the errors of a system; columns that a scored table lacks are replaced by its normalized texts."""
    frame = score_and_add_error_lists(scored, reference, hypothesis, language)
    references = reference if reference in frame.columns else "reference_normalized"
    hypotheses = hypothesis if hypothesis in frame.columns else "hypothesis_normalized"
    ordered = frame.iloc[_rank_rows_by_rate(frame)]
    groups = _list_group_columns(frame, language)
    readings = (
        [_READING_RATE] if _READING_RATE in frame.columns and frame[_READING_RATE].notna().any() else []
    )
    visible = [references, hypotheses, *readings, "error_rate", "errors", "error_classes"]
    visible += [*_list_fault_columns(frame), *groups]
    return ErrorTable(_move_lists_before_scores(ordered), references, (hypotheses,), visible, groups)


def build_paired_error_table(
    tables: tuple[pd.DataFrame, pd.DataFrame],
    names: tuple[str, str],
    reference: Any,
    hypotheses: tuple[Any, Any],
    language: Any,
) -> ErrorTable:
    """Return the errors of two systems, whose tables have one index; the rows first in which they differ most."""
    first = score_and_add_error_lists(tables[0], reference, hypotheses[0], language)
    second = score_and_add_error_lists(tables[1], reference, hypotheses[1], language)
    second = _reorder_second_rows(first, second)
    references = reference if reference in first.columns else "reference_normalized"
    columns = tuple(
        name if name in table.columns else "hypothesis_normalized"
        for name, table in zip(hypotheses, (first, second), strict=True)
    )
    separate = {*_SEPARATE_COLUMNS, *(columns if columns[0] == columns[1] else ())}
    frame = _join_systems(first, second, names, references, separate)
    titles = tuple(
        name if name in frame.columns else f"{name}_{system}"
        for name, system in zip(columns, names, strict=True)
    )
    rates = [f"error_rate_{name}" for name in names]
    groups = _list_group_columns(frame, language)
    visible = [references, *titles, "fewer_errors", "error_difference", *rates]
    visible += [*_list_fault_columns(frame, names), *groups]
    ordered = frame.iloc[_rank_rows_by_difference(first, second)]
    return ErrorTable(_move_lists_before_scores(ordered), references, titles, visible, groups, names)


def score_and_add_error_lists(
    table: pd.DataFrame, reference: Any, hypothesis: Any, language: Any
) -> pd.DataFrame:
    """Return a scored table with the columns ``error_classes`` and ``confusions``: a list in each row."""
    if not is_pandas_frame(table):
        message = (
            f"a {type(table).__name__} is not a scored table; give the result of speechlab.metrics.score"
        )
        raise InvalidRequestError(message, parameter="scored")
    if not {"errors", "signature"} <= set(table.columns):
        table = score(table, reference=reference, hypothesis=hypothesis, language=language)
    hint = "Give the result of speechlab.metrics.score"
    table = require_columns(table, "error_rate", "errors", *_SCORE_COLUMNS, argument="scored", hint=hint)
    # by position, because an index may contain a label twice; without the original texts, which are not needed
    bare = table[["errors", *_SCORE_COLUMNS]].reset_index(drop=True)
    confusions: list[list[str]] = [[] for _ in range(len(bare))]
    differences = edits(bare)
    for row, expected, recognized in zip(
        differences["utterance"], differences["reference"], differences["hypothesis"], strict=True
    ):
        sides = [_EMPTY_SIDE if pd.isna(side) else side for side in (expected, recognized)]
        pair = " → ".join(sides)
        if pair not in confusions[row]:
            confusions[row].append(pair)
    lists: dict[str, Any] = {"error_classes": _list_error_classes(bare, table), "confusions": confusions}
    return table.assign(**lists)


def _join_systems(
    first: pd.DataFrame, second: pd.DataFrame, names: tuple[str, str], references: Any, separate: set[Any]
) -> pd.DataFrame:
    """Join two tables. Columns that differ and those of ``own`` occur for each system, and the other columns once."""
    columns: dict[Any, Any] = {}
    for name in dict.fromkeys([*first.columns, *second.columns]):
        left, right = first.get(name), second.get(name)
        common = left is not None and right is not None
        if name in separate or (
            common and name != references and not _has_equal_or_nonscalar_values(left, right)
        ):
            columns |= {f"{name}_{names[0]}": left, f"{name}_{names[1]}": right}
        else:
            columns[name] = right if left is None else left
    more = (second["errors"] - first["errors"]).astype("Int64")
    differences: list[Any] = more.tolist()
    fewer = [
        None if pd.isna(by) else names[0] if by > 0 else names[1] if by < 0 else "neither"
        for by in differences
    ]
    columns["fewer_errors"] = pd.Categorical(fewer, categories=[*names, "neither"])
    columns["error_difference"] = more
    return pd.DataFrame(columns, index=first.index)


def _rank_rows_by_rate(frame: pd.DataFrame) -> Any:
    """Positions of the rows, the worst first: by the rate of readings if present, otherwise by ``error_rate``."""
    rate = frame["error_rate"].astype("Float64").reset_index(drop=True)
    if _READING_RATE in frame.columns:
        rate = frame[_READING_RATE].astype("Float64").reset_index(drop=True).fillna(rate)
    keys = rate.to_frame("rate").assign(errors=frame["errors"].to_numpy())
    return keys.sort_values(
        ["rate", "errors"], ascending=False, na_position="last", kind="stable"
    ).index.to_numpy()


def _rank_rows_by_difference(first: pd.DataFrame, second: pd.DataFrame) -> Any:
    """Positions of the rows: by the difference in errors, then by whether texts differ, then by the higher rate."""
    rates = pd.concat([first["error_rate"], second["error_rate"]], axis=1)
    keys = pd.DataFrame(
        {
            "errors": (second["errors"] - first["errors"]).abs().astype("Float64"),
            "texts": (first["hypothesis_normalized"] != second["hypothesis_normalized"]).astype("Float64"),
            "rate": rates.max(axis=1).astype("Float64"),
            "place": range(len(first)),
        }
    ).reset_index(drop=True)
    ascending = [False, False, False, True]
    return keys.sort_values(list(keys.columns), ascending=ascending)["place"].to_numpy()


def _move_lists_before_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with its columns of lists before the scores, because filters have the order of the columns."""
    lists = [name for name in frame.columns if str(name).startswith(("error_classes", "confusions"))]
    single = [name for name in frame.columns if name not in lists]
    place = single.index("unit") if "unit" in single else len(single)
    return frame[[*single[:place], *lists, *single[place:]]]


def _list_error_classes(bare: pd.DataFrame, table: pd.DataFrame) -> list[list[str]]:
    """Return the errors of each row: its operations, and its classes of differences if the language has some."""
    words = [(name, _OPERATIONS[name]) for name in _OPERATIONS]
    words += [(f"{kind}_differences", kind) for kind in _CLASSES if f"{kind}_differences" in table.columns]
    classes: list[list[str]] = [[] if scored else [_NOT_SCORED] for scored in bare["errors"].notna()]
    for column, word in words:
        for row, occurs in enumerate(table[column].fillna(0).to_numpy() > 0):
            if occurs:
                classes[row].append(word)
    return classes


def _list_group_columns(frame: pd.DataFrame, language: Any) -> list[Any]:
    """Return the existing columns of categories for filters."""
    with_names = "voice_name" in frame.columns and frame["voice_name"].fillna("").ne("").any()
    voice = "voice_name" if with_names else "voice"  # a name is more helpful than an id
    return [name for name in dict.fromkeys([language, "language", "system", voice]) if name in frame.columns]


def _list_fault_columns(frame: pd.DataFrame, names: Sequence[str] = ()) -> list[Any]:
    """Return the columns with the reasons for failed rows and for rows without a score, if there are such rows."""
    reasons = ["score_error", "error", *(f"error_{name}" for name in names)]
    return [name for name in reasons if name in frame.columns and frame[name].notna().any()]


def _has_equal_or_nonscalar_values(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    try:
        return bool(one.equals(other)) or not all(
            map(pd.api.types.is_scalar, [*one.head(20), *other.head(20)])
        )
    except (TypeError, ValueError):  # cells that cannot be compared
        return True


def _reorder_second_rows(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """The second table in the order of the first; refused if it has other rows, or was scored in another way."""
    for table, argument in ((first, "scored"), (second, "other")):
        if not table.index.is_unique:
            label = table.index[table.index.duplicated()].tolist()[0]
            message = f"two rows of {argument} have the index label {label!r}; index labels must be unique"
            raise InvalidRequestError(message, parameter=argument)
    for complete, partial, argument in ((first, second, "other"), (second, first, "scored")):
        absent = complete.index.difference(partial.index, sort=False)
        if len(absent):
            message = (
                f"{argument} lacks {len(absent):,} of the rows, such as {absent[0]!r}; give two tables with the "
                "same index, as in scored.loc[scored.index.intersection(other.index)]"
            )
            raise InvalidRequestError(message, parameter=argument)
    second = second.reindex(first.index)
    for column, what in (
        ("signature", "were scored in different ways"),
        ("reference_normalized", "have other references"),
    ):
        left, right = first[column].astype("string"), second[column].astype("string")
        differs = ((left != right) & left.notna() & right.notna()).fillna(value=False).to_numpy(dtype=bool)
        if differs.any():
            label = first.index[differs][0]
            message = (
                f"the two tables {what}, as in row {label!r}: {left[label]!r:.200} and {right[label]!r:.200}"
            )
            raise InvalidRequestError(message, parameter="other")
    return second
