"""Two systems, or several, compared on the same utterances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from speechlab._arguments import is_missing, require_columns, to_column_names
from speechlab.errors import InvalidRequestError
from speechlab.metrics._alignment.units import build_preparation
from speechlab.metrics._rates.comparison import Comparison
from speechlab.metrics._rates.tables import (
    Scorable,
    describe_signature_difference,
    join_signatures,
    to_scored_table,
)
from speechlab.metrics._statistics.bootstrap import BLOCK, Bootstrap
from speechlab.metrics._statistics.mapsswe import (
    ErrorPlaces,
    SegmentTest,
    compute_segment_differences,
    find_error_places,
    mapsswe,
)
from speechlab.metrics._statistics.significance import compute_sign_flip_p, holm, judge

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from speechlab.metrics._inputs import Groups

_NUMBERS = ("errors", "reference_length")
_TEXTS = ("reference_normalized", "hypothesis_normalized")
_REQUIRED_COLUMNS = ("unit", "signature", *_NUMBERS, *_TEXTS)


@overload
def compare(scored_a: Scorable, scored_b: Scorable, **options: Any) -> Comparison: ...
@overload
def compare(scored_a: Mapping[str, Scorable], **options: Any) -> pd.DataFrame: ...
def compare(
    scored_a: Scorable | Mapping[str, Scorable],
    scored_b: Scorable | None = None,
    *,
    on: str | Sequence[str] | None = None,
    names: tuple[str, str] = ("a", "b"),
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
    groups: Groups = None,
    **how: Any,
) -> Comparison | pd.DataFrame:
    """Compare two systems, or all pairs of several, that were scored on the same utterances.

    Args:
        scored_a: Result of :func:`speechlab.metrics.score` or :func:`speechlab.metrics.error_rate` for the first
            system; or a table without scores. Or such results of two or more systems, by their names.
        scored_b: The same for the second system; None where the first argument has all systems.
        on: Column or columns that identify the utterance in all tables; None for the index.
        names: Names of two systems.
        level: Confidence level of the intervals, and of verdicts: of several systems, for all pairs together.
        draws: Bootstrap draws of each interval.
        seed: The same seed gives the same intervals; p-values need none.
        groups: Column of the tables with blocks, such as ``"speaker"``, or a name for each row of the first one (of
            several systems, all tables then have the same number of rows). The interval draws whole blocks, and the
            test swaps the systems' errors in whole blocks.
        **how: Arguments of :func:`score` for tables without scores, such as ``language="en"``.

    Returns:
        For two systems: both rates, their difference with a paired bootstrap interval and an exact test, and the
        matched-pair test of NIST. For systems by names: one row for each pair, sorted by ``p_holm``, with the columns
        of :func:`judge`, then ``excluded`` and ``empty_references`` (utterances), ``blocks``, ``better_a`` and
        ``better_b`` (utterances), ``segments``, ``z`` and ``p_mapsswe`` (the test of NIST), ``signature``; p-values
        are corrected for the number of pairs.

    Raises:
        InvalidRequestError: A column is missing, an utterance occurs twice, the tables have no scored utterance in
            common, their references differ, the rows have different units or were scored in different ways, or there
            are fewer than two systems.

    Example:
        >>> said = ["good morning", "see you there"] * 10
        >>> one, other = said, ["good mourning", "see you there"] * 10
        >>> old, new = score(said, one, language="en"), score(said, other, language="en")
        >>> result = compare(old, new)
        >>> round(result.difference, 2), result.significant
        (0.2, True)
        >>> compare({"old": old, "new": new})[["a", "b", "verdict"]]
             a    b verdict
        0  old  new   worse
    """
    bootstrap = Bootstrap(level, draws, seed, groups)
    name_pair = _check_system_names(names)
    if isinstance(scored_a, Mapping):
        if scored_b is not None:
            message = "scored_a has systems by their names, so nothing is left for scored_b; put all of them into one"
            raise InvalidRequestError(message, parameter="scored_b")
        if len(scored_a) < 2:
            message = f"there is nothing to compare among {len(scored_a)} systems; give two or more"
            raise InvalidRequestError(message, parameter="scored_a")
        return judge(compare_all_pairs(scored_a, on, bootstrap, how), level=level)
    first = _prepare_system(to_scored_table(scored_a, None, how, "scored_a"), on, "scored_a", bootstrap)
    second = _prepare_system(to_scored_table(scored_b, None, how, "scored_b"), on, "scored_b", None)  # type: ignore[arg-type]  # None is refused there
    return _compare_systems(first, second, name_pair, bootstrap)


def compare_all_pairs(
    systems: Mapping[str, Scorable], on: str | Sequence[str] | None, bootstrap: Bootstrap, how: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the rows of all pairs of systems, the one with the smallest corrected p-value first."""
    sides = []
    for place, (name, scored) in enumerate(systems.items(), start=1):
        argument = f"scored_a[{name!r}]"
        table = to_scored_table(scored, None, how, argument)
        # The blocks of a pair are those of its first system.
        blocks = bootstrap if place < len(systems) else None
        sides.append((str(name), _prepare_system(table, on, argument, blocks)))
    pairs = combinations(sides, 2)
    rows = [_compare_systems(one, other, (a, b), bootstrap).row() for (a, one), (b, other) in pairs]
    return [rows[place] for place in np.argsort(holm([row["p"] for row in rows]), kind="stable")]


