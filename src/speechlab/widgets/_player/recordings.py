"""The recordings of a player: in pieces and pictures for the browser, and as figures for the saved notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab.audio import (
    SoundReader,
    build_sound_preview,
    draw_still,
    draw_waveform,
    render_clip_figure,
    unify_recording,
)
from speechlab.display import Html, audio_figure, data_url
from speechlab.errors import AudioError
from speechlab.widgets._shared.sounds import resolve_recording

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Length of a piece of audio in seconds: short enough to arrive soon, and far below ten million bytes.
PIECE_S = 10.0
OVERVIEW_BINS = 1_500
FORMATS = {"flac": "", "wav": "", "mp3": "lossy (MP3)", "ogg": "lossy preview (Opus)"}
MAX_COLUMNS = 4_000
MAX_SPECTROGRAM_S = 300.0
# Extra seconds at both ends of an encoded piece, because lossy codecs fade in and out.
_LEAD_S = 0.1
_WINDOW_S = 0.02
_TOP_HZ = 8_000.0
_RANGE_DB = 65.0
_ROWS = 128
_MAX_WHOLE_S = 120.0
# Length of the preview of longer recordings.
_PREVIEW_S = 30.0
_WIDTH = 480


def open_readers(audio: Any, title: str | None) -> dict[str, SoundReader]:
    """Return the recordings by their names; ``title`` names a single one."""
    if isinstance(audio, Mapping) and unify_recording(audio) is None:
        if not audio:
            raise AudioError("the mapping of clips is empty; give at least one name with its clip")
        return {str(name): _open_reader(recording) for name, recording in audio.items()}
    reader = _open_reader(audio)
    return {title or reader.title or "": reader}


def _open_reader(audio: Any) -> SoundReader:
    recording = resolve_recording(audio)
    reader = SoundReader(recording)
    if reader.frames == 0:
        raise AudioError(f"{recording!r} is empty; there is nothing to play")
    return reader


def describe_recordings(readers: Mapping[str, SoundReader], sound_format: str) -> list[dict[str, Any]]:
    """Describe each recording for the browser; its ``gain`` leads to the level of the quietest that is not silent."""
    levels = [reader.rms_dbfs() for reader in readers.values()]
    quietest = min((level for level in levels if math.isfinite(level)), default=0.0)
    descriptions = []
    for (name, reader), level in zip(readers.items(), levels, strict=True):
        facts = [_format_length(reader), f"{reader.sample_rate} Hz"]
        facts += ["silent"] if not math.isfinite(level) else []
        facts += [f"{level:.0f} dBFS"] if len(levels) > 1 and math.isfinite(level) else []
        facts += [FORMATS[sound_format]] if FORMATS[sound_format] else []
        descriptions.append(
            {
                "name": name,
                "seconds": reader.duration_s,
                "rate": reader.sample_rate,
                "gain": 10 ** ((quietest - level) / 20) if math.isfinite(level) else 1.0,
                "facts": " · ".join(facts),
            }
        )
    return descriptions


def _format_length(reader: SoundReader) -> str:
    if reader.frames == 1:
        return "1 sample"
    seconds = reader.duration_s
    if seconds < 60:
        return f"{seconds:.2f} s"
    hours, remainder = divmod(round(seconds), 3600)
    return (
        f"{hours} h {remainder // 60:02d} min" if hours else f"{remainder // 60} min {remainder % 60:02d} s"
    )


def encode_piece(reader: SoundReader, number: int, sound_format: str) -> tuple[dict[str, float], bytes]:
    """Return a file of ten seconds, and where its played part begins in the recording and in the file, in seconds."""
    start, end = number * PIECE_S, min((number + 1) * PIECE_S, reader.duration_s)
    if not 0 <= start < end:
        raise AudioError(f"there is no piece {number}")
    lead = min(_LEAD_S, start) if FORMATS[sound_format] else 0.0
    clip = reader.read(start - lead, end + lead)
    clip = clip if clip.channels <= 2 else clip.to_mono()
    data = build_sound_preview(clip).data if sound_format == "ogg" else clip.encode(sound_format)
    return {"start": start, "lead": lead}, data


def draw_peaks(peaks: bytes) -> bytes:
    """Return the still picture of the first recording of a player, whose file may be gone by now."""
    return draw_still(np.frombuffer(peaks, np.int8)[: 2 * OVERVIEW_BINS].astype(np.float32) / 127)


def draw_spectrogram(reader: SoundReader, start_s: float, end_s: float, columns: int) -> tuple[bytes, float]:
    """Return a PNG of the upper 65 dB, dark on transparent, a Hann window of 20 ms a column; and its top in Hz."""
    from PIL import Image

    if end_s - start_s > MAX_SPECTROGRAM_S:
        raise AudioError(f"zoom in: a spectrogram shows at most {MAX_SPECTROGRAM_S / 60:.0f} minutes")
    rate = reader.sample_rate
    size = max(16, round(_WINDOW_S * rate))
    margin = size / rate
    samples = reader.read(start_s - margin, end_s + margin).to_mono().samples
    first = round(max(start_s - margin, 0) * rate)
    centers = np.round(np.linspace(start_s, end_s, columns) * rate).astype(np.int64) - first
    padded = np.pad(samples, size)
    frames = padded[(centers + size - size // 2)[:, None] + np.arange(size)]
    top = min(_TOP_HZ, rate / 2)
    power = np.abs(np.fft.rfft(frames * np.hanning(size).astype(np.float32), max(size, 512)))
    bins = max(int(top / (rate / 2) * (power.shape[1] - 1)), 1)
    levels: NDArray[np.float64] = 20 * np.log10(np.maximum(power[:, : bins + 1].T[::-1], 1e-6))
    shade = np.clip((levels - levels.max()) / _RANGE_DB + 1, 0, 1) if levels.max() > -100 else levels * 0
    image = Image.fromarray(np.rint(shade * 15).astype(np.uint8), mode="P")
    image = image.resize((image.width, _ROWS), Image.Resampling.NEAREST)
    image.putpalette([0] * 48)
    buffer = BytesIO()
    image.save(buffer, format="PNG", transparency=bytes(17 * step for step in range(16)))
    return buffer.getvalue(), top


def render_figure(name: str, reader: SoundReader, facts: str) -> Html:
    """Return the figure of a recording, with a preview of its sound."""
    try:
        if reader.duration_s <= _MAX_WHOLE_S:
            return render_clip_figure(reader.read(0.0, reader.duration_s), title=name or None)
        preview = build_sound_preview(reader.read(0.0, _PREVIEW_S))
        outline = reader.read_outline(0.0, reader.duration_s, _WIDTH).reshape(-1)
    except (AudioError, OSError) as error:
        return audio_figure(None, title=name or None, facts=[facts, f"no sound: {error}"])
    picture = draw_waveform(outline, width=_WIDTH, height=48, scale=1)
    return audio_figure(
        preview.url,
        title=name or None,
        facts=[facts, "lossy preview (Opus)", f"plays the first {preview.seconds:.0f} s only"],
        image_url=data_url(picture, "image/png"),
        image_alt=f"Waveform of {name or 'the recording'}",
    )
