"""A service that speaks OpenAI's API, as a client, a batch and a study see it through the adapter.

The server of these tests puts the wire format, as it is documented, in front of our service; it is no vendor's.
"""

import pandas as pd
import pytest

from speechlab import batch
from speechlab.client import Client, OpenAIAdapter
from speechlab.errors import (
    AuthenticationError,
    BadRequestError,
    ConfigurationError,
    InvalidRequestError,
    PermissionDeniedError,
)
from speechlab.store import Store
from support.openai_server import KEY, openai_server
from support.studies import serving

ADAPTER = OpenAIAdapter(
    speech="tts-1",
    transcription="whisper-1",
    translation="gpt-x",
    voices={"alloy": "English", "nova": "Japanese"},
)


@pytest.fixture(scope="module")
def staged():
    with serving(names=("heart", "mei"), languages=("en", "ja")) as found:
        yield found


@pytest.fixture(scope="module")
def counterpart(staged):
    with openai_server(staged) as found:
        yield found


@pytest.fixture(scope="module")
def theirs(counterpart):
    with Client(counterpart[1], api_key=KEY, adapter=ADAPTER) as client:
        yield client


@pytest.fixture(scope="module")
def clip(theirs):
    return theirs.synthesize("Good morning.", voice="alloy")


def test_speech_of_the_adapters_own_catalogue(theirs, counterpart, clip):
    voices = theirs.voices()
    assert [voice.short_name for voice in voices] == ["tts-1: alloy", "tts-1: nova"]
    assert len(voices.find(language="ja")) == 1
    assert "whisper-1" in theirs.identity()
    assert KEY not in theirs.identity()
    assert clip.duration_s > 0.4
    assert clip.sample_rate == 24_000
    asked = next(one for one in counterpart[0].asked if one.get("input") == "Good morning.")
    assert asked == {"model": "tts-1", "input": "Good morning.", "voice": "alloy", "response_format": "wav"}
    assert theirs.synthesize("Good.", voice="alloy", format="ogg").format == "ogg"
    with theirs.stream_speech("Good.", voice="alloy", format="wav") as stream:
        assert sum(piece.duration_s for piece in stream.clips()) > 0.2


def test_recognition_with_and_without_segments(theirs, counterpart, clip):
    heard = theirs.transcribe(clip, language="en", hotwords=["morning", "Ada"])
    assert "morning" in heard.text.lower()
    assert (heard.pieces, heard.words) == (None, None)
    assert counterpart[0].asked[-1]["prompt"] == "morning, Ada"
    assert counterpart[0].asked[-1]["response_format"] == "json"
    timed = theirs.transcribe(clip, vad="segments")
    assert timed.language == "en"
    assert timed.segments["text"].str.strip().tolist() == timed.segments["text"].tolist()
    assert (timed.segments["end"] > timed.segments["start"]).all()
    assert counterpart[0].asked[-1]["timestamp_granularities[]"] == "segment word"
    assert timed.words["word"].str.lower().tolist() == ["good"]
    assert timed.words["confidence"].isna().all()
    heard = theirs.transcribe(clip)  # the language comes without segments, too
    assert counterpart[0].asked[-1]["response_format"] == "verbose_json"
    assert (heard.language, heard.pieces) == ("en", None)
    for model, language in (("streams", "en"), ("gpt-4o-transcribe", None)):
        adapter = OpenAIAdapter(transcription=model)
        with Client(counterpart[1], api_key=KEY, adapter=adapter) as other:
            found = other.transcribe(clip, language=language)
        assert found.text.lower().strip(".") == "good morning"
    assert counterpart[0].asked[-1]["response_format"] == "json"  # the only form that it has


def test_a_voice_has_instructions_and_a_speed(counterpart):
    calm = {"voice": "alloy", "instructions": "Speak calmly.", "speed": 0.9, "language": "English"}
    adapter = OpenAIAdapter(
        speech="tts-1", voices={"calm": calm, "quick": {**calm, "speed": 1.2}, "nova": "Japanese"}
    )
    with Client(counterpart[1], api_key=KEY, adapter=adapter) as client:
        client.synthesize("Good morning.", voice="calm")
        voices = client.voices()
    asked = counterpart[0].asked[-1]
    assert (asked["voice"], asked["instructions"], asked["speed"]) == ("alloy", "Speak calmly.", 0.9)
    assert [voice.language for voice in voices] == ["English", "English", "Japanese"]
    slower = OpenAIAdapter(speech="tts-1", voices={"calm": {**calm, "speed": 0.8}})
    assert slower.catalogue[0]["id"] != voices[0].id  # results of other options are kept apart
    with pytest.raises(ConfigurationError, match="give voice, language, instructions"):
        OpenAIAdapter(voices={"calm": {"pitch": 1}})


