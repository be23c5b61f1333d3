"""Latency of translations: separate timed streams, one at a time, settings in turns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from speechlab.client import asking_afresh
from speechlab.errors import SpeechLabError
from speechlab.evaluate._speech.speed import in_turns, row_options

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import pandas as pd

    from speechlab.client import Client
    from speechlab.evaluate._translation.measures import Columns

_TYPES = {
    "system": "string",
    "source_lang": "string",
    "target_lang": "string",
    "text": "string",
    "turn": "Int64",
    "first_word_s": "Float64",
    "total_s": "Float64",
    "characters": "Int64",
    "concurrency": "Int64",
    "error": "string",
}


def no_times() -> pd.DataFrame:
    """The table of timed streams, without rows."""
    import pandas as pd

    return pd.DataFrame(columns=list(_TYPES)).astype(_TYPES)


def timed_translations(
    systems: Mapping[str, tuple[Client, Mapping[str, Any]]], frame: pd.DataFrame, columns: Columns, count: int
) -> pd.DataFrame:
    """Time the streams of a study, each system with the same texts of a direction.

    Each system and direction translates one text to warm up. Then there is one call at a time, each turn begins with
    another system or direction, and nothing comes from a store.

    Args:
        systems: The client and the options of each system.
        frame: The texts.
        columns: Columns of the texts.
        count: Texts for each system and direction; 0 for none.

    Returns:
        A row for each stream: ``system``, ``source_lang``, ``target_lang``, ``text``, ``turn`` (from 0),
        ``first_word_s`` (from the call to the first piece with a letter or digit), ``total_s``, ``characters``,
        ``concurrency`` (1) and ``error``.
    """
    import pandas as pd

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

    def timed(key: tuple[str, str, str], row: Mapping[Hashable, Any]) -> dict[str, Any]:
        system, source, target = key
        given = row_options(once[system].stream_translation, systems[system][1], row)
        facts = {
            "system": system,
            "source_lang": source,
            "target_lang": target,
            "text": row[text],
            "concurrency": 1,
        }
        return facts | _timed(once[system], str(row[text]), source_lang=source, target_lang=target, **given)

    return pd.DataFrame(in_turns(parts, timed), columns=list(_TYPES)).astype(_TYPES)


def _timed(lab: Client, text: str, **given: Any) -> dict[str, Any]:
    begun = time.perf_counter()
    first = None
    try:
        with lab.stream_translation(text, **given) as stream:
            for piece in stream:
                if first is None and any(map(str.isalnum, piece.text)):
                    first = time.perf_counter() - begun
            total_s = time.perf_counter() - begun
            characters = len(stream.text)
    except SpeechLabError as error:
        return {"error": str(error)}
    return {"first_word_s": first, "total_s": total_s, "characters": characters}