def _check_system_names(names: object) -> tuple[str, str]:
    if isinstance(names, tuple | list) and len(names) == 2 and all(isinstance(name, str) for name in names):
        return names[0], names[1]
    message = f"names={names!r:.60} are not the names of two systems; give two texts, such as ('old', 'new')"
    raise InvalidRequestError(message, parameter="names")


@dataclass(frozen=True, eq=False)
class _System:
    """A scored table, prepared for one or several comparisons."""

    keys: pd.Index[Any]  # identifier of each utterance
    scored: NDArray[np.bool_]  # whether each row has scores; rows without scores have zeros and empty texts
    errors: NDArray[np.int64]  # errors of each row
    lengths: NDArray[np.int64]  # reference tokens of each row
    texts: dict[str, NDArray[np.object_]]  # other necessary columns, as texts
    blocks: list[Any] | None  # block of each row; None if each row is a block

    @cached_property
    def places(self) -> ErrorPlaces | None:
        """The places of errors; None if a row is too long for the matched-pair test."""
        preparation_of = cache(lambda unit: build_preparation(unit, None, None))
        units, (said, recognized) = self.texts["unit"], (self.texts[name] for name in _TEXTS)
        rows = np.flatnonzero(self.scored & (said != recognized))
        sides = (
            [preparation_of(units[row]).tokenize_normalized(side[row]) for row in rows.tolist()]
            for side in (said, recognized)
        )
        try:
            found = find_error_places(*sides)
        except InvalidRequestError:
            return None
        return ErrorPlaces(rows[found.utterances], found.places)


def _prepare_system(
    table: pd.DataFrame, on: str | Sequence[str] | None, argument: str, bootstrap: Bootstrap | None
) -> _System:
    names = None if on is None else to_column_names(on, "on")
    if names == []:
        message = (
            "on=[] names no column; name those that identify an utterance, or leave it out to use the index"
        )
        raise InvalidRequestError(message, parameter="on")
    blocks = None
    if bootstrap is not None and bootstrap.groups is not None:
        table, _ = bootstrap.add_blocks(table, argument)
        blocks = table[BLOCK].tolist()
    hint = "Pass tables that speechlab.metrics.score returned"
    table = require_columns(table, *(names or []), *_REQUIRED_COLUMNS, argument=argument, hint=hint)
    keys = table.index if names is None else table[names].set_index(names).index
    if not keys.is_unique:
        twice = keys[keys.duplicated()].tolist()[0]
        message = f"{argument} has utterance {twice!r} more than once; name the columns that identify a row with on="
        raise InvalidRequestError(message, parameter="on")
    scored = table["errors"].notna().to_numpy(dtype=bool)
    errors, lengths = (table[name].fillna(0).to_numpy(dtype=np.int64) for name in _NUMBERS)
    texts = {}
    for name in ("unit", "signature", *_TEXTS):
        cells = ["" if is_missing(cell) else str(cell) for cell in table[name].tolist()]
        texts[name] = np.array(cells, dtype=object)
    return _System(keys, scored, errors, lengths, texts, blocks)


