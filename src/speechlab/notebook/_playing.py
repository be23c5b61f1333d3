"""Playing speech while it is made. The player is a widget, which lies in a room above."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any, Protocol


class Playback(Protocol):
    """A player of streamed speech, which :class:`speechlab.widgets.StreamPlayer` is."""

    @property
    def state(self) -> str:
        """``waiting``, ``speaking``, ``ended``, ``stopped`` or ``failed``."""

    @property
    def times(self) -> dict[str, Any]:
        """Times of the stream in seconds, after its end."""

    def wait(self) -> Any:
        """Wait for the end, and return the clip."""

    def stop(self) -> None:
        """Stop the sound and the service's work."""

    def __await__(self) -> Generator[Any, None, Any]: ...


def show_stream_player(stream: object, title: str = "") -> Playback:
    """Show a player of a stream in the cell that runs, and begin to read and to sound.

    Raises:
        MissingDependencyError: The packages for widgets are not installed.
    """
    root: Any = sys.modules[__name__.partition(".")[0]]  # its names load on first use
    player: Playback = root.widgets.StreamPlayer(stream, title=title).show()
    return player
