"""A model of sherpa-onnx in a process of its own, from the side of the engine."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
from typing import IO, Any

from speechlab._children import build_child_environment, read_message, write_message
from speechlab.errors import EngineError, MissingDependencyError, ModelError

_LOAD_S, _WORK_S = 300.0, 300.0
# The file and line in sherpa-onnx's source before its messages.
_SOURCE_LINE = re.compile(r"^\S*\.(cc|h|cpp):\S+\s*")
_TAIL_BYTES = 2_000


class ModelProcess:
    """A process that has loaded a model; used by one thread at a time.

    Args:
        what: The model, for messages, such as ``"the model in /data/x"``.
        fields: What the process shall make (``child.py``).
    """

    def __init__(self, what: str, fields: dict[str, Any]) -> None:
        self._what = what
        # Messages about work may quote the user's text; those of a voice are discarded by its process.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "speechlab.engines._sherpa.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=build_child_environment(),
        )
        try:
            self.described, _ = self._exchange_message(fields, b"", _LOAD_S)
        except EngineError as error:
            self.close()
            if "MissingDependencyError" in str(error):
                raise MissingDependencyError(str(error).partition("MissingDependencyError: ")[2]) from error
            raise ModelError(f"{self._what} cannot be loaded: {error}; check or replace its files") from error
        except BaseException:
            self.close()
            raise

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def request(self, fields: dict[str, Any], data: bytes = b"") -> tuple[dict[str, Any], bytearray]:
        """Send a message and return the reply. Blocks.

        Raises:
            EngineError: The library failed, its process ended, or it took too long.
        """
        try:
            return self._exchange_message(fields, data, _WORK_S)
        except EngineError as error:
            raise EngineError(f"{self._what} failed: {error}") from error

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _exchange_message(
        self, fields: dict[str, Any], data: bytes, within_s: float
    ) -> tuple[dict[str, Any], bytearray]:
        source: IO[bytes] | None = self._process.stdout
        sink: IO[bytes] | None = self._process.stdin
        assert source is not None
        assert sink is not None
        late = threading.Event()

        def kill_late() -> None:
            late.set()
            self._process.kill()

        alarm = threading.Timer(within_s, kill_late)
        alarm.daemon = True
        alarm.start()
        try:
            with contextlib.suppress(OSError):  # it has ended: there is no reply
                write_message(sink, fields, data)
            reply = read_message(source)
        finally:
            alarm.cancel()
        if late.is_set():
            raise EngineError(f"sherpa-onnx took more than {within_s:g} s, and was ended")
        if reply is None:
            raise EngineError(self._describe_end())
        if failure := reply[0].get("failed"):
            raise EngineError(f"sherpa-onnx raised {' '.join(str(failure).split())}")
        return reply

    def _describe_end(self) -> str:
        status = self._process.wait()
        with contextlib.suppress(ValueError):
            if status < 0:
                return f"sherpa-onnx crashed ({signal.Signals(-status).name}){self._read_last_lines()}"
        return f"sherpa-onnx ended its process (status {status}){self._read_last_lines()}"

    def _read_last_lines(self) -> str:
        """Return what the library wrote last, as the end of a sentence."""
        size = self._log.seek(0, 2)
        self._log.seek(max(0, size - _TAIL_BYTES))
        lines = self._log.read().decode("utf-8", "replace").splitlines()
        said = [_SOURCE_LINE.sub("", line).strip() for line in lines]
        last = " ".join(line for line in said if line)[-400:]
        return f": {last}" if last else ""
