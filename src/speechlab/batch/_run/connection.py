"""The connection of a run to the scheduler of a cluster; one that was given up is made anew."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any

from speechlab._require import require
from speechlab.errors import InvalidRequestError

# Seconds that the scheduler has to answer.
ANSWER_S = 5.0


class ClusterConnection:
    """A client of the scheduler: that of the user, or one of the run's own once that has given up."""

    def __init__(self, executor: Any, topic: str, receive: Callable[[Any], object]) -> None:
        self._distributed = require("distributed")
        if not isinstance(executor, self._distributed.Client) or executor.asynchronous:
            message = f"executor is {executor!r}; give a dask.distributed.Client that is not asynchronous"
            raise InvalidRequestError(message, parameter="executor")
        if executor.scheduler is None:
            message = "executor is closed; make a new dask.distributed.Client"
            raise InvalidRequestError(message, parameter="executor")
        self.executor: Any = executor
        self.address = str(executor.scheduler.address)
        self._topic, self._receive = topic, receive
        self._is_own, self._closed = False, False
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether tasks can be given to the scheduler."""
        return bool(self.executor.status == "running")

    def find_scheduler_and_workers(self) -> tuple[str, set[str]]:
        """Return the id of the scheduler and the addresses of its workers; empty while they are away."""
        if self.executor.status in ("closed", "closing"):
            self._open_anew()
        executor = self.executor
        if executor.status != "running":
            return "", set()
        try:
            identity = executor.sync(executor.scheduler.identity, n_workers=-1, callback_timeout=ANSWER_S)
        # away, or lost meanwhile: what waits in a client that closes is canceled, or finds none of its parts
        except (OSError, AttributeError, RuntimeError, ValueError, CancelledError, asyncio.CancelledError):
            return "", set()
        return identity["id"], set(identity["workers"])

    def subscribe(self) -> None:
        """Receive the messages of the workers, which a new scheduler has to be asked for."""
        with suppress(Exception):
            self.executor.subscribe_topic(self._topic, self._receive)

    def _open_anew(self) -> None:
        """Connect to the scheduler again, if it is there."""
        given = self.executor
        file = given.scheduler_file
        where = {"scheduler_file": file} if file and Path(file).is_file() else {"address": self.address}
        options = {"security": given.security, "timeout": ANSWER_S, "set_as_default": False}
        try:
            executor = self._distributed.Client(**where, **options)
        except (OSError, RuntimeError):
            return
        with self._lock:
            self.executor, self._is_own = executor, True
            closed = self._closed
        if closed:
            self.close()

    def close(self) -> None:
        """Leave the user's client as it was, and close one of the run's own."""
        with self._lock:
            self._closed, is_own, self._is_own = True, self._is_own, False
        with suppress(Exception):
            self.executor.unsubscribe_topic(self._topic)
        if is_own:
            with suppress(Exception):
                self.executor.close()


async def await_result_or_error(future: Any) -> Any:
    """Return the result of a future, or its error."""
    try:
        return await future
    except asyncio.CancelledError as error:
        return error
    except Exception as error:  # noqa: BLE001 - judged by the run's own loop
        return error
