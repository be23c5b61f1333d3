"""What can change a result changes the key; nothing else does."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest

from speechlab import batch
from speechlab.audio import AudioClip
from speechlab.client import Synthesize, Transcribe, Translate
from speechlab.contract import RecognitionRequest, SpeechRequest, TranslationRequest, Voice
from speechlab.errors import InvalidRequestError
from speechlab.text import Lexicon
from support.plans import CHANGES, MADE, SEGMENTS, VOICES, key_of, planning


@pytest.fixture
def lab():
    return planning()


SAME = [
    ("synthesize", {"cell": ("voice", "Voice A")}),
    ("synthesize", {"sample_rate": 24000}),
    ("synthesize", {"format": "flac"}),
    ("synthesize", {"cell": ("other", "column")}),
    ("transcribe", {"session_id": "mine"}),
    ("transcribe", {"vad": "off"}),
    ("transcribe", {"vad": 0}),
    ("transcribe", {"language": "en-US"}),
    ("transcribe", {"language": "language"}),
    ("transcribe", {"temperature": 0.0, "top_p": 0.85, "hotwords": []}),
    ("translate", {"keywords": [], "context": None, "model": None}),
]


def test_what_can_change_a_result_changes_the_key(lab):
    for operation, change in CHANGES:
        plain = key_of(lab, operation, **{name: SEGMENTS[name] for name in SEGMENTS if len(change) > 1})
        changed = key_of(lab, operation, **change)
        assert isinstance(plain, str)
        assert isinstance(changed, str), change
        assert changed != plain, change


def test_what_cannot_change_a_result_leaves_the_key(lab, tmp_path):
    for operation, change in SAME:
        assert key_of(lab, operation, **change) == key_of(lab, operation), change
    for operation in MADE:  # nor does where and how it is kept
        assert key_of(lab, operation, store=tmp_path, prefix="p_", chunk_rows=7) == key_of(lab, operation)


def test_keys_differ_by_service_and_not_by_client(lab):
    for operation in MADE:
        plain = key_of(lab, operation)
        options = {"api_key": "sl:other", "timeout": 3, "max_retries": 0, "max_concurrency": 2}
        other = planning(base_url="http://127.0.0.1:8", **options)
        assert key_of(other, operation) == plain
        assert key_of(planning("service/2"), operation) != plain


def test_no_field_of_the_contract_was_forgotten(lab):
    for operation, request_model, besides in (
        ("synthesize", SpeechRequest, {"stream"}),
        ("transcribe", RecognitionRequest, {"session_id"}),
        ("translate", TranslationRequest, {"stream"}),
    ):
        plan, row, given = MADE[operation]
        call = next(iter(plan(pd.DataFrame([row]), lab, **given).calls.values()))
        assert set(call.parameters) == set(request_model.model_fields) - besides
        tried = {name for made, change in CHANGES if made == operation for name in change}
        tried |= {change["cell"][0] for made, change in CHANGES if made == operation and "cell" in change}
        fields = {"voice" if name == "voice_id" else name for name in call.parameters}
        assert fields <= tried, "a parameter without a test that it changes the key"
        assert "repeat" in inspect.signature(plan).parameters


def test_a_recording_has_one_key_however_it_is_given(lab, tmp_path):
    clip = AudioClip(np.full(1600, 0.1, np.float32), 16000)
    data = clip.encode("wav")
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    cells = pd.Series([clip, data, path, str(path)], dtype=object)
    rows = batch.plan_transcription(pd.DataFrame({"audio": cells}), lab).rows
    assert set(rows) == {Transcribe(clip).compute_key("service/1")}


def test_rows_that_share_options_are_each_checked_for_their_own(lab):
    voice = Voice.parse(VOICES[0])
    numbers = [1, 1.0, np.int64(1), np.float32(1)]
    cells = pd.Series([*numbers, None, True, "1", 1], dtype=object)
    frame = pd.DataFrame({"text": [*["hello"] * 7, " "], "mine": cells})
    *alike, none, word, text, empty = batch.plan_synthesis(frame, lab, voice=voice, temperature="mine").rows
    asked = Synthesize("hello", voice=voice, format="flac", temperature=1)
    assert alike == [asked.compute_key("service/1")] * len(numbers)
    assert none == Synthesize("hello", voice=voice, format="flac").compute_key("service/1")
    assert [error.parameter for error in (word, text, empty)] == ["temperature", "temperature", "text"]


@pytest.mark.parametrize(
    ("texts", "what"),
    [(["hello", " "], "empty"), (["hello", "a" * 10_001], "at most"), (["hello", "\ud83d"], "surrogate")],
)
def test_a_text_is_refused_however_many_were_allowed(lab, texts, what):
    frame = pd.DataFrame({"text": pd.Series(texts, dtype=object)})
    first, second = batch.plan_translation(frame, lab, source_lang="en", target_lang="ja").rows
    assert first == Translate("hello", source_lang="en", target_lang="ja").compute_key("service/1")
    with pytest.raises(InvalidRequestError, match=what) as whole:
        Translate(texts[1], source_lang="en", target_lang="ja").compute_key("service/1")
    assert str(second) == str(whole.value)


def test_many_combinations_of_options_are_not_kept_for_ever(lab):
    count = 2_500
    frame = pd.DataFrame({"text": "hello", "context": [f"number {n}" for n in range(count)]})
    plan = batch.plan_translation(frame, lab, context="context", source_lang="en", target_lang="ja")
    assert len(set(plan.rows)) == count
    last = Translate("hello", source_lang="en", target_lang="ja", context=f"number {count - 1}")
    assert plan.rows[-1] == last.compute_key("service/1")


def test_a_respelled_text_has_the_key_of_what_is_sent(quick_lab, store):
    options = {"voice": "heart", "store": store, "progress": False}
    lexicon = Lexicon([("en", "Nguyen", "win")])
    plan = batch.plan_synthesis(["I know Nguyen."], quick_lab, respell=lexicon, **options)
    assert list(plan.calls) == list(batch.plan_synthesis(["I know win."], quick_lab, **options).calls)
