"""Latency of translations: separate timed streams in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab.client import asking_afresh
from speechlab.evaluate._speech.speed import row_options, table_of_calls

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import pandas as pd

    from speechlab.batch import Progress
    from speechlab.client import Client
    from speechlab.evaluate._translation.measures import Columns

_COLUMNS = ("system", "source_lang", "target_lang", "text", "first_word_s", "total_s", "characters")


def no_times() -> pd.DataFrame:
    """The table of timed streams, without rows."""
    return table_of_calls([], _COLUMNS)


def timed_translations(
    systems: Mapping[str, tuple[Client, Mapping[str, Any]]],
    frame: pd.DataFrame,
    columns: Columns,
    count: int,
    at_once: Sequence[int] = (1,),
    progress: Progress = False,
) -> pd.DataFrame:
    """Time the streams of a study in turns, each system with the same texts of a direction.

    Args:
        systems: The client and the options of each system.
        frame: The texts.
        columns: Columns of the texts.
        count: Texts for each system and direction; 0 for none.
        at_once: Calls of a system that begin together; one number after the other.
        progress: How the calls are shown.
    """
    if not count or not len(frame):
        return no_times()
    once = {name: asking_afresh(lab) for name, (lab, _) in systems.items()}
    text, _, source_lang, target_lang = columns
    rows = frame[frame[text].map(lambda cell: isinstance(cell, str) and bool(cell.strip()))]
    directions = list(
        rows.drop_duplicates([text, source_lang, target_lang]).groupby([source_lang, target_lang], sort=False)
    )
    parts = {
        (name, str(source), str(target)): part.to_dict("records")[:count]
        for name in systems
        for (source, target), part in directions
    }

    def call(key: tuple[str, str, str], row: Mapping[Hashable, Any]) -> dict[str, Any]:
        system, source, target = key
        given = row_options(once[system].stream_translation, systems[system][1], row)
        timed = batch.timed(
            lambda arrivals: _translated(
                arrivals, once[system], str(row[text]), source_lang=source, target_lang=target, **given
            )
        )
        facts = {"system": system, "source_lang": source, "target_lang": target, "text": row[text]}
        return {**facts, "characters": None if timed.result is None else len(timed.result), **timed.times()}

    return table_of_calls(batch.in_turns(parts, call, at_once, progress), _COLUMNS)


def _translated(arrivals: batch.Arrivals, lab: Client, text: str, **given: Any) -> str:
    """Read a stream to its end, and note its first word."""
    with lab.stream_translation(text, **given) as stream:
        for piece in stream:
            arrivals.words(piece.text)
        return stream.text
