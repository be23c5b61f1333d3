"""Folders of strangers: pipes, devices, sockets, links in circles, names that are not UTF-8, very many files."""

from __future__ import annotations

import os
import socket
import time
import warnings

import numpy as np
import pytest

import speechlab as sl
from speechlab import datasets, evaluate
from speechlab.audio import AudioClip
from speechlab.errors import SpeechLabError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes, devices and sockets as files are of POSIX")
WAV = AudioClip(np.zeros(800), 8_000).encode("wav")


@pytest.fixture
def odd(tmp_path):
    """A folder with two recordings, and what is named as recordings and texts are."""
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "good.wav").write_bytes(WAV)
    (folder / "good.txt").write_text("good")
    for name in ("pipe.wav", "pipe.txt", "good2.txt"):
        os.mkfifo(folder / name)
    (folder / "good2.wav").write_bytes(WAV)
    (folder / "device.wav").symlink_to("/dev/zero")
    (folder / "device.txt").symlink_to("/dev/zero")
    (folder / "circle.wav").symlink_to(folder / "circle.wav")
    (folder / "folder.wav").mkdir()
    (folder / "up").symlink_to(folder.parent)
    (folder / "self").symlink_to(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s.wav"))
    with open(os.fsencode(folder) + b"/\xff\xfe.wav", "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(WAV)
    (folder / "\x1b[31m.wav").write_bytes(WAV)
    (folder / "a\nb.wav").write_bytes(WAV)
    return folder


def measure(clip, **_):
    return f"{clip.duration_s}"


@pytest.mark.slow
def test_what_is_no_recording_costs_its_own_row(odd, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = datasets.read(odd, language="en")
        assert sorted(table.loc[table["text"].notna(), "text"]) == ["good"]
        system = sl.system("length", transcribe=measure, version="1")
        done = sl.batch.transcribe(table, system, store=tmp_path / "store", progress=False)
        names = [os.fsencode(path).rpartition(b"/")[2] for path in done["audio"]]
        good = {name for name, status in zip(names, done["status"], strict=True) if status != "error"}
        assert good == {b"good.wav", b"good2.wav", b"\x1b[31m.wav", b"a\nb.wav", b"\xff\xfe.wav"}
        assert "<script>" not in sl.show(done).static_html()
        table = table[
            [b"\xff" not in os.fsencode(path) for path in table["audio"]]
        ]  # studies refuse the name
        study = evaluate.recognition(
            system, table.assign(text="0.1"), store=tmp_path / "store", progress=False
        )
        try:
            study.save(tmp_path / "report")
        except SpeechLabError as error:
            assert str(error).isprintable()


def test_a_manifest_is_a_file(tmp_path):
    for name in ("manifest.csv", "manifest.jsonl", "metadata.json"):
        for kind in ("pipe", "device", "circle"):
            folder = tmp_path / f"{name} {kind}"
            folder.mkdir()
            if kind == "pipe":
                os.mkfifo(folder / name)
            else:
                (folder / name).symlink_to("/dev/zero" if kind == "device" else folder / name)
            for place in (folder, folder / name):
                with pytest.raises(SpeechLabError):
                    datasets.read(place)


def test_a_folder_of_many_names_is_read_in_time(tmp_path):
    for number in range(3_000):
        os.link(tmp_path / "0.wav", tmp_path / f"{number}.wav") if number else (
            tmp_path / "0.wav"
        ).write_bytes(WAV)
    began = time.process_time()
    assert len(datasets.read(tmp_path)) == 3_000
    assert time.process_time() - began < 5
