"""Reading of untrusted texts (phonemes, labels) in worker processes, with limits of memory and time.

Each language has its own, since the dictionaries are large and take seconds to load. A text that makes a front end
crash or loop costs a process, which is replaced, and its sender an error; and the service's own interpreter lock is
free while texts are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.errors import EngineError, MissingDependencyError
from speechlab.service._workers.pool import Pool, WorkerFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from speechlab.service._config import ServiceConfig

_MODULE = "speechlab.service._workers.reading_child"
_WARM = {
    "english": {
        "english": "Ready."
    },  # British English has its own dictionary, loaded for voices that need it
    "japanese": {"japanese": "準備。", "labels": "準備。"},
}

_LANGUAGES = {"en": "english", "ja": "japanese"}


class Readers:
    """A :class:`~speechlab.engines.Reader` that reads in other processes."""

    def __init__(self, config: ServiceConfig) -> None:
        limits = {"memory_bytes": config.read_memory_bytes, "cpu_s": config.read_wall_s}
        self._within_s = config.read_wall_s
        self._pools = {
            language: Pool(
                config.read_workers, _MODULE, {**limits, "warm": warm}, within_s=config.read_wall_s
            )
            for language, warm in _WARM.items()
        }

    @property
    def running(self) -> int:
        """Number of processes that run."""
        return sum(pool.running for pool in self._pools.values())

    def start(self, languages: Iterable[str]) -> None:
        """Start one process for each of these languages (``en``, ``ja``) now. Blocks for seconds."""
        for code in languages:
            if code in _LANGUAGES:
                self._pools[_LANGUAGES[code]].start()

    def close_idle(self, idle_s: float) -> bool:
        """End the processes of languages that have been idle for this long; return whether there were any."""
        ended = [pool.close_idle(idle_s) for pool in self._pools.values()]
        return any(ended)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def english(self, text: str, *, british: bool = False) -> str:
        return str(self._read("english", "british" if british else "english", text))

    def japanese(self, text: str) -> str:
        return str(self._read("japanese", "japanese", text))

    def labels(self, text: str) -> list[str]:
        return [str(label) for label in self._read("japanese", "labels", text)]

    def _read(self, language: str, way: str, text: str) -> Any:
        try:
            fields, _ = self._pools[language].ask({"way": way}, text.encode)
        except WorkerFailed as failure:
            if failure.reason == "start":
                message = "the process that reads texts cannot be started"
                raise EngineError(message) from failure
            reason = {
                "time": f"it took more than {self._within_s:g} s (read_wall_s)",
                "memory": "it took more memory than allowed (read_memory_bytes)",
            }.get(failure.reason, "the process that read it ended; the log has the reason")
            message = f"a piece of {len(text)} characters cannot be read aloud: {reason}"
            raise EngineError(message) from failure
        if "missing" in fields:
            raise MissingDependencyError(fields["missing"])
        if "failed" in fields:
            raise EngineError(fields["failed"])
        return fields["read"]
