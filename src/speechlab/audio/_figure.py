"""A clip in a notebook: waveform, player and facts, as plain HTML that needs no kernel.

The waveform is a small picture, because untrusted notebooks keep ``img`` and drop ``svg``.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple, Protocol

from speechlab._formats import CONTENT_TYPES, AudioFormat
from speechlab._require import import_lazily, require
from speechlab.audio._codec.encode import encode_small_opus
from speechlab.audio._measure import compute_peaks, rms_dbfs
from speechlab.audio._samples import Samples, count_channels, format_layout, mix_to_mono, resample
from speechlab.display import Html, audio_figure, data_url
from speechlab.errors import AudioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
else:
    np = import_lazily("numpy")

_MAX_PX = 8_192
# Size of the waveform of a figure, in CSS pixels.
_WIDTH, _HEIGHT = 480, 48
# Number of levels that smooth the edges; sixteen look the same, and take 50% more bytes.
_SHADES = 4


class _Sound(Protocol):
    """The content of a clip's figure: samples to draw and sound to play."""

    @property
    def samples(self) -> Samples: ...
    @property
    def sample_rate(self) -> int: ...


def render_clip_figure(
    clip: _Sound, *, title: str | None = None, text: str | None = None, lang: str | None = None
) -> Html:
    """Make the figure of a clip for a notebook."""
    samples, sample_rate = clip.samples, clip.sample_rate
    duration_s = len(samples) / sample_rate
    rate = f"{sample_rate:,} Hz".replace(",", "\u202f")
    facts = [_format_duration(duration_s), rate, format_layout(samples)]
    if not len(samples):
        return audio_figure(None, title=title, facts=[*facts, "empty"], text=text, lang=lang)
    preview = build_sound_preview(clip)
    facts.append("lossy preview (Opus)")
    if preview.seconds < duration_s:
        facts.append(f"plays the first {_format_duration(preview.seconds)} only")
    return audio_figure(
        preview.url,
        title=title,
        facts=facts,
        image_url=data_url(draw_waveform(samples, width=_WIDTH, height=_HEIGHT, scale=1), "image/png"),
        image_alt=f"Waveform of {title or 'audio clip'}, {_format_duration(duration_s)}, "
        f"{rms_dbfs(samples):.0f} dBFS",
        text=text,
        lang=lang,
    )


def draw_still(samples: ArrayLike) -> bytes:
    """Draw the waveform of a figure alone, twice as fine, for hosts and converters that keep no HTML."""
    return draw_waveform(samples, width=_WIDTH, height=_HEIGHT, scale=2)


class SoundPreview(NamedTuple):
    """A small preview of a clip: Opus at 13 kbit/s for each channel, in Ogg.

    All current browsers play it: Chromium and Firefox in every version, Safari since 18.4.
    """

    data: bytes
    seconds: float

    @property
    def url(self) -> str:
        """The sound as a data URL."""
        return data_url(self.data, CONTENT_TYPES[AudioFormat.OGG])


def build_sound_preview(clip: _Sound, *, max_bytes: int = 1_000_000) -> SoundPreview:
    """Make the preview of a clip, or of as much of its beginning as fits."""
    samples = clip.samples if count_channels(clip.samples) <= 2 else mix_to_mono(clip.samples)
    seconds = min(len(samples) / clip.sample_rate, 120.0)
    while True:
        beginning = samples[: max(round(seconds * clip.sample_rate), 1)]
        data = encode_small_opus(resample(beginning, clip.sample_rate, 24_000))
        if len(data) <= max_bytes or len(beginning) == 1:
            return SoundPreview(data, len(beginning) / clip.sample_rate)
        seconds = seconds * max_bytes / len(data) * 0.95


def draw_waveform(samples: ArrayLike, *, width: int = 640, height: int = 72, scale: int = 2) -> bytes:
    """Draw a waveform on a transparent background.

    Its color has a contrast of at least 3.7 to 1 on white and on the dark gray of notebooks.

    Args:
        samples: Shape (frames,) or (frames, channels), floats in [-1, 1] or int16.
        width: Width in CSS pixels.
        height: Height in CSS pixels; full scale is the whole height.
        scale: Picture pixels for each CSS pixel; 2 stays crisp on dense screens.
    """
    columns, rows = width * scale, height * scale
    if not (1 <= columns <= _MAX_PX and 1 <= rows <= _MAX_PX):
        raise AudioError(f"a picture of {columns} x {rows} pixels is not 1 to {_MAX_PX} on each side")
    coverage = _compute_coverage(compute_peaks(samples, columns), rows, line=float(scale))
    require("PIL")
    from PIL import Image

    picture = Image.fromarray(np.rint(coverage * (_SHADES - 1)).astype(np.uint8), mode="P")
    picture.putpalette([value for _ in range(_SHADES) for value in (66, 133, 214)])
    opacity = bytes(round(255 * shade / (_SHADES - 1)) for shade in range(_SHADES))
    buffer = BytesIO()
    picture.save(buffer, format="PNG", transparency=opacity, optimize=True)
    return buffer.getvalue()


def _compute_coverage(outline: NDArray[np.float32], rows: int, line: float) -> NDArray[np.float64]:
    """Return the share of each pixel that the waveform covers, 0 to 1, shape (rows, columns).

    The coverage is exact in the vertical, which makes edges smooth. Silence is a line of ``line`` pixels.
    """
    middle = rows / 2
    half = (rows - line) / 2
    top = middle - outline[:, 1] * half - line / 2
    bottom = middle - outline[:, 0] * half + line / 2
    upper_edges = np.arange(rows, dtype=np.float64)[:, np.newaxis]
    covered = np.minimum(upper_edges + 1, bottom) - np.maximum(upper_edges, top)
    coverage: NDArray[np.float64] = np.clip(covered, 0.0, 1.0)
    return coverage


def _format_duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
