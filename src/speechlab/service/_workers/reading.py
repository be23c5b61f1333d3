"""Reading of untrusted texts (phonemes, labels) in worker processes, with limits of memory and time.

Each language has its own, since the dictionaries are large and take seconds to load. A text that makes a front end
crash or loop costs a process, which is replaced, and its sender an error; and the service's own interpreter lock is
free while texts are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab.errors import EngineError, MissingDependencyError
from speechlab.service._workers.pool import Pool, WorkerClient, WorkerFailed

if TYPE_CHECKING:
    from speechlab.service._config import ServiceConfig

_MODULE = "speechlab.service._workers.reading_child"
_WARM = {
    "english": {"english": "Ready."},  # British, with a dictionary of its own, only when a voice wants it
    "japanese": {"japanese": "準備。", "labels": "準備。"},
}


class Readers(WorkerClient):
    """A :class:`~speechlab.engines.Reader` that reads in other processes.

    Args:
        config: How many processes a language has, and within which limits.
    """

    def __init__(self, config: ServiceConfig) -> None:
        limits = {"memory_bytes": config.read_memory_bytes, "cpu_s": config.read_wall_s}
        pools = {
            language: Pool(config.read_workers, _MODULE, {**limits, "warm": warm})
            for language, warm in _WARM.items()
        }
        super().__init__(pools, config.read_wall_s)

    def english(self, text: str, *, british: bool = False) -> str:
        """Phonemes of English."""
        return str(self._read("english", "british" if british else "english", text))

    def japanese(self, text: str) -> str:
        """Phonemes of Japanese."""
        return str(self._read("japanese", "japanese", text))

    def labels(self, text: str) -> list[str]:
        """Labels for OpenJTalk."""
        return [str(label) for label in self._read("japanese", "labels", text)]

    def _read(self, language: str, way: str, text: str) -> Any:
        try:
            fields, _ = self._ask(language, {"way": way}, text.encode("utf-8"))
        except WorkerFailed as failure:
            if failure.reason == "start":
                message = "no process can be started that reads texts"
                raise EngineError(message) from failure
            reason = {
                "time": f"it took more than {self._within_s:g} s (read_wall_s)",
                "memory": "it took more memory than a text may (read_memory_bytes)",
            }.get(failure.reason, "the process that read it ended; the log says how")
            message = f"a piece of {len(text)} characters cannot be read aloud: {reason}"
            raise EngineError(message) from failure
        if "missing" in fields:
            raise MissingDependencyError(fields["missing"])
        if "failed" in fields:
            raise EngineError(fields["failed"])
        return fields["read"]