def _compare_systems(
    one: _System, other: _System, names: tuple[str, str], bootstrap: Bootstrap
) -> Comparison:
    first_rows, second_rows = _match_utterances(one.keys, other.keys)
    utterances = len(one.keys) + len(other.keys) - len(first_rows)
    scored_in_both = one.scored[first_rows] & other.scored[second_rows]
    first_rows, second_rows = first_rows[scored_in_both], second_rows[scored_in_both]
    if not len(first_rows):
        message = "the tables have no scored utterance in common; check the index, or name columns with on="
        raise InvalidRequestError(message, parameter="on")
    signatures = _collect_matching_signatures(one, other, first_rows, second_rows)
    units = sorted({*one.texts["unit"][first_rows].tolist(), *other.texts["unit"][second_rows].tolist()})
    if len(units) > 1:
        message = f"rates by {' and by '.join(units)} cannot be compared; select the rows of one unit in both tables"
        raise InvalidRequestError(message, parameter="unit")
    first, second, lengths = one.errors[first_rows], other.errors[second_rows], one.lengths[first_rows]
    blocks_of = None if one.blocks is None else [one.blocks[place] for place in first_rows.tolist()]
    drawn = replace(bootstrap, groups=blocks_of)
    blocks = drawn.sum_blocks(np.column_stack([first, second, lengths]))
    length = max(int(lengths.sum()), 1)
    groups = bootstrap.groups
    return Comparison(
        names=names,
        unit=units[0],
        signature=join_signatures(signatures),
        utterances=len(first_rows),
        utterances_excluded=utterances - len(first_rows),
        error_rate_a=int(first.sum()) / length,
        error_rate_b=int(second.sum()) / length,
        difference=int(second.sum() - first.sum()) / length,
        interval=drawn.compute_difference_interval(first, second, lengths),
        p=compute_sign_flip_p(blocks[:, 0] - blocks[:, 1]),
        tested="utterance" if groups is None else groups if isinstance(groups, str) else "group",
        mapsswe=_run_mapsswe(one, other, first_rows, second_rows),
        better_a=int((first < second).sum()),
        better_b=int((second < first).sum()),
        level=bootstrap.level,
        blocks=len(blocks),
        empty_references=int((lengths == 0).sum()),
    )


def _match_utterances(one: pd.Index[Any], other: pd.Index[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row numbers of the common utterances in both tables."""
    if one.nlevels != other.nlevels:
        return np.arange(0), np.arange(0)
    positions = np.arange(len(one)) if one.equals(other) else other.get_indexer(one)
    rows = np.flatnonzero(positions >= 0)
    return rows, positions[rows]


def _run_mapsswe(
    one: _System, other: _System, here: NDArray[np.intp], there: NDArray[np.intp]
) -> SegmentTest:
    first, second = one.places, other.places
    if first is None or second is None:
        return SegmentTest(0, math.nan, math.nan, math.nan, math.nan)
    return mapsswe(compute_segment_differences(first.select(here), second.select(there)))


def _collect_matching_signatures(
    one: _System, other: _System, here: NDArray[np.intp], there: NDArray[np.intp]
) -> list[str]:
    """Return the signatures; refuses rows that were scored in different ways or have different references."""
    signatures = {*zip(one.texts["signature"][here], other.texts["signature"][there], strict=True)}
    if unlike := sorted((a, b) for a, b in signatures if a != b):
        difference = describe_signature_difference(*unlike[0])
        message = f"the two systems were scored in different ways: {difference}; score both alike"
        raise InvalidRequestError(message, parameter="signature")
    differ = np.flatnonzero(one.texts[_TEXTS[0]][here] != other.texts[_TEXTS[0]][there])
    if len(differ):
        row, other_row = here[differ[0]], there[differ[0]]
        two = f"{one.texts[_TEXTS[0]][row]!r} and {other.texts[_TEXTS[0]][other_row]!r}"
        message = (
            f"utterance {one.keys[row]!r} has two references, {two}; compare systems on the same utterances"
        )
        raise InvalidRequestError(message, parameter="on")
    return [signature for signature, _ in signatures]
