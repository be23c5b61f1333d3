"""A clip in a notebook: waveform, player and the facts, as plain HTML that outlives the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.audio._codec.encode import MP3_RATES_HZ
from speechlab.audio._waveform import waveform_png
from speechlab.contract import CONTENT_TYPES, AudioFormat
from speechlab.display import audio_figure, data_url

if TYPE_CHECKING:
    from speechlab.audio._clip import AudioClip

_INLINE_BYTES = 1_000_000
# MP3 as this room writes it takes about 8 kB/s at 24 kHz and 15 kB/s at 48 kHz; the first guess, then measured.
_FIRST_GUESS_S = 100.0


def clip_html(clip: AudioClip) -> str:
    """The figure that a notebook shows."""
    layout = {1: "mono", 2: "stereo"}.get(clip.channels, f"{clip.channels} channels")
    facts = [_spoken(clip.duration_s), f"{clip.sample_rate:,} Hz".replace(",", "\u202f"), layout]
    if clip.frames == 0:
        return audio_figure(None, title=clip.title, facts=[*facts, "empty"])
    preview, seconds = _preview(clip)
    facts.append("lossy preview (MP3)")
    if seconds < clip.duration_s:
        facts.append(f"plays the first {_spoken(seconds)} only")
    name = clip.title or "audio clip"
    return audio_figure(
        data_url(preview, CONTENT_TYPES[AudioFormat.MP3]),
        title=clip.title,
        facts=facts,
        image_url=data_url(waveform_png(clip.samples), "image/png"),
        image_alt=f"Waveform of {name}, {_spoken(clip.duration_s)}, {clip.rms_dbfs:.0f} dBFS",
    )


def _preview(clip: AudioClip) -> tuple[bytes, float]:
    """The clip, or as much of its beginning as fits, as MP3, and how many seconds that is."""
    sound = clip if clip.channels <= 2 else clip.to_mono()
    rate = next((rate for rate in MP3_RATES_HZ if rate >= sound.sample_rate), MP3_RATES_HZ[-1])
    seconds = min(clip.duration_s, _FIRST_GUESS_S)
    while True:
        data = sound.crop(0.0, seconds).encode(AudioFormat.MP3, rate)
        if len(data) <= _INLINE_BYTES:
            return data, seconds
        seconds = seconds * _INLINE_BYTES / len(data) * 0.95


def _spoken(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
