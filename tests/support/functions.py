"""Functions that stand for models, for systems in processes of their own."""

import os
import time


class Counting:
    """A model that says where it was loaded, and how often it was called since."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, clip, language=None):
        print("a line that a model prints while it works")  # noqa: T201
        self.calls += 1
        return {"text": f"{os.getpid()} {self.calls}", "language": language}


def slowly():
    def transcribe(clip, language=None):
        if clip.duration_s > 1:
            time.sleep(600)
        if clip.duration_s < 0.1:
            os._exit(7)
        return f"{os.getpid()}"

    return transcribe


def spoken(text, voice):
    for word in text.split():
        yield [0.1] * (800 * len(word)), 8_000


async def counted_aloud(clips):
    count = 0
    async for _ in clips:
        count += 1
        yield f"{count}", False
    yield f"{count} pieces", True
