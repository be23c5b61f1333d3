"""A small service that can be told to misbehave, a client of it, and a store."""

import pytest

from speechlab.client import Client
from speechlab.service import run_service
from speechlab.store import Store
from support.clients import KEY
from support.quick import QUICK_ENGINES
from support.staged import NO_ENGINES, staged_config
from support.translator import Translator, Wire


@pytest.fixture
def translator():
    service = Translator()
    with Wire(service.answer) as wire:
        service.base_url = f"http://127.0.0.1:{wire.port}"
        yield service


@pytest.fixture
def reverser(translator):
    with Client(base_url=translator.base_url, max_retries=1) as client:
        yield client


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture(scope="session")
def quick_lab():
    """A client of a service whose engines take no time, and of which one voice is real."""
    others = {name: off for name, off in NO_ENGINES.items() if name != "hibari"}
    with (
        run_service(staged_config(*QUICK_ENGINES, engines=others)) as service,
        Client(base_url=service.base_url, api_key=KEY) as client,
    ):
        yield client
