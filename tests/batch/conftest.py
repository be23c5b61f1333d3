"""A small service that can be told to misbehave, a client of it, and a store."""

from __future__ import annotations

import pytest

from speechlab.client import Client
from speechlab.store import Store
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
