"""In a real IPython kernel: cells, threads, nested loops, and an interrupt."""

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from jupyter_client.manager import start_new_kernel

import speechlab as sl
from support.clock import ends_within, eventually
from support.samples import TRANSLATED

ASK = "lab.translate('a', source_lang='ja', target_lang='en')"


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=60)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def cell(kernel, server, http):
    def run(code, meanwhile=None):
        """Run a cell, with something beside it in a thread; gives what it printed, or the name of its error."""
        printed = []

        def show(message):
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                printed.append(message["content"]["text"])

        with ThreadPoolExecutor(1) as beside:
            done = beside.submit(meanwhile) if meanwhile else None
            reply = kernel[1].execute_interactive(code, store_history=False, output_hook=show, timeout=60)
        if done is not None:
            done.result()
        reply = reply["content"]
        return "".join(printed).strip() if reply["status"] == "ok" else reply["ename"]

    server.script(http.reply(body=TRANSLATED))
    code = f"import speechlab as sl\nlab = sl.Client({server.base_url!r}, api_key='sl:x')\nprint({ASK}.text)"
    assert run(code) == "Hello"  # a synchronous call in a cell, where a loop runs
    yield run
    run("lab.close()")


@pytest.mark.slow
def test_await_and_threads_in_a_kernel(cell, server):
    made = f"import asyncio\nalab = sl.AsyncClient({server.base_url!r})\n"
    awaited = f"print([r.text for r in await asyncio.gather(*(a{ASK} for _ in range(3)))])"
    assert cell(made + awaited) == "['Hello', 'Hello', 'Hello']"
    pool = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n"
    assert cell(pool + f"    print(*pool.map(lambda _: {ASK}.text, range(3)))") == "Hello Hello Hello"
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
        os.kill(kernel[0].provisioner.pid, signal.SIGINT)

    with ends_within(20):  # of the forty seconds that nothing comes
        assert cell(INTERRUPTED[what], meanwhile=interrupt) in {"KeyboardInterrupt", "CancelledError"}
        assert server.closed_early.wait(20)
    assert cell(f"print({ASK}.text, (await a{ASK}).text); await alab.close()") == "Hello Hello"


@pytest.mark.slow
def test_asyncio_run_in_a_cell_after_it_was_allowed(cell):
    script = f"""
import asyncio
import os
import signal
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
