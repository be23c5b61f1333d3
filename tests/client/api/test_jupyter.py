"""In a real IPython kernel: cells, threads, subshells, nested loops, and an interrupt."""

from __future__ import annotations

import asyncio
import time

import pytest
from jupyter_client.manager import start_new_kernel

import speechlab as sl
from support.clock import ends_within, eventually
from support.samples import TRANSLATED

ASK = "lab.translate('a', source_lang='ja', target_lang='en')"


class Kernel:
    """A kernel and the cells that are run in it."""

    def __init__(self, manager, client):
        self.manager, self.client = manager, client

    def run(self, code, *, subshell=None, meanwhile=None):
        """Run a cell; gives what it printed, or the name of its error."""
        message = self.client.session.msg(
            "execute_request", {"code": code, "silent": False, "store_history": False}
        )
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        if meanwhile is not None:
            meanwhile()
        mine, printed, idle, reply = message["header"]["msg_id"], [], False, None
        deadline = time.monotonic() + 60
        while not idle or reply is None:
            assert time.monotonic() < deadline, "the cell does not end"
            for read in (self.client.get_iopub_msg, self.client.get_shell_msg):
                try:
                    got = read(timeout=0.1)
                except Exception as error:
                    assert type(error).__name__ == "Empty"
                    continue
                if got["parent_header"].get("msg_id") != mine:
                    continue
                if got["msg_type"] == "stream" and got["content"]["name"] == "stdout":
                    printed.append(got["content"]["text"])
                elif got["msg_type"] == "status":
                    idle = idle or got["content"]["execution_state"] == "idle"
                elif got["msg_type"] == "execute_reply":
                    reply = got["content"]
        return "".join(printed).strip() if reply["status"] == "ok" else reply["ename"]

    def subshell(self):
        message = self.client.session.msg("create_subshell_request", {})
        self.client.control_channel.send(message)
        return self.client.get_control_msg(timeout=30)["content"]["subshell_id"]


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=60)
    yield Kernel(manager, client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def cell(kernel, server, http):
    server.script(http.reply(body=TRANSLATED))
    code = f"import speechlab as sl\nlab = sl.Client({server.base_url!r}, api_key='sl:x')\nprint({ASK}.text)"
    assert kernel.run(code) == "Hello"  # a synchronous call in a cell, where a loop runs
    yield kernel.run
    kernel.run("lab.close()")


@pytest.mark.slow
def test_await_threads_and_callbacks_in_a_kernel(cell, kernel, server):
    made = f"import asyncio, threading\nalab = sl.AsyncClient({server.base_url!r})\n"
    awaited = f"print([r.text for r in await asyncio.gather(*(a{ASK} for _ in range(3)))])"
    assert cell(made + awaited) == "['Hello', 'Hello', 'Hello']"
    pool = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n"
    assert cell(pool + f"    print(*pool.map(lambda _: {ASK}.text, range(3)))") == "Hello Hello Hello"
    # JupyterLab runs widget callbacks on a subshell, a thread with a loop of its own
    subshell = kernel.subshell()
    where = "threading.current_thread() is threading.main_thread()"
    assert cell(f"print({ASK}.text, {where})", subshell=subshell) == "Hello False"
    # an asynchronous client belongs to the loop of the cells
    assert cell(f"(await a{ASK}).text", subshell=subshell) == "ConfigurationError"
    assert cell(f"print((await a{ASK}).text); await alab.close()") == "Hello"


INTERRUPTED = {
    "a call": ASK,
    "a stream": "async with alab.stream_speech('a', voice=VOICE, format='wav') as s: await s.collect()",
    "a handshake": "async with alab.realtime(voice=VOICE, format='wav') as s: await s.say('a')",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", INTERRUPTED)
def test_an_interrupt_of_a_cell_cancels_the_call_alone(cell, kernel, server, http, what):
    head = [b"HTTP/1.1 200 X\r\nContent-Type: audio/wav\r\nContent-Length: 1000\r\n\r\nRIFF"]
    server.script([*(head if what == "a stream" else []), 40.0], http.reply(body=TRANSLATED))
    assert cell(f"alab, VOICE = sl.AsyncClient({server.base_url!r}), {http.VOICE_ID!r}") == ""

    def interrupt():
        assert eventually(lambda: server.requests)
        time.sleep(0.5 if what != "a call" else 0)  # the loop sleeps then, and nothing would wake it
        kernel.manager.interrupt_kernel()

    with ends_within(20):  # of the forty seconds that nothing comes
        assert cell(INTERRUPTED[what], meanwhile=interrupt) in {"KeyboardInterrupt", "CancelledError"}
        assert server.closed_early.wait(20)
    assert cell(f"print({ASK}.text, (await a{ASK}).text); await alab.close()") == "Hello Hello"


@pytest.mark.slow
def test_asyncio_run_in_a_cell_after_it_was_allowed(cell):
    script = f"""
import asyncio
async def main():
    async with sl.AsyncClient(lab.base_url) as client:
        return (await client.{ASK.removeprefix("lab.")}).text
print(asyncio.run(main()))
"""
    assert cell(script) == "RuntimeError"
    assert cell("sl.notebook.allow_nested_loops()\n" + script) == "Hello"
    assert cell(script) == "Hello"
    assert cell(f"print({ASK}.text)") == "Hello"
    before = asyncio.run
    sl.notebook.allow_nested_loops()
    assert asyncio.run is before  # nothing is changed where no loop runs
