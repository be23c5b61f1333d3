"""A batch asks of the service only what it needs: a closed catalogue, a service that is off or another one."""

import re

import pytest

from speechlab import batch
from speechlab.client import Client
from speechlab.errors import (
    APIConnectionError,
    APITimeoutError,
    InvalidRequestError,
    PermissionDeniedError,
    ServerError,
)
from support.batches import EN_JA, Notes, quiet, texts
from support.translator import Translator, Wire, reply


class Service:
    """A translator at an address that stays, also while it is off."""

    def __init__(self, service, catalogue=200, name="reverser/1"):
        self.translator, self.catalogue, self.name = service, catalogue, name
        self.asked = 0
        self.failing = 0

    async def answer(self, head, body):
        self.asked += 1
        if self.asked <= self.failing:
            return reply(500, {"code": 1, "name": "ErrStarting", "message": "not yet"})
        if not self.catalogue:
            return None
        if b"GET /tts/voices" in head:
            return reply(self.catalogue, {"voices": []}, f"X-Speechlab-Service: {self.name}")
        return await self.translator.answer(head, body)


@pytest.fixture
def service():
    made = Service(Translator())
    with Wire(made.answer) as wire:
        made.base_url = f"http://127.0.0.1:{wire.port}"
        yield made


@pytest.fixture
def lab(service):
    """A client that is not patient."""
    with Client(base_url=service.base_url, max_retries=0) as lab:
        yield lab


@pytest.mark.parametrize("status", [403, 404])
def test_texts_are_translated_without_a_catalogue(service, lab, store, status):
    service.catalogue = status
    for expected in ("ok", "cached"):
        table = batch.translate(texts(3), lab, **quiet(store))
        assert table["status"].tolist() == [expected] * 3
    assert batch.load(table, store).manifest["service"] == service.base_url
    if status == 403:
        with pytest.raises(PermissionDeniedError):
            batch.synthesize(texts(1).assign(voice="calm"), lab, store=store, progress=False)


def test_a_finished_run_is_repeated_while_the_service_is_off(service, lab, store, tmp_path):
    texts(3).to_csv(tmp_path / "rows.csv", index=False)
    for source in (texts(3), tmp_path / "rows.csv"):
        batch.translate(source, lab, **quiet(store))
    service.catalogue, service.asked = 0, 0
    for source in (texts(3), tmp_path / "rows.csv"):
        with Client(base_url=service.base_url) as patient:
            table = batch.translate(source, patient, **quiet(store))
        assert table["status"].tolist() == ["cached"] * 3
        assert table["translation"].tolist() == [text[::-1] for text in table["text"]]
    assert service.asked == 2
    assert batch.load(table, store).verify()


def test_an_unfinished_run_needs_its_service(service, lab, store, tmp_path):
    batch.translate(texts(3), lab, **quiet(store))
    service.catalogue = 0
    with Client(base_url=service.base_url, max_retries=0) as other:  # that knows no catalogue yet
        for rows, place in ((4, store), (3, tmp_path / "another")):
            with pytest.raises(APIConnectionError, match=re.escape(service.base_url)):
                batch.translate(texts(rows), other, **quiet(place))
    run = batch.load(store.path)
    assert (run.status, run.manifest["statuses"]) == ("failed", {"cached": 3, "cancelled": 1})
    assert sum(service.translator.calls.values()) == 3


def test_a_plan_is_of_one_service(service, lab, store):
    batch.translate(texts(3), lab, **quiet(store))
    service.catalogue = 0
    with Client(base_url=service.base_url, max_retries=0) as other:
        plan = batch.plan_translation(texts(4), other, store=store, **EN_JA)
        assert plan.summary()["calls"] == 1
        service.catalogue, service.name = 200, "reverser/2"
        with pytest.raises(InvalidRequestError, match="'reverser/2', and the plan was made for 'reverser/1'"):
            batch.run(plan, other, progress=False)
        assert sum(service.translator.calls.values()) == 3
        table = batch.translate(texts(4), other, **quiet(store))
        assert table["status"].tolist() == ["ok"] * 4


@pytest.mark.slow
def test_a_service_that_starts_is_waited_for(service, store):
    service.failing, told = 3, Notes()
    with Client(base_url=service.base_url) as lab:
        table = batch.translate(texts(3), lab, **quiet(store, progress=told))
    assert table["status"].tolist() == ["ok"] * 3
    waits = [counts.waiting for counts in told.counts if counts.waiting]
    assert waits[0].startswith("waiting for the service to come back")
    assert set(told.began) == {"translate"}


def test_planning_gives_up_after_give_up_after_s(service, store):
    service.failing = 1000
    with Client(base_url=service.base_url) as lab:
        for work in (batch.translate, batch.plan_translation):
            with pytest.raises(
                (ServerError, APITimeoutError), match=r"gave the service up.*give_up_after_s"
            ) as caught:
                work(texts(3), lab, **quiet(store, give_up_after_s=0))
            assert caught.value.service_lost
    assert service.asked <= 2


@pytest.mark.slow
def test_a_repeated_run_gives_up_with_a_warning(service, store):
    with Client(base_url=service.base_url) as lab:
        batch.translate(texts(3), lab, **quiet(store))
    service.catalogue = 0
    with Client(base_url=service.base_url) as lab, pytest.warns(UserWarning, match="was given up"):
        table = batch.translate(texts(5), lab, **quiet(store, give_up_after_s=1))
    assert table["status"].tolist() == ["cached"] * 3 + ["cancelled"] * 2
    assert batch.load(table, store).status == "stopped"
