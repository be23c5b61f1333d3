"""Functions of the user that end the program: calls of other clients go on, and Ctrl-C is not lost."""

from __future__ import annotations

import asyncio
import sys

import httpx2
import pytest

from speechlab.client import AsyncClient, Client

MEANT = {"source_lang": "ja", "target_lang": "en"}


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_a_hook_that_ends_the_program_fails_no_call(answering, caplog, end):
    def leave(_):
        raise end("a step of a call")

    with Client(answering.base_url, on_event=leave) as lab, Client(answering.base_url) as other:
        assert lab.translate("a", **MEANT).text == other.translate("a", **MEANT).text == "Hello"
    assert caplog.text.count("the on_event hook failed; the call continues") == 3


def test_an_interrupt_of_a_loop_of_ones_own_comes_through(answering):
    def interrupt(_):
        raise KeyboardInterrupt

    async def main():
        async with AsyncClient(answering.base_url, on_event=interrupt) as lab:
            await lab.translate("a", **MEANT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


def test_a_transport_that_exits_ends_its_own_call_alone(answering):
    def leave(_):
        sys.exit("no network")

    own = Client(answering.base_url, transport=httpx2.MockTransport(leave))
    with own, Client(answering.base_url) as other:
        with pytest.raises(SystemExit, match="no network"):
            own.translate("a", **MEANT)
        assert other.translate("a", **MEANT).text == "Hello"