def test_translation_whole_and_in_pieces(theirs, counterpart):
    given = {"source_lang": "ja", "target_lang": "en", "keywords": ["API"], "context": "Some\r\nlines: é"}
    done = theirs.translate("おはよう。", **given)
    assert done.text
    assert (done.usage.total_tokens, done.finish_reason, done.model) == (5, "stop", "gpt-x")
    system = counterpart[0].asked[-1]["messages"][0]["content"]
    assert "exactly as they are: API." in system
    assert "Some\r\nlines: é" in system
    with theirs.stream_translation("おはよう。", source_lang="ja", target_lang="en", model="other") as stream:
        pieces = [piece.text for piece in stream]
    assert "".join(pieces) == done.text
    assert stream.translation.usage.total_tokens == 5
    assert counterpart[0].asked[-1]["model"] == "other"


def test_what_has_no_counterpart_is_refused_in_words(theirs, clip):
    with pytest.raises(InvalidRequestError, match=r"top_p=.* has no counterpart in OpenAI's API"):
        theirs.transcribe(clip, top_p=0.5)
    with pytest.raises(InvalidRequestError, match=r"temperature=0\.5 has no counterpart"):
        theirs.synthesize("a", voice="alloy", temperature=0.5)
    with pytest.raises(InvalidRequestError, match="none of the adapter's, which has alloy, nova"):
        theirs.synthesize("a", voice="00000000-0000-0000-0000-000000000000")
    with (
        pytest.raises(ConfigurationError, match="has no realtime session"),
        theirs.realtime(voice="alloy") as session,
    ):
        session.say("a")


def test_errors_are_those_of_the_client(counterpart, theirs):
    with Client(counterpart[1], api_key="sk-wrong", adapter=ADAPTER) as other:
        with pytest.raises(AuthenticationError, match="Incorrect API key") as told:
            other.synthesize("a", voice="alloy")
        assert "sk-wrong" not in str(told.value) + repr(other) + repr(other._async._settings)
        assert told.value.request_id == "req_1"
    quota = {"message": "You exceeded your quota", "code": "insufficient_quota"}
    model = {"message": "no such model", "type": "invalid_request_error", "param": "model"}
    for status, error, kind in ((429, quota, PermissionDeniedError), (400, model, BadRequestError)):
        counterpart[0].fault = (status, {"error": error})
        with pytest.raises(kind, match=error["message"]):
            theirs.translate("a", source_lang="en", target_lang="ja")
        counterpart[0].fault = None


def test_a_client_without_a_model_or_an_address_says_so(counterpart, monkeypatch):
    monkeypatch.delenv("SPEECHLAB_BASE_URL", raising=False)
    with Client(counterpart[1], api_key=KEY, adapter=OpenAIAdapter()) as bare:
        assert len(bare.voices()) == 0
        with pytest.raises(InvalidRequestError, match="no model for translation"):
            bare.translate("a", source_lang="en", target_lang="ja")
    with pytest.raises(ConfigurationError, match="no base_url"):
        Client(adapter=ADAPTER)
    with pytest.raises(ConfigurationError, match="voices is 'alloy'"):
        OpenAIAdapter(voices="alloy")


def test_results_of_one_service_answer_for_no_other(staged, theirs, clip, tmp_path):
    with Store(tmp_path) as store:
        how = {"store": store, "progress": False}
        for lab in (staged.lab, theirs):
            rows = batch.transcribe(pd.DataFrame({"audio": [clip]}), lab, language="en", **how)
            assert rows["status"].tolist() == ["ok"]
        rows = pd.DataFrame({"text": ["Good night."], "from": "en"})
        done = batch.translate(rows, theirs, source_lang="from", target_lang="ja", **how)
        assert done["status"].tolist() == ["ok"]
