"""The worker process of ``Readers``: reads texts of one language, one after the other, within limits.

Run as ``python -m speechlab.service._workers.reading_child``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from speechlab.engines import ReadHere
from speechlab.errors import EngineError, MissingDependencyError
from speechlab.service._workers.child import Work, answer_messages


def _prepare_reader(fields: dict[str, Any]) -> Work:
    reader = ReadHere()
    readers: dict[str, Callable[[str], Any]] = {
        "english": reader.english,
        "british": lambda text: reader.english(text, british=True),
        "japanese": reader.japanese,
        "labels": reader.labels,
    }
    for way, text in fields["warm"].items():
        # Loads the dictionaries of this language only; a missing package is reported on first use.
        with contextlib.suppress(MissingDependencyError, EngineError):
            readers[way](text)

    def answer_reading_message(wanted: dict[str, Any], data: bytearray) -> tuple[dict[str, Any], bytes]:
        try:
            return {"read": readers[wanted["way"]](data.decode("utf-8"))}, b""
        except MissingDependencyError as error:
            return {"missing": error.message}, b""
        except EngineError as error:
            return {"failed": error.message}, b""

    return answer_reading_message


if __name__ == "__main__":
    answer_messages(_prepare_reader)
