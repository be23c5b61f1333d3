"""What a miss says of the nearest call that is kept: the truth, also where the two look the same."""

from __future__ import annotations

import pytest

from speechlab.client import Client, Translate
from speechlab.client._stored_calls import build_replay_miss
from speechlab.contract import compute_request_key
from speechlab.errors import ReplayMiss
from speechlab.store import Store

SERVICE = "fake/1"
ASKED = {"text": "a", "voice": "v", "temperature": 1.0, "keywords": ["k"]}
LONG = "It is a long way from here to the end of this sentence, and longer to that of the next: "


@pytest.fixture
def missed(tmp_path):
    """The error for a call where a store keeps another, and what it says of the difference."""

    def ask(asked, kept, *, of=SERVICE, repeat=0):
        with Store(tmp_path / "kept") as store:
            key = compute_request_key("synthesize", kept, service=of or SERVICE, repeat=repeat)
            store.put(key, operation="synthesize", request=kept, response={})
            if of is not None:
                store.keep_facts(key, {"service": of})
            error = build_replay_miss(store, "synthesize", asked, SERVICE)
        return error, str(error).partition("kept: ")[2].partition(";")[0]

    return ask


@pytest.mark.parametrize(
    ("here", "there", "told"),
    [
        ({"temperature": 1.0}, {"temperature": 1}, "temperature: 1.0 here, 1 there"),
        ({"temperature": 0.0}, {"temperature": -0.0}, "temperature: 0.0 here, -0.0 there"),
        ({"temperature": 1}, {"temperature": True}, "temperature: 1 here, True there"),
        ({"keywords": [1.0]}, {"keywords": [1]}, "keywords: [1.0] here, [1] there"),
        ({"model": None}, {}, "model: None here, not given there"),
        ({}, {"model": "m"}, "model: not given here, 'm' there"),
        ({"text": "caf\u00e9"}, {"text": "cafe\u0301"}, r"text: 'caf\xe9' here, 'cafe\u0301' there"),
        (
            {"text": LONG + "one"},
            {"text": LONG + "two"},
            "text: …o that of the next: one' here, …o that of the next: two' there",
        ),
    ],
)
def test_what_differs_only_in_how_it_is_written(missed, here, there, told):
    error, said = missed({**ASKED, **here}, {**ASKED, **there})
    assert said == f"the nearest one there differs in {told}"
    assert error.parameter == told.partition(":")[0]


def test_what_means_something_else_comes_first(missed):
    error, said = missed({"temperature": 1.0, "voice": "w"}, {"temperature": 1, "voice": "v"})
    assert error.parameter == "voice"
    assert said == "the nearest one there differs in voice: 'w' here, 'v' there (and in temperature)"


def test_what_is_only_written_otherwise_is_nearest(missed):
    missed(ASKED, {**ASKED, "voice": "w"})
    missed(ASKED, {**ASKED, "temperature": 1, "model": None})
    error, _ = missed(ASKED, {**ASKED, "text": "b"})
    assert error.parameter == "temperature"


def test_a_tuple_is_a_list(missed):
    error, _ = missed({**ASKED, "keywords": ("k",)}, ASKED, of="fake/2")
    assert error.parameter == "service"


def test_the_same_parameters(missed):
    for of, repeat, parameter, told in (
        ("fake/2", 0, "service", "the same was asked of 'fake/2', and this is 'fake/1'"),
        (
            None,
            1,
            "service",
            "the same was asked of another service, or as a repetition, and this is 'fake/1'",
        ),
        (SERVICE, 1, None, "the same is stored as a repetition, or from another version of the contract"),
    ):
        error, said = missed(ASKED, ASKED, of=of, repeat=repeat)
        assert (error.parameter, said) == (parameter, told)


def test_a_client_tells_it_of_an_old_store(server, http, wav, tmp_path):
    catalogue = http.reply(body={"voices": [http.VOICE]}, X_Speechlab_Service=SERVICE)
    server.script(catalogue, http.reply(body=wav, content_type="audio/wav"))
    asked = {"text": "a", "voice": http.VOICE_ID, "temperature": 1.0}
    with Client(server.base_url, store=tmp_path / "new") as lab:
        lab.synthesize(**asked)
    with Store(tmp_path / "new") as new, Store(tmp_path / "old") as old:
        for operation in ("voices", "synthesize"):
            key, request = new.newest(operation)[0]
            if operation == "synthesize":
                request["temperature"] = 1
                key = compute_request_key(operation, request, service=SERVICE)
            old.put(key, operation=operation, request=request, response={})
            old.keep_facts(key, new.facts(key) or {"service": SERVICE})
    with Client(store=tmp_path / "old", mode="replay") as lab, pytest.raises(ReplayMiss) as caught:
        lab.synthesize(**asked)
    assert caught.value.parameter == "temperature"
    assert "1.0 here, 1 there" in str(caught.value)


def test_a_miss_is_told_of_the_call_and_not_of_the_catalogue(tmp_path):
    for filled in (False, True):
        meant = {"source_lang": "ja", "target_lang": "en"}
        if filled:
            with Store(tmp_path) as store:
                kept = Translate("b", **meant)
                store.put(
                    kept.compute_key(SERVICE),
                    operation="translate",
                    request=kept.parameters,
                    response={"text": "B"},
                )
        with Client(store=tmp_path, mode="replay") as lab:
            with pytest.raises(ReplayMiss) as caught:
                lab.translate("a", **meant)
            assert caught.value.operation == "translate"
            told = (
                "the nearest one there differs in text: 'a' here, 'b' there"
                if filled
                else "no translate call at all"
            )
            assert told in str(caught.value)
            assert "voices" not in str(caught.value)
            with pytest.raises(ReplayMiss, match="the catalogue is needed to find 'heart'") as caught:
                lab.synthesize("a", voice="heart")
            assert (caught.value.operation, caught.value.parameter) == ("synthesize", "voice_id")
            if filled:
                with pytest.raises(
                    ReplayMiss, match="the same is stored, but without the service that was asked"
                ):
                    lab.translate("b", **meant)
