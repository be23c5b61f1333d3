"""What a miss says of the nearest call that is kept: the truth, also where the two look the same."""

import pytest

from speechlab.client import Client, Synthesize, Translate
from speechlab.contract import compute_request_key
from speechlab.errors import ReplayMiss
from speechlab.store import Store
from support.samples import VOICE, VOICE_ID

SERVICE = "fake/1"
MEANT = {"source_lang": "ja", "target_lang": "en"}
LONG = "It is a long way from here to the end of this sentence, and longer to that of the next: "


@pytest.fixture
def store(tmp_path):
    """A store of a service that has one voice."""
    with Store(tmp_path / "kept") as store:
        store.put("v", operation="voices", request={"base_url": "http://x"}, response={"service": SERVICE})
        store.keep_facts("v", {"service": SERVICE, "body": [VOICE]})
        yield store


@pytest.fixture
def missed(store):
    """The error for a call where a store keeps another, and what it says of the difference."""

    def ask(call, kept, *, of=SERVICE, repeat=0):
        operation = {Synthesize: "synthesize", Translate: "translate"}[type(call)]
        key = compute_request_key(operation, kept, service=of or SERVICE, repeat=repeat)
        store.put(key, operation=operation, request=kept, response={})
        if of is not None:
            store.keep_facts(key, {"service": of})
        with Client(store=store, mode="replay") as lab, pytest.raises(ReplayMiss) as caught:
            lab.perform(call)
        return caught.value, str(caught.value).partition("kept: ")[2].partition(";")[0]

    return ask


def synthesis(**more):
    return Synthesize(more.pop("text", "a"), voice=VOICE_ID, **more)


@pytest.mark.parametrize(
    ("here", "there", "told"),
    [
        (synthesis(temperature=1.0), {"temperature": 1}, "temperature: 1.0 here, 1 there"),
        (Translate("a", **MEANT), {"keywords": [1]}, "keywords: [] here, [1] there"),
        (synthesis(), {"model": "m"}, "model: not given here, 'm' there"),
        (synthesis(text="caf\u00e9"), {"text": "cafe\u0301"}, r"text: 'caf\xe9' here, 'cafe\u0301' there"),
        (
            synthesis(text=LONG + "one"),
            {"text": LONG + "two"},
            "text: …o that of the next: one' here, …o that of the next: two' there",
        ),
    ],
    ids=str,
)
def test_what_differs_only_in_how_it_is_written(missed, here, there, told):
    kept = {name: value for name, value in {**here.parameters, **there}.items() if value is not ...}
    error, said = missed(here, kept)
    assert said == f"the nearest one there differs in {told}"
    assert error.parameter == told.partition(":")[0]


def test_the_same_parameters(missed):
    asked = Translate("a", **MEANT, keywords=["k"])
    other = "the same was asked of another service, or as a repetition, and this is 'fake/1'"
    repeated = "the same is stored as a repetition, or from another version of the contract"
    for of, repeat, parameter, told in (
        ("fake/2", 0, "service", "the same was asked of 'fake/2', and this is 'fake/1'"),
        (None, 1, "service", other),
        (SERVICE, 1, None, repeated),
    ):
        error, said = missed(asked, asked.parameters, of=of, repeat=repeat)
        assert (error.parameter, said) == (parameter, told)


def test_a_miss_is_told_of_the_call_and_not_of_the_catalogue(tmp_path):
    for told in ("no translate call at all", "the nearest one there differs in text: 'a' here, 'b' there"):
        with Client(store=tmp_path, mode="replay") as lab:
            with pytest.raises(ReplayMiss) as caught:
                lab.translate("a", **MEANT)
            assert caught.value.operation == "translate"
            assert told in str(caught.value)
            assert "voices" not in str(caught.value)
            with pytest.raises(ReplayMiss, match="the catalogue is needed to find 'heart'") as caught:
                lab.synthesize("a", voice="heart")
            assert (caught.value.operation, caught.value.parameter) == ("synthesize", "voice_id")
        kept = Translate("b", **MEANT)
        key = kept.compute_key(SERVICE)
        with Store(tmp_path) as store:
            store.put(key, operation="translate", request=kept.parameters, response={"text": "B"})
    unknown = "the same is stored, but without the service that was asked"
    with Client(store=tmp_path, mode="replay") as lab, pytest.raises(ReplayMiss, match=unknown):
        lab.translate("b", **MEANT)
