"""What counts as a recording: the same forms wherever one is taken."""

import io
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab.audio import cut_at_silences, measure_length_s, to_clip, unify_recording
from speechlab.errors import AudioError

RATE = 8_000
CLIP = sl.AudioClip((0.4 * np.sin(np.arange(RATE))).astype(np.float32), RATE)
WAV = CLIP.encode("wav")


class Tensor:
    """What a tensor has of which recordings are made: its channels are first, and NumPy cannot read it at once."""

    def __init__(self, values):
        self.values, self.ndim = values, values.ndim

    def detach(self):
        return self

    def cpu(self):
        return self

    def is_floating_point(self):
        return True

    def float(self):
        return self.values


def at_end(data):
    """A file in memory that something has just been written to."""
    file = io.BytesIO()
    file.write(data)
    return file


FORMS = {
    "clip": lambda _: CLIP,
    "bytes": lambda _: WAV,
    "memoryview": lambda _: memoryview(WAV),
    "file": lambda _: io.BytesIO(WAV),
    "file at its end": lambda _: at_end(WAV),
    "path": lambda path: path,
    "text": str,
    "samples and rate": lambda _: (CLIP.samples, RATE),
    "rate and samples": lambda _: (np.int64(RATE), CLIP.samples),
    "tensor": lambda _: (Tensor(CLIP.samples[None]), RATE),
    "bytes of Hugging Face": lambda _: {"bytes": WAV, "path": "a.wav"},
    "path of Hugging Face": lambda path: {"bytes": None, "path": str(path)},
    "array of Hugging Face": lambda _: {"array": CLIP.samples, "sampling_rate": RATE, "path": None},
    "decoded samples": lambda _: SimpleNamespace(data=Tensor(CLIP.samples[None]), sample_rate=RATE),
    "decoder": lambda _: SimpleNamespace(
        get_all_samples=lambda: SimpleNamespace(data=CLIP.samples, sample_rate=RATE)
    ),
}


@pytest.fixture
def recordings(tmp_path):
    return [make(CLIP.save(tmp_path / "a.wav")) for make in FORMS.values()]


def test_each_form_is_taken_alone(recordings):
    heard = []
    lab = sl.system("mine", transcribe=lambda clip: heard.append(clip.duration_s) or "yes", version="1")
    for recording in recordings:
        assert np.abs(to_clip(recording).samples - CLIP.samples).max() < 1e-4
        assert measure_length_s(recording) == 1.0
        assert [piece.start_s for piece in cut_at_silences(recording, 10)] == [0.0]
        assert sl.metrics.loudness(recording) == pytest.approx(sl.metrics.loudness(CLIP), abs=1e-3)
        lab.transcribe(recording)
    assert heard == [1.0] * len(FORMS)


@pytest.mark.slow
def test_each_form_is_taken_in_a_table(recordings, tmp_path):
    heard, count, store = [], len(FORMS), str(tmp_path / "store")
    lab = sl.system("mine", transcribe=lambda clip: heard.append(clip.duration_s) or "yes", version="1")
    table = pd.DataFrame({"audio": recordings, "text": "yes", "language": "en"})
    done = sl.batch.transcribe(table, lab, store=store, progress=False)
    assert done["status"].tolist() == ["ok"] * count
    assert set(heard) == {1.0}
    assert sl.metrics.speech_measures(table)["duration_s"].tolist() == [1.0] * count
    shown = sl.show(table)
    assert [shown._rows.sounds.read_clip(row).duration_s for row in range(count)] == [1.0] * count
    report = sl.evaluate.recognition(lab, table, store=store, progress=False)
    assert report.table["duration_s"].tolist() == [1.0] * count
    report.save(tmp_path / "report")
    assert (
        len(list((tmp_path / "report" / "audio").iterdir())) == count - 1
    )  # a path is one file, however given


def test_channels_of_tensors_and_data_sets_come_first():
    stereo = np.stack([CLIP.samples, -CLIP.samples])
    for form in ({"array": stereo, "sampling_rate": RATE}, (Tensor(stereo), RATE)):
        assert unify_recording(form).channels == 2
    assert unify_recording((Tensor(stereo.T), RATE)).channels == 2


def test_a_cell_without_a_recording_is_empty(tmp_path):
    lab = sl.system("mine", transcribe=lambda clip: "yes")
    done = sl.batch.transcribe(
        pd.DataFrame({"audio": [{"bytes": None, "path": None}]}), lab, store=str(tmp_path), progress=False
    )
    assert done["error"].str.contains("is empty in this row").all()


def test_a_clip_is_an_array_with_a_length_and_parts_in_seconds():
    clip = sl.AudioClip(np.arange(RATE) / RATE, RATE)
    assert np.asarray(clip) is clip.samples
    assert len(clip) == RATE
    assert clip[0.25:0.5] == clip.crop(0.25, 0.5)
    assert clip[-0.25:] == clip.crop(0.75)
    assert clip[:0.5] + clip[0.5:] == clip
    with pytest.raises(AudioError, match=r"give two times in seconds, as in clip\[1\.0:2\.5\]"):
        clip[3]


def test_a_clip_stays_one_value_in_tables():
    clips = [CLIP, CLIP]
    table = pd.DataFrame({"audio": clips}).assign(other=pd.Series(clips), same=CLIP)
    assert table.map(lambda cell: cell is CLIP).all(axis=None)
    table.loc[table.index > 0, "audio"] = sl.AudioClip(np.ones(5), RATE)
    assert table["audio"].map(len).tolist() == [RATE, 5]
