"""A waveform as a small picture, since notebooks that are not trusted keep ``img`` and drop ``svg``."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from speechlab.audio._measure import peaks
from speechlab.errors import AudioError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_LARGEST_PX = 8_192
_SHADES = 64


def waveform_png(
    samples: ArrayLike,
    *,
    width: int = 640,
    height: int = 72,
    scale: int = 2,
    color: tuple[int, int, int] = (66, 133, 214),
) -> bytes:
    """Draw a waveform on a transparent background.

    The default colour has a contrast of at least 3.7 to 1 on white and on the dark grey of notebooks.

    Args:
        samples: Shape (frames,) or (frames, channels), floats in [-1, 1] or int16.
        width: Width in CSS pixels.
        height: Height in CSS pixels; full scale is the whole height.
        scale: Picture pixels for each CSS pixel; 2 stays crisp on dense screens.
        color: Red, green and blue, 0 to 255.

    Returns:
        The bytes of a PNG of ``width * scale`` by ``height * scale`` pixels.

    Raises:
        AudioError: The samples or the size are not usable.
    """
    columns, rows = width * scale, height * scale
    if not (1 <= columns <= _LARGEST_PX and 1 <= rows <= _LARGEST_PX):
        raise AudioError(f"a picture of {columns} x {rows} pixels is not 1 to {_LARGEST_PX} on each side")
    coverage = _coverage(peaks(samples, columns), rows, line=float(scale))
    from PIL import Image

    picture = Image.fromarray(np.rint(coverage * (_SHADES - 1)).astype(np.uint8), mode="P")
    picture.putpalette([value for _ in range(_SHADES) for value in color])
    opacity = bytes(round(255 * shade / (_SHADES - 1)) for shade in range(_SHADES))
    buffer = BytesIO()
    picture.save(buffer, format="PNG", transparency=opacity, optimize=True)
    return buffer.getvalue()


def _coverage(outline: NDArray[np.float32], rows: int, line: float) -> NDArray[np.float64]:
    """How much of each pixel the waveform covers, 0 to 1, shape (rows, columns).

    Exact in the vertical, which is what makes edges smooth; silence is a line of ``line`` pixels.
    """
    middle = rows / 2
    half = (rows - line) / 2
    top = middle - outline[:, 1] * half - line / 2
    bottom = middle - outline[:, 0] * half + line / 2
    upper_edges = np.arange(rows, dtype=np.float64)[:, np.newaxis]
    covered = np.minimum(upper_edges + 1, bottom) - np.maximum(upper_edges, top)
    coverage: NDArray[np.float64] = np.clip(covered, 0.0, 1.0)
    return coverage
