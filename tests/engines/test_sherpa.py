"""Models for sherpa-onnx from a folder: tiny ones that are right, and folders that are wrong."""

import os
import shutil
import signal
import threading
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from speechlab.engines import ModelStore, RecognitionOptions, Recognizer, Synthesizer, create, status
from speechlab.errors import ConfigurationError, EngineError, ModelError
from support.model_hub import use_model_hub
from support.tiny_onnx import (
    FLOAT,
    RATE,
    model,
    value,
    write_hum_voice,
    write_piper_voice,
    write_stub,
    write_tone_recognizer,
)

EXACT = RecognitionOptions(
    vad="segments", min_segment_duration=0, segment_padding=0, initial_segment_padding_ms=0, speech_pad_ms=0
)


def tone(hertz, seconds):
    times = np.arange(round(seconds * RATE)) / RATE
    return (0.3 * np.hanning(len(times)) * np.sin(2 * np.pi * hertz * times)).astype(np.float32)


def silence(seconds):
    return np.zeros(round(seconds * RATE), dtype=np.float32)


SOUND = np.concatenate(
    [silence(1), tone(500, 0.5), silence(0.2), tone(2_000, 0.5), silence(1), tone(500, 1), silence(1)]
)


@pytest.fixture(scope="module")
def ears(tmp_path_factory):
    pytest.importorskip("sherpa_onnx")
    folder = write_tone_recognizer(tmp_path_factory.mktemp("sherpa") / "nemo-ctc-de-2026")
    with pytest.MonkeyPatch.context() as patch:
        # Tones are no speech: the detector would hear nothing.
        spans = [SimpleNamespace(start=1.0, end=2.2), SimpleNamespace(start=3.2, end=4.2)]
        patch.setattr("speechlab.engines._sherpa.recognizer.find_speech", lambda samples, gap_ms: spans)
        engine = create("sherpa", model=str(folder))
        yield engine
        engine.close()


@pytest.fixture(scope="module")
def hum(tmp_path_factory):
    pytest.importorskip("sherpa_onnx")
    engine = create("sherpa-voice", model=str(write_piper_voice(tmp_path_factory.mktemp("piper"))))
    yield engine
    engine.close()


def test_a_recognizer_knows_its_languages_and_recognizes(ears):
    assert isinstance(ears, Recognizer)
    assert (ears.model, ears.languages) == ("nemo-ctc-de-2026", ("de",))
    with pytest.raises(EngineError, match="choose one of: de"):
        ears.recognize(SOUND, RecognitionOptions(language="en"))
    heard = ears.recognize(SOUND, EXACT)  # its segments have the words of their times
    assert (heard.text, heard.language) == ("low high low", "de")
    assert [(part.start, part.end, part.text) for part in heard.segments] == [
        (1.0, 2.2, "low high"),
        (3.2, 4.2, "low"),
    ]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_crash_is_reported_and_the_next_call_works(ears):
    ears.load()
    child = next(each for each in psutil.Process().children() if "_sherpa.child" in " ".join(each.cmdline()))
    child.suspend()  # so that it crashes while it works
    crash = threading.Timer(0.1, lambda: (child.send_signal(signal.SIGSEGV), child.resume()))
    crash.start()
    with pytest.raises(EngineError, match=r"crashed \(SIGSEGV\)"):
        ears.recognize(SOUND, RecognitionOptions())
    heard = ears.recognize(SOUND, RecognitionOptions(language="de"))
    assert (heard.text, heard.segments) == ("low high low", ())


def test_a_model_that_the_library_cannot_load_says_why(tmp_path):
    pytest.importorskip("sherpa_onnx")
    folder = write_tone_recognizer(tmp_path / "ctc-de")
    bad = model(value(11, "audio_signal", FLOAT, "BCT") + value(12, "nothing", FLOAT, "B"), {
        "model_type": "EncDecCTCModelBPE", "vocab_size": "3", "subsampling_factor": "1"})  # fmt: skip
    (folder / "model.onnx").write_bytes(bad)
    with pytest.raises(
        ModelError, match=r"ctc-de cannot be loaded: sherpa-onnx .*check or replace its files"
    ):
        create("sherpa", model=str(folder)).load()


