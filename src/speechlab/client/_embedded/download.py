"""The progress of a download that the embedded service makes at its start, as a bar."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any


class DownloadBar:
    """A bar of tqdm for the progress lines of a service that starts; nothing without a terminal or notebook."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._model = ""

    def show(self, fields: bytes) -> None:
        """Show what a line says; one that is not understood is left out."""
        with suppress(ValueError, KeyError, TypeError):
            progress = json.loads(fields)
            model, done, total = str(progress["model"]), int(progress["done"]), int(progress["total"])
            if self._bar is None or model != self._model:
                from tqdm.auto import tqdm

                self.close()
                self._model = model
                self._bar = tqdm(total=total, desc=model[:80], unit="B", unit_scale=True, disable=None)
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """End the bar; what it showed stays."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
