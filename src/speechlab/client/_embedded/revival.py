"""The embedded service started again, when it has stopped under clients that go on.

It comes back at the same address and with the same key, so that they need not know; what was sent to the one that
stopped is not sent again by this.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from speechlab.client._embedded.launch import launch
from speechlab.client._embedded.lease import LOCK_WAIT_S, found, process_runs
from speechlab.client._events import logger
from speechlab.errors import ServiceStartError

if TYPE_CHECKING:
    from speechlab.client._embedded.lease import Lease

_PAUSE_S = 60.0
"""Seconds within which it is not started a second time: what keeps on falling is not to be picked up by each call."""


def revived(lease: Lease, pid: int) -> bool:
    """Start the service again if its process has ended; may take as long as a start does.

    Args:
        lease: The use of it by a client that could not reach it.
        pid: Its process at that time.

    Returns:
        Whether it is there again, started by this process or by another one. If not, ``lease.trouble`` may say why.
    """
    from filelock import FileLock, Timeout

    before, state = lease.service, lease.state
    if before.pid != pid:
        return True  # another call has seen to it meanwhile
    if process_runs(pid):
        return False
    try:
        # The lock of every start: of many calls, threads and notebooks one starts it, and the others find it.
        with FileLock(state.start_lock, timeout=LOCK_WAIT_S, mode=0o600):
            service = found(state)
            if service is None:
                if time.monotonic() - lease.revived_at < _PAUSE_S:
                    return False
                lease.revived_at = time.monotonic()
                logger.warning(
                    "the embedded service (process %d) has stopped; starting it again (its log: %s)",
                    before.pid,
                    state.log,
                )
                service = launch(state, before)
                service.keep(state.service_file)
                logger.warning("the embedded service runs again (process %d)", service.pid)
    except (ServiceStartError, Timeout, OSError) as error:
        lease.trouble = str(error)
        logger.warning("the embedded service could not be started again: %s", error)
        return False
    if service.base_url != before.base_url or service.api_key.reveal() != before.api_key.reveal():
        lease.trouble = f"another one runs at {service.base_url}"
        return False
    lease.service, lease.trouble = service, ""
    return True
