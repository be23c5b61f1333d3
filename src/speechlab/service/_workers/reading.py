"""Texts of strangers are read in processes of their own, with limits of memory, processor and time.

Each language has its own, since the dictionaries are large and take seconds to load. A text that makes a front end
crash or spin then costs a process, which is replaced, and its sender an error; and the lock of the service's own
Python is free while texts are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.errors import EngineError, MissingDependencyError
from speechlab.service._logs import log
from speechlab.service._workers.pool import Pool

if TYPE_CHECKING:
    from speechlab.service._config import ServiceConfig

_MODULE = "speechlab.service._workers.reading_child"
_WARM = {
    "english": {"english": "Ready."},  # British, with a dictionary of its own, only when a voice wants it
    "japanese": {"japanese": "準備。", "labels": "準備。"},
}


class Readers:
    """A :class:`~speechlab.engines.Reader` that reads in other processes. Blocks; for worker threads.

    Args:
        config: How many processes a language has, and within which limits.
    """

    def __init__(self, config: ServiceConfig) -> None:
        self._wall_s = config.read_wall_s
        limits = {"memory_bytes": config.read_memory_bytes, "cpu_s": config.read_wall_s}
        self._pools = {
            language: Pool(config.read_workers, _MODULE, {**limits, "warm": warm})
            for language, warm in _WARM.items()
        }

    @property
    def running(self) -> int:
        """How many of the processes there are now."""
        return sum(pool.running for pool in self._pools.values())

    def english(self, text: str, *, british: bool = False) -> str:
        """Phonemes of English."""
        return str(self._read("english", "british" if british else "english", text))

    def japanese(self, text: str) -> str:
        """Phonemes of Japanese."""
        return str(self._read("japanese", "japanese", text))

    def labels(self, text: str) -> list[str]:
        """Labels for OpenJTalk."""
        return [str(label) for label in self._read("japanese", "labels", text)]

    def close_idle(self, idle_s: float) -> bool:
        """End processes of a language that nobody has read for so long; whether there was one."""
        ended = [pool.close_idle(idle_s) for pool in self._pools.values()]
        return any(ended)

    def close(self) -> None:
        """End all of them, also those that work."""
        for pool in self._pools.values():
            pool.close()

    def _read(self, language: str, way: str, text: str) -> Any:
        with self._pools[language].worker() as worker:
            data = text.encode("utf-8")
            try:
                answer, status, late = worker.ask({"way": way}, data, within_s=self._wall_s)
            except OSError as error:
                log("no process to read in", level="error", error=type(error).__name__)
                message = "no process can be started that reads texts"
                raise EngineError(message) from error
            fields = {"failed": "memory"} if answer is None else answer[0]
            if answer is None:
                log(
                    "a reading process ended", level="warning", status=status, late=late, characters=len(text)
                )
                late_text = f"it took more than {self._wall_s:g} s (read_wall_s)"
                reason = late_text if late else "the process that read it ended; the log says how"
            elif fields.get("failed") == "memory":
                worker.end()
                reason = "it took more memory than a text may (read_memory_bytes)"
            elif "missing" in fields:
                raise MissingDependencyError(fields["missing"])
            elif "failed" in fields:
                raise EngineError(fields["failed"])
            else:
                return fields["read"]
        message = f"a piece of {len(text)} characters cannot be read aloud: {reason}"
        raise EngineError(message)
