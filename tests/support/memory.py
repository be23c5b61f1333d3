"""How much memory a block takes at most."""

import gc
import threading
from contextlib import contextmanager

import psutil


@contextmanager
def grown_mib():
    """A function that returns, after the block, by how many MiB the process was larger at most during it."""
    process, most, done = psutil.Process(), [0], threading.Event()
    gc.collect()
    before = process.memory_info().rss

    def watch():
        while not done.wait(0.002):
            most[0] = max(most[0], process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: (max(most[0], process.memory_info().rss) - before) / (1 << 20)
    finally:
        done.set()
        thread.join()
