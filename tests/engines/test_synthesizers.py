"""Each voice is understood by the recognizer, comes in pieces, and says the same thing twice the same way."""

import time
import warnings

import numpy as np
import pytest

from speechlab.engines import MODEL_SPECS, ModelStore, RecognitionOptions, Synthesizer, create
from speechlab.errors import EngineError, InvalidRequestError, ModelError

pytestmark = pytest.mark.engines

JA = "今日は電車で会社に行きます。"
SHORT_JA = "はい。行きます。"

VOICES = {
    "ja": [
        ("expressive", "q_tebukuro", "電車が来ました。"),
        ("kokoro", "jf_alpha", "友達と話しました。"),
        ("openjtalk", "mei", JA),
    ],
    "en": [
        ("kokoro", "jm_kumo", "My sister bought a bicycle."),
        ("hibari", "heart", "The key is under the old mat."),
    ],
}
BOUNDS = {"ja": 0.25, "en": 0.1}


@pytest.mark.parametrize("language", VOICES)
def test_the_recognizer_understands_the_voices(language, request, whisper, say, error_rate):
    """Each voice has a sentence of its own, and all of a language are recognized in one window."""
    sounds = []
    for name, voice, text in VOICES[language]:
        engine = request.getfixturevalue(name)
        assert language in next(known.languages for known in engine.voices if known.name == voice)
        sounds += [say(engine, text, voice), np.zeros(12_800, dtype=np.float32)]
    rules = RecognitionOptions(vad="segments", min_silence_gap=600, min_segment_duration=0.5)
    heard = whisper.recognize(np.concatenate(sounds), rules)
    assert heard.language == language
    assert 0.3 < heard.confidence <= 1
    assert len(heard.segments) == len(VOICES[language]), heard.text
    for (_, voice, text), segment in zip(VOICES[language], heard.segments, strict=True):
        assert error_rate(text, segment.text) <= BOUNDS[language], (voice, segment.text)


@pytest.mark.parametrize(
    ("name", "voice", "text"),
    [
        ("kokoro", "jf_alpha", SHORT_JA),
        ("hibari", "heart", "Good morning. The train is late."),
        ("openjtalk", "mei", SHORT_JA),
    ],
)
def test_pieces_are_sound_and_repeat_exactly(name, voice, text, request):
    engine = request.getfixturevalue(name)
    assert isinstance(engine, Synthesizer)
    once = np.concatenate(list(engine.synthesize(text, voice)))  # by now all is loaded, too
    started = time.process_time()  # which stands still while other tests have the cores
    pieces, times = [], []
    for piece in engine.synthesize(text, voice):
        pieces.append(piece)
        times.append(time.process_time() - started)
    assert len(pieces) > 1
    assert len(pieces[0]) < len(pieces[1]) or name != "kokoro"
    assert times[0] < 0.8 * times[-1]
    for piece in pieces:
        assert piece.dtype == np.float32
        assert piece.ndim == 1
        assert 0.01 < np.abs(piece).max() <= 1
    np.testing.assert_array_equal(np.concatenate(pieces), once)


def test_temperature_varies_the_reading_unless_seeded(expressive, kokoro):
    def speak(engine, voice, **options):
        return np.concatenate(list(engine.synthesize("はい。", voice, **options)))

    plain = speak(kokoro, "jf_tebukuro")
    np.testing.assert_array_equal(speak(expressive, "q_tebukuro", temperature=0.0), plain)
    seeded = create("q", seed=7)
    one, two = (speak(seeded, "q_tebukuro") for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = speak(expressive, "q_tebukuro", temperature=1.0)
    assert not any(np.array_equal(other, sound) for sound in (one, plain))


@pytest.mark.parametrize("name", ["kokoro", "expressive", "hibari", "openjtalk"])
def test_nothing_to_say_is_silence_an_unknown_voice_an_error(name, request):
    engine = request.getfixturevalue(name)
    for text in ("…", "😀", "!?", "\n"):
        (piece,) = engine.synthesize(text, engine.voices[0].name)
        assert 0.1 <= len(piece) / engine.sample_rate <= 1, text
        assert not piece.any(), text
    with pytest.raises(EngineError, match=rf"has no voice 'nobody'; it has: {engine.voices[0].name}"):
        engine.synthesize("a", "nobody")


def test_texts_on_which_a_voice_might_fail(openjtalk, hibari):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        pieces = list(openjtalk.synthesize("a" * 150, "mei"))  # on which its filter diverges
    assert all(np.isfinite(piece).all() and np.abs(piece).max() <= 1 for piece in pieces)
    with pytest.raises(InvalidRequestError, match="reads English only"):
        hibari.synthesize("こんにちは", "heart")
    for engine, voice in ((hibari, "heart"), (openjtalk, "mei")):  # huge numbers are read digit by digit
        sound = np.concatenate(list(engine.synthesize("9876543210" * 3, voice)))
        assert len(sound) / engine.sample_rate > 4


def test_phonemes_beyond_the_limit_of_the_model_are_all_spoken(kokoro, monkeypatch):
    spoken = []

    def speak(model, tokens, *_, **__):
        spoken.append(len(tokens))
        return np.full(2400, 0.5, dtype=np.float32)

    monkeypatch.setattr(type(kokoro._model), "synthesize_tokens", speak)
    list(kokoro.synthesize("志" * 85, "jf_alpha"))
    parts = spoken.copy()
    spoken.clear()
    monkeypatch.setattr("speechlab.engines._speech.kokoro.TOKEN_LIMIT", 10_000)
    list(kokoro.synthesize("志" * 85, "jf_alpha"))
    assert max(parts) <= 500 < max(spoken) <= sum(spoken) == sum(parts)


def test_a_stream_can_be_stopped_and_the_engine_reopened(kokoro):
    stream = kokoro.synthesize("はい。" * 40, "jf_alpha")
    next(stream)
    stream.close()
    kokoro.close()
    assert next(kokoro.synthesize("はい。", "jf_alpha")).size


def test_the_weights_of_hibari_are_those_that_are_pinned(monkeypatch, tmp_path):
    engine = create("hibari")
    engine.find_model()
    (tmp_path / "hibari.onnx").write_bytes(b"another model")
    monkeypatch.setattr("speechlab.engines._weights.store._find_part", lambda part: tmp_path / "hibari.onnx")
    with pytest.raises(ModelError, match=r"hibari\.onnx"):
        engine.find_model()


def test_a_model_in_a_folder_speaks_as_the_pinned_one(kokoro, tmp_path):
    """The pinned files, in the layout of those that others publish."""
    paths = ModelStore().ensure_files(MODEL_SPECS["kokoro-82m-int8"])
    (tmp_path / "kokoro-v1.0.int8.onnx").symlink_to(paths["kokoro-v1.0.int8.onnx"])
    (tmp_path / "voices-v1.0.bin").symlink_to(paths["voices_ja.npz"])
    engine = create("kokoro", model=str(tmp_path), precision="int8")
    assert engine.voices == kokoro.voices[:5]
    one, other = (np.concatenate(list(each.synthesize("はい。", "jf_alpha"))) for each in (kokoro, engine))
    assert np.array_equal(one, other)
