"""An embedded service with engines of its own, beside the usual one; a replay finds each by what it is."""

import json
import pickle
from contextlib import ExitStack
from pathlib import Path

import pytest

from speechlab.client import Client, connect, get_service
from speechlab.engines import ModelStore, create, status
from speechlab.errors import ConfigurationError, ReplayMiss, ServiceStartError
from support.model_hub import use_model_hub

QUICK = {"hibari": {"enabled": False}}


@pytest.mark.engines
def test_two_services_live_and_in_replay(tmp_path, monkeypatch):
    monkeypatch.setenv("SPEECHLAB_IDLE_EXIT_S", "1")
    kept = {"store": tmp_path / "store", "mode": "auto"}
    with ExitStack() as stack:
        usual = stack.enter_context(connect(**kept))
        monkeypatch.setenv("SPEECHLAB_BASE_URL", "https://speech.example.org")  # is of the usual one
        own = stack.enter_context(connect(engines=QUICK, **kept))
        same = stack.enter_context(connect(engines={"hibari": {"enabled": False}}, **kept))
        assert own.base_url == same.base_url != usual.base_url
        assert usual.voices().one("mei").id == own.voices().one("mei").id
        names = [{voice.short_name for voice in one.voices()} for one in (usual, own)]
        assert names[0] - names[1] == {"hibari: heart"}
        assert usual.identity() != own.identity()
        assert usual.synthesize("One.", voice="heart").duration_s > 0
        with pickle.loads(pickle.dumps(own)) as traveled:
            assert traveled.base_url == own.base_url
    monkeypatch.delenv("SPEECHLAB_BASE_URL")
    for options, told in (({}, names[0]), ({"engines": QUICK}, names[1])):
        with connect(store=tmp_path / "store", mode="replay", **options) as replaying:
            assert {voice.short_name for voice in replaying.voices()} == told
    with (
        connect(store=tmp_path / "store", mode="replay", engines={"kokoro": {"enabled": False}}) as unknown,
        pytest.raises(ReplayMiss, match="engines"),
    ):
        unknown.voices()


SMALL = "Systran/faster-whisper-small"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    pytest.importorskip("huggingface_hub")
    with use_model_hub(monkeypatch, tmp_path / "hf") as hub:
        monkeypatch.setenv("SPEECHLAB_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("SPEECHLAB_IDLE_EXIT_S", "1")
        yield hub


@pytest.mark.slow
@pytest.mark.engines
def test_a_model_that_cannot_be_had_is_said_by_connect(hub):
    hub.add(SMALL, {"model.safetensors": b"x"}, gated=False)
    sentence = (
        f"the engine 'whisper' cannot be used: the model '{SMALL}' cannot be used: it is not a CTranslate2"
    )
    with pytest.raises(ServiceStartError, match=f"could not be started: {sentence}") as failure:
        connect(engines={"whisper": {"model": "small"}})
    assert "The end of its log" not in str(failure.value)
    assert hub.fetched == []


@pytest.fixture
def base():
    """The folder of Whisper base, which stands in for larger models."""
    state = status("whisper")
    if not state.ready:
        pytest.skip(state.remedy)
    engine = create("whisper")
    engine.find_model()
    return ModelStore().root / engine.model


@pytest.mark.slow
@pytest.mark.engines
def test_a_usual_size_is_fetched_by_connect_and_recognizes(base, hub):
    hub.add(SMALL, {path.name: path for path in base.iterdir() if "verified" not in path.name})
    with connect(engines={"whisper": {"model": "small"}, "gemma": {"enabled": False}}) as lab:
        transcript = lab.transcribe(lab.synthesize("Good morning.", voice="heart"))
    assert "good morning" in transcript.text.lower()
    assert sorted(hub.fetched) == ["config.json", "model.bin", "tokenizer.json", "vocabulary.txt"]


def test_engines_are_options_of_the_embedded_service_alone(monkeypatch):
    monkeypatch.delenv("SPEECHLAB_BASE_URL", raising=False)
    nobody = {"base_url": "http://127.0.0.1:9"}
    for options, told in (
        ({"engines": {"whisper": 5}}, "give options by engine"),
        ({"engines": {"whisper": {"model": object()}}}, "give options by engine"),
        ({"engines": QUICK, **nobody}, "leave one of them out"),
        ({"engines": QUICK, "api_key": "sl:a-key-of-another"}, "leave one of them out"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            connect(**options)
    told = pytest.raises(ConfigurationError, match="make a new client")
    with Client(**nobody, api_key="sl:nobody-is-there") as lab, told:
        lab.with_options(engines=QUICK)


def test_a_folder_is_found_from_where_the_user_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for named, found in (
        *((name, str(tmp_path / "mine")) for name in ("./mine", Path("mine"))),
        ("owner/name@main", "owner/name@main"),
    ):
        engines = {"whisper": {"model": named, "beam_size": 2}}
        with Client(store=tmp_path / "store", mode="replay", engines=engines) as lab:
            _, _, options = get_service(lab).home.partition("engines ")
        assert json.loads(options) == {"whisper": {"model": found, "beam_size": 2}}
