"""The processes that tests and services start."""

import psutil


def own_workers(module: str) -> list[psutil.Process]:
    """The processes below this one that run a module."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if module in child.cmdline():
                found.append(child)
        except psutil.Error:
            continue
    return found


def newest_worker(module: str) -> psutil.Process:
    return max(own_workers(module), key=lambda process: process.create_time())
