"""The other side of ``_readers``: a process that reads texts for the voices, one after the other, within limits.

Run as ``python -m speechlab.service._workers.reading_child``. It is told its language first, and loads that one only.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from speechlab.engines import ReadHere
from speechlab.errors import EngineError, MissingDependencyError
from speechlab.service._workers.child import limit_cpu, limit_memory, own_pipes, read_message, write_message

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    """Work until the input ends."""
    source, sink = own_pipes()
    limits = read_message(source)
    if limits is None:
        return
    fields, _ = limits
    reader = ReadHere()
    ways: dict[str, Callable[[str], Any]] = {
        "english": reader.english,
        "british": lambda text: reader.english(text, british=True),
        "japanese": reader.japanese,
        "labels": reader.labels,
    }
    _warm_up(ways, fields["warm"])
    limit_memory(fields["memory_bytes"])
    write_message(sink, {"ready": True})
    while (message := read_message(source)) is not None:
        wanted, data = message
        limit_cpu(fields["cpu_s"])
        try:
            reply = {"read": ways[wanted["way"]](data.decode("utf-8"))}
        except MemoryError:
            # What is left of the attempt goes with the process.
            write_message(sink, {"failed": "memory"})
            return
        except MissingDependencyError as error:
            reply = {"missing": error.message}
        except EngineError as error:
            reply = {"failed": error.message}
        write_message(sink, reply)


def _warm_up(ways: dict[str, Callable[[str], Any]], warm: dict[str, str]) -> None:
    """Load dictionaries, so that the limits count what texts take; what is not installed is told when it is asked."""
    for way, text in warm.items():
        with contextlib.suppress(MissingDependencyError, EngineError):
            ways[way](text)


if __name__ == "__main__":
    main()
    os._exit(0)  # nothing is left to be tidied up, and whoever waits need not wait for it
