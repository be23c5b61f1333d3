"""The sound of segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from speechlab.audio import AudioClip
from speechlab.errors import SegmentError
from speechlab.segments._frame.schema import frame

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import pandas as pd

Sound: TypeAlias = "AudioClip | str | os.PathLike[str]"


def clips(table: pd.DataFrame, audio: Sound | Mapping[str, Sound] | None = None) -> Iterator[AudioClip]:
    """Cut the segments out of their recordings.

    One recording at a time is in memory, so a table of many recordings should be sorted by file.

    Args:
        table: A segment frame.
        audio: The recording, as a clip or a file; or a mapping from the values of the column ``file`` to recordings.
            By default that column has the paths of files.

    Returns:
        An iterator: one clip for each row, in order, titled with its file and times. All channels are kept.

    Raises:
        SegmentError: The table is not a segment frame, a recording is missing, or a segment ends after its recording.
        AudioError: A recording cannot be decoded.
        OSError: A file cannot be read.

    Example:
        >>> recording = sl.AudioClip(np.zeros(16_000), 8_000)
        >>> [clip.duration_s for clip in clips(frame([(0.5, 1.0), (1.0, 2.0)]), recording)]
        [0.5, 1.0]
    """
    checked = frame(table)
    files = checked["file"].unique().tolist()
    if isinstance(audio, Mapping):
        absent = [name for name in files if name not in audio]
        if absent:
            raise SegmentError(f"there is no recording for {absent[0]!r}; add it to audio=", column="file")
        sounds: dict[str, Sound] = {name: audio[name] for name in files}
    elif audio is None:
        if "" in files:
            raise SegmentError(
                "the column 'file' is empty; give the recording: clips(table, audio)", column="file"
            )
        sounds = {name: name for name in files}
    else:
        if len(files) > 1:
            message = (
                f"one recording is given, but the table has {len(files)}; give a mapping from file to sound"
            )
            raise SegmentError(message, column="file")
        sounds = dict.fromkeys(files, audio)
    return _cut(checked, sounds)


def _cut(table: pd.DataFrame, sounds: Mapping[str, Sound]) -> Iterator[AudioClip]:
    name, clip = None, None
    rows = zip(table["file"].tolist(), table["start"].tolist(), table["end"].tolist(), strict=True)
    for row, (file, start, end) in enumerate(rows):
        if clip is None or file != name:
            sound, name = sounds[file], file
            clip = sound if isinstance(sound, AudioClip) else AudioClip.from_file(sound)
        # Half a sample of tolerance: a time rounded to the last sample is still inside.
        if end > clip.duration_s + 0.5 / clip.sample_rate + 1e-6:
            message = f"row {row} ends at {end:.10g} s, but {file!r} is only {clip.duration_s:.10g} s long"
            raise SegmentError(message, column="end", rows=(row,))
        yield clip.crop(start, end).named(f"{file or clip.title or 'recording'} {start:.2f} to {end:.2f} s")
