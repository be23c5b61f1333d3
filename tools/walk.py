"""The way of a call through the files of a room, traced: ``python tools/walk.py``.

Prints for each walk how many files of the room a call passes, how many stays it makes there (a stay lasts until
another file of the room is entered), how many stays return to a file that was entered before, and the files in order;
then the same for the sub-rooms, in which files on the ground of the room are left out.
Only first entries of functions count: what is awaited and resumed is one visit, and two files in turns count once,
such as a loop over columns or pieces. Each call is made once before it is
traced, so that imports, connections, the catalogue and models do not count.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

TEXT = "A walk through the house."


class Trace:
    """First entries of functions that stand in one room, over all threads that begin after it is installed."""

    def __init__(self) -> None:
        self._room: str | None = None
        self._frames: set[FrameType] = set()  # held, so that no address is used twice
        self._files: list[str] = []
        threading.setprofile(self)
        sys.setprofile(self)

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note a function that begins (what ``sys.setprofile`` calls)."""
        room, path = self._room, frame.f_code.co_filename
        if room is None or event != "call" or not path.startswith(room) or frame in self._frames:
            return
        self._frames.add(frame)
        if self._files[-1:] == [path]:
            return
        self._files.append(path)
        if self._files[-4:-2] == self._files[-2:]:
            del self._files[-2:]

    def walk(self, name: str, room: Path, call: Callable[[], object]) -> None:
        """Make a call twice, and print the way of the second through a room."""
        call()
        self._room, self._files = f"{room}{os.sep}", []
        call()
        self._room, self._frames = None, set()
        names = [Path(path).relative_to(room).with_suffix("").as_posix() for path in self._files]
        print(name)
        _show("files", names)
        folders = [folder for folder, slash, _ in (stay.rpartition("/") for stay in names) if slash]
        _show("sub-rooms", [folder for folder, _ in groupby(folders)])
        print()


def _show(kind: str, stays: list[str]) -> None:
    places = len(set(stays))
    print(f"  {places} {kind}, {len(stays)} stays, {len(stays) - places} returns: {' > '.join(stays)}")


def main() -> None:
    """Walk through client, batch, service and metrics."""
    trace = Trace()
    import pandas as pd

    import speechlab as sl

    house = Path(sl.__file__).parent
    with sl.service.run_service() as service:
        lab = sl.Client(
            service.base_url,
            ws_base_url=service.ws_base_url,
            api_key=service.api_key,
            transport="aiohttp",  # as all calls of a client but the first ones
        )
        voice = lab.voices().find(language="en")[0]

        def stream() -> None:
            with lab.stream_speech(TEXT, voice=voice, format="wav") as pieces:
                for _ in pieces:
                    pass

        def batch() -> None:
            frame = pd.DataFrame({"text": [TEXT], "voice": [voice.id]})
            with tempfile.TemporaryDirectory() as folder:
                sl.batch.synthesize(frame, lab, store=folder, progress=False)

        trace.walk(
            "A text synthesized, in client", house / "client", lambda: lab.synthesize(TEXT, voice=voice)
        )
        trace.walk("A text streamed, in client", house / "client", stream)
        trace.walk("A row of a table, in batch", house / "batch", batch)
        trace.walk(
            "A request to speak, in service", house / "service", lambda: lab.synthesize(TEXT, voice=voice)
        )
        lab.close()
    pair = (["the quick brown fox"], ["the quick brown box"])
    table = pd.DataFrame({"text": pair[0], "hypothesis": pair[1], "language": "en"})
    trace.walk("A pair scored", house / "metrics", lambda: sl.metrics.error_rate(*pair).confidence_interval())
    trace.walk("A row scored", house / "metrics", lambda: sl.metrics.score(table))


if __name__ == "__main__":
    main()
