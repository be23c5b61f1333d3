"""What changes a key, which parameters may be columns, mistyped ones, and the types of columns of results."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from speechlab import batch, metrics, segments
from speechlab.audio import AudioClip
from speechlab.batch import Column, Value
from speechlab.client import Transcribe
from speechlab.contract import RecognitionRequest, SpeechRequest, TranslationRequest
from speechlab.errors import InvalidRequestError
from speechlab.text import Lexicon
from support.batches import EN_JA, quiet
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


def test_a_respelled_text_has_the_key_of_what_is_sent(quick_lab, store):
    options = {"voice": "heart", "store": store, "progress": False}
    lexicon = Lexicon([("en", "Nguyen", "win")])
    plan = batch.plan_synthesis(["I know Nguyen."], quick_lab, respell=lexicon, **options)
    assert list(plan.calls) == list(batch.plan_synthesis(["I know win."], quick_lab, **options).calls)


@pytest.fixture
def plans():
    return planning()


def rows(plans, operation, frame, **options):
    plan, row, given = MADE[operation]
    whole = pd.DataFrame([{**row, **dict.fromkeys(frame)}] * len(next(iter(frame.values()))))
    for name, values in frame.items():
        whole[name] = pd.Series(values, dtype=object)
    return plan(whole, plans, **{**given, **options}).rows


BY_ROW = [
    (operation, change)
    for operation, change in CHANGES
    if "cell" not in change and "repeat" not in change and change != {"language": None}
]


@pytest.mark.slow
def test_each_parameter_may_be_a_column_with_empty_cells(plans):
    for operation, change in BY_ROW:
        name, value = next(iter(change.items()))
        others = {key: item for key, item in change.items() if key != name}
        by_value = key_of(plans, operation, **change)
        assert rows(plans, operation, {"mine": [value]}, **{name: Column("mine")}, **others) == [by_value]
        left_out = key_of(plans, operation, **{"language": None} if name == "language" else {}, **others)
        for empty in (None, float("nan"), pd.NA):
            first, second = rows(plans, operation, {"mine": [value, empty]}, **{name: "mine"}, **others)
            assert first == by_value
            if name in EN_JA:
                assert isinstance(second, InvalidRequestError)
                assert "'mine' is empty in this row" in str(second)
            else:
                assert second == left_out


def test_whole_numbers_beside_an_empty_cell_stay_whole(plans):
    column = pd.Series([16000, None])
    assert column.dtype == "float64"
    first, second = rows(plans, "synthesize", {"hz": column.tolist()}, sample_rate="hz")
    assert first == key_of(plans, "synthesize", sample_rate=16000)
    assert second == key_of(plans, "synthesize")


def test_a_language_that_is_a_column_too_is_the_language(plans):
    corpus = {"en": ["Hello."], "ja": ["こんにちは。"], "to": ["zh"]}
    plain = key_of(plans, "translate", cell=("text", "こんにちは。"), source_lang="ja", target_lang="en")
    assert rows(plans, "translate", corpus, text="ja", source_lang="ja", target_lang="en") == [plain]
    by_row = key_of(plans, "translate", cell=("text", "こんにちは。"), source_lang="ja", target_lang="zh")
    assert rows(plans, "translate", corpus, text="ja", source_lang="ja", target_lang="to") == [by_row]
    (error,) = rows(plans, "translate", corpus, text="ja", source_lang=Column("ja"), target_lang="en")
    assert "column 'ja' holds 'こんにちは。' in this row, which is no language code" in str(error)


def test_a_format_and_a_mode_are_known_by_their_names(plans):
    plain = key_of(plans, "synthesize", format="wav")
    assert rows(plans, "synthesize", {"wav": ["here.wav"]}, format="wav") == [plain]
    assert rows(plans, "transcribe", {"on": ["off"]}, vad="on") == [key_of(plans, "transcribe", vad="on")]
    assert rows(plans, "transcribe", {"on": ["off"]}, vad=Column("on")) == [key_of(plans, "transcribe")]


def test_a_voice_may_be_the_same_for_all_rows(plans):
    plain = key_of(plans, "synthesize")
    frame = pd.DataFrame({"text": ["hello"]})
    for voice in (VOICES[0]["id"], "Voice A", plans.voices()[0]):
        plan = batch.plan_synthesis(frame, plans, voice=voice)
        assert plan.rows == [plain]
    with pytest.raises(
        InvalidRequestError, match=r"no column 'Nobody'; it has 'text'; and voice 'Nobody' fits"
    ):
        batch.plan_synthesis(frame, plans, voice="Nobody")


def test_wrong_cells_are_errors_of_their_rows(plans):
    found = rows(plans, "transcribe", {"mine": ["a", 5, ["x"], True]}, temperature="mine")
    assert all(isinstance(one, InvalidRequestError) for one in found[:1] + found[2:])
    assert isinstance(found[1], InvalidRequestError)  # above 2
    found = rows(plans, "synthesize", {"mine": ["wav", "pcm", 5, "nothing"]}, format="mine")
    assert [isinstance(one, str) for one in found] == [True, False, False, False]


def round_trips(table, plan, store, tmp_path):
    """A table, what the store knows of it, and what came back from files have the same types."""
    run = batch.load(table, store)
    assert not [name for name in table.columns if table[name].dtype == object]
    assert isinstance(table["error"].dtype, pd.StringDtype)
    kinds = table[["status", "http_status", "attempts", "latency_s", "usage_audio_s"]].dtypes.astype(str)
    assert kinds.tolist() == ["category", "Int64", "Int64", "float64", "float64"]
    exported = pd.read_parquet(run.export(tmp_path / "exported.parquet"))
    for other in (batch.assemble(plan), run.table(), exported):
        assert other.dtypes.drop("status").equals(table.dtypes.drop("status"))
    table.to_parquet(tmp_path / "plain.parquet")
    pd.testing.assert_frame_equal(
        batch.load(pd.read_parquet(tmp_path / "plain.parquet"), store).table(), table
    )


@pytest.mark.engines
def test_speech_and_transcripts_keep_their_types(quick_lab, store, tmp_path):
    lab = quick_lab
    frame = pd.DataFrame({"text": ["One two three.", None]}, index=pd.Index(["a", "b"], dtype="str"))
    given = {"voice": "q: tone", "store": store}
    said = batch.synthesize(frame, lab, progress=False, **given)
    round_trips(said, batch.plan_synthesis(frame, lab, **given), store, tmp_path)
    spoken = said[["text", "audio"]]
    given = {"language": "en", "vad": "segments", "store": store}
    heard = batch.transcribe(spoken, lab, progress=False, **given)
    round_trips(heard, batch.plan_transcription(spoken, lab, **given), store, tmp_path)
    for part in (heard, heard.iloc[1:], heard.iloc[:0]):
        pieces = batch.to_segments(part, store)
        assert isinstance(pieces["text"].dtype, pd.StringDtype)
        assert pieces["row"].dtype == frame.index.dtype
        assert list(pieces) == ["file", "start", "end", "text", "position", "row", "segment"]
        assert segments.equal(pieces, segments.frame(pieces))
        assert set(pieces["file"]) <= set(spoken["audio"].dropna())
    assert len(batch.to_segments(heard, store)) > 0
    with pytest.raises(InvalidRequestError, match="give the store that transcribe had"):
        batch.to_segments(heard, tmp_path / "another")
    with pytest.raises(
        InvalidRequestError, match="the table is one of synthesize; give what transcribe returned"
    ):
        batch.to_segments(said, store)
    plain = batch.transcribe(spoken, lab, language="en", store=store, progress=False)
    with pytest.warns(UserWarning, match="were not asked for; give transcribe vad='segments'") as told:
        assert not len(batch.to_segments(plain, store))
    assert told[0].filename == __file__


def test_words_of_a_batch_fit_word_times_and_calibration(tmp_path):
    """A system that gives times and confidences of words; one of its answers has impossible ones."""
    times = {"good": (0.1, 0.4, 0.9), "mourning": (0.5, 1.0, 0.4)}
    answers = iter(
        [
            {"text": "good mourning", "words": [
                {"word": word, "start": start, "end": end, "confidence": sure}
                for word, (start, end, sure) in times.items()
            ]},
            {"text": "no words"},
            {"text": "odd", "words": [{"word": "odd", "start": 2.0, "end": 1.0}]},
        ]
    )  # fmt: skip
    clips = [sl.AudioClip(np.full(16_000, level, np.float32), 16_000) for level in (0.1, 0.2, 0.3)]
    places = [str(clip.save(tmp_path / f"{number}.wav")) for number, clip in enumerate(clips)]
    frame = pd.DataFrame({"audio": places}, index=["a", "b", "c"])
    with sl.system("words", transcribe=lambda clip: next(answers), version="1") as lab:
        heard = batch.transcribe(
            frame, lab, store=tmp_path / "store", progress=False, concurrency=1, language="en"
        )
    with pytest.warns(
        UserWarning, match="no words of 1 rows: .*2.wav: the service sent times that cannot be"
    ):
        words = batch.to_segments(heard, tmp_path / "store", words=True)
    assert list(words) == ["file", "start", "end", "word", "confidence", "position", "row", "segment"]
    assert words[["file", "word", "row"]].to_numpy().tolist() == [[places[0], word, "a"] for word in times]
    said = words.assign(word=["good", "morning"])
    found = metrics.word_times(said, words, language="en")
    assert metrics.calibration(found.words).ece == pytest.approx(0.25)


def test_a_language_that_the_service_lacks_is_not_sent(translator, reverser, store):
    translator.translates = "ja, en"
    frame = pd.DataFrame({"text": ["one", "two", "three"], "to": ["ja", "de", "ja-JP"]})
    given = {"source_lang": "en", "store": store, "progress": False}
    with pytest.raises(
        InvalidRequestError, match="target_lang is 'de', and this service translates between ja, en"
    ):
        batch.translate(frame, reverser, target_lang="de", **given)
    assert not translator.calls
    with pytest.warns(UserWarning, match="1 of 3 rows failed"):
        table = batch.translate(frame, reverser, target_lang="to", **given)
    assert table["status"].tolist() == ["ok", "error", "ok"]
    assert set(translator.calls) == {"one", "three"}


FRAME = pd.DataFrame({"text": ["a", "b"], "hint": ["x", "y"], "Key Words": ["p", "q"], "tgt_lang": "ja"})


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"context": "hints"}, "hint"),
        ({"keywords": "key_word"}, "Key Words"),
        ({"model": "hnt"}, "hint"),
        ({"target_lang": "tgt"}, "tgt_lang"),
    ],
    ids=str,
)
def test_a_name_like_that_of_a_column_is_asked_about(reverser, translator, store, given, column):
    ((parameter, value),) = given.items()
    with pytest.raises(InvalidRequestError) as caught:
        batch.translate(FRAME, reverser, **{**quiet(store), **given})
    text = str(caught.value)
    assert f"{parameter}=sl.batch.Column({column!r})" in text
    assert f"{parameter}=sl.batch.Value({value!r})" in text
    assert not translator.calls
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = batch.plan_translation(FRAME, reverser, store=store, **{**EN_JA, parameter: Value(value)})
        assert plan.step.settings[parameter] in (value, [value])
        plan = batch.plan_translation(FRAME, reverser, store=store, **{**EN_JA, parameter: Column(column)})
        assert plan.step.settings["columns"][parameter] == column


def test_a_value_that_looks_like_a_column_is_told(reverser, store):
    with pytest.warns(UserWarning, match=r"context is the text 'notes_of_mine' for every row") as told:
        batch.translate(FRAME, reverser, context="notes_of_mine", **quiet(store))
    assert told[0].filename == __file__