def test_languages_are_stated_named_or_given(tmp_path):
    folder = write_tone_recognizer(tmp_path / "some-model")
    with pytest.raises(ConfigurationError, match=r"give the option languages, such as languages=\['de'\]"):
        create("sherpa", model=str(folder))
    assert create("sherpa", model=str(folder), languages=["sw"]).languages == ("sw",)
    named = shutil.copytree(folder, tmp_path / "sherpa-onnx-nemo-parakeet-tdt-0.6b-v3-int8")
    assert "de" in create("sherpa", model=str(named)).languages
    needed = [
        "vocab_size",
        "lfr_window_size",
        "lfr_window_shift",
        "normalize_samples",
        "neg_mean",
        "inv_stddev",
    ]
    sense = {"model_type": "sense_voice_ctc", "lang_auto": "0", "lang_zh": "3", "lang_ko": "12"}
    metadata = sense | dict.fromkeys(needed, "1")
    folder = write_stub(tmp_path / "sense", "model.onnx", "tokens.txt", metadata=metadata)
    assert create("sherpa", model=str(folder)).languages == ("zh", "ko")


def test_a_model_of_the_hub_is_fetched_when_needed(tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    piper = write_piper_voice(tmp_path / "piper")
    voice_files = (piper, piper.with_name(f"{piper.name}.json"))
    tones = {path.name: path.read_bytes() for path in write_tone_recognizer(tmp_path / "tones").iterdir()}
    store = ModelStore(tmp_path / "store")
    with use_model_hub(monkeypatch, tmp_path / "hf") as hub:
        files = {f"de/low/{path.name}": path.read_bytes() for path in voice_files}
        hub.add("rhasspy/voices", {**files, "de/high/other.onnx": b"x", "README.md": b"x"})
        hub.add("o/nemo-ctc-de", tones | {"a/b.wav": b"x"})
        voice = create("sherpa-voice", model=f"rhasspy/voices:de/low/{piper.name}", store=store)
        ears = create("sherpa", model="o/nemo-ctc-de", store=store)
        assert hub.fetched == []
        assert ([each.name for each in voice.voices], ears.languages) == (["anna", "emil"], ("de",))
        assert set(hub.fetched) == {piper.name, f"{piper.name}.json", "model.onnx", "tokens.txt"}
        wrong = create("sherpa-voice", model="rhasspy/voices", store=store)
        with pytest.raises(
            ModelError, match=r"name the file of a voice after a colon.*nothing was downloaded"
        ):
            wrong.find_model()
    assert (voice.model, ears.model[:13]) == (piper.stem, "o/nemo-ctc-de")
    again = create("sherpa", model="o/nemo-ctc-de", store=store, allow_download=False)
    assert again.languages == ("de",)


def test_a_voice_of_piper_speaks_with_its_names(hum):
    assert isinstance(hum, Synthesizer)
    assert (hum.model, hum.sample_rate) == ("de_DE-hum-low", RATE)
    assert [(voice.name, voice.languages) for voice in hum.voices] == [("anna", ("de",)), ("emil", ("de",))]
    anna, emil = (np.concatenate(list(hum.synthesize("Grüße.", name))) for name in ("anna", "emil"))
    # ^ and $, and six letters, each with a pad: 15 numbers, of which the first is soft.
    assert [len(anna), len(emil)] == pytest.approx([1.5 * RATE] * 2, abs=0.25 * RATE)
    assert np.abs(emil).max() == pytest.approx(2 * np.abs(anna).max(), rel=0.01)
    with pytest.raises(EngineError, match="it has: anna, emil"):
        list(hum.synthesize("Hallo.", "otto"))


def test_a_voice_that_reads_letters_speaks_from_its_file(tmp_path, monkeypatch):
    pytest.importorskip("sherpa_onnx")
    folder, path = write_hum_voice(tmp_path / "hum"), tmp_path / "engines.toml"
    path.write_text(f'[engines.hum]\nengine = "sherpa-voice"\nmodel = "{folder.as_posix()}"\n')
    monkeypatch.setenv("SPEECHLAB_ENGINES", str(path))
    assert (status("hum").ready, status("hum").entry.languages) == (True, ("de",))
    engine = create("hum")
    voices = [(voice.name, voice.languages) for voice in engine.voices]
    assert voices == [("speaker-0", ("de",)), ("speaker-1", ("de",))]
    first, second = engine.synthesize("Guten Morgen, liebe Leute. Die Sonne scheint.", "speaker-1")
    assert min(len(first), len(second)) > RATE
    engine.close()


def test_a_voice_is_found_by_its_file(tmp_path):
    path = write_piper_voice(tmp_path / "piper")
    shutil.copy(path, path.with_name("other.onnx"))
    assert create("sherpa-voice", model=str(path)).voices[0].name == "anna"
