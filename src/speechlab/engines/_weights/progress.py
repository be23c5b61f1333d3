"""Progress of downloads: shown as a bar of tqdm, unless the caller collects it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Receives the name of a model, and the bytes done and in all.
ProgressListener = Callable[[str, int, int], None]

_listener: ContextVar[ProgressListener | None] = ContextVar("speechlab_download_progress", default=None)


@contextmanager
def send_progress_to(listener: ProgressListener) -> Iterator[None]:
    """Send the progress of downloads in a ``with`` block to a function, in place of a bar."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def show_progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show the progress of one download; gives a function that adds bytes."""
    listener = _listener.get()
    if listener is not None:
        done = 0

        def add_bytes(count: int) -> None:
            nonlocal done
            done = min(total, done + count)
            listener(name, done, total)

        listener(name, 0, total)
        yield add_bytes
        return
    from tqdm.auto import tqdm

    # Without a terminal or notebook it shows nothing.
    with tqdm(total=total, desc=name, unit="B", unit_scale=True, disable=None) as bar:
        yield lambda count: bar.update(count) and None
