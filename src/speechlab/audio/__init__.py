"""Audio clips as values: reading, writing, streaming and measuring.

The room is not a player, an editor or a signal processing library, and does not depend on services or models. The
header of a file decides its format, limits are checked before memory is allocated, and heavy libraries load on use.
Used by the engines and the embedded service, the client, the store, batches, studies and widgets.
"""

from __future__ import annotations

from speechlab._door import set_module_to_room as _name_after
from speechlab.audio._clip import AudioClip
from speechlab.audio._codec.containers import detect_format
from speechlab.audio._codec.decode import DecodeLimits
from speechlab.audio._codec.encode import STREAMABLE_FORMATS, build_stream_encoder, can_stream, encode_blocks
from speechlab.audio._codec.riff import check_wav, is_placeholder_size, is_wav, list_wav_chunks, set_wav_sizes
from speechlab.audio._figure import build_sound_preview, draw_still, draw_waveform, render_clip_figure
from speechlab.audio._measure import (
    compute_peaks,
    find_loud_windows,
    leading_silence_s,
    measure_sound_span_s,
    rms_dbfs,
)
from speechlab.audio._pieces import cut_at_silences, measure_length_s
from speechlab.audio._reader import FileSegment, SoundReader
from speechlab.audio._recordings import (
    RECORDINGS_ALLOWED,
    concatenate,
    decode,
    encode,
    require_bytes,
    to_clip,
    unify_recording,
)
from speechlab.audio._samples import StreamResampler, resample
from speechlab.audio._spans import compute_merged_span_indices, compute_missing_pre_roll, widen_spans

__all__ = [
    "AudioClip",
    "FileSegment",
    "concatenate",
    "decode",
    "encode",
    "leading_silence_s",
    "resample",
    "rms_dbfs",
]

_name_after(__name__, globals())
