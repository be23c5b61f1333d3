"""What errors of calls tell: the service's own words, advice beside them, and what its operator needs."""

import pickle

import pandas as pd
import pytest

import speechlab as sl
from speechlab.client import AsyncClient, Client, connect
from speechlab.errors import APIConnectionError, APIError, AuthenticationError, ConfigurationError
from support.cells import cells
from support.forked import script

MEANT = {"source_lang": "ja", "target_lang": "en"}
REFUSED = {"code": 104, "name": "ErrAuthenticationFailed", "error": "Authentication error: Invalid token"}


def test_an_error_has_the_services_message_and_our_advice(server, lab, http):
    server.script(http.reply(401, REFUSED, X_Request_Id="req-7", Set_Cookie="session=abc"))
    with pytest.raises(AuthenticationError) as caught:
        lab.translate("a", **MEANT)
    error = caught.value
    assert error.message == "Authentication error: Invalid token"
    assert error.advice == "give a valid key as api_key= or in SPEECHLAB_API_KEY"
    assert str(error) == f"HTTP 401 ErrAuthenticationFailed: {error.message}; {error.advice}"
    assert error.headers["content-type"] == "application/json"
    assert "set-cookie" not in error.headers
    twin = pickle.loads(pickle.dumps(error))
    assert (str(twin), twin.headers, twin.request_id) == (str(error), error.headers, "req-7")
    with Client(server.base_url) as other:
        for call in (other.voices, lambda: other.stream_translation("a", **MEANT).open()):
            with pytest.raises(
                AuthenticationError, match="no API key was given; give one as api_key="
            ) as caught:
                call()
            assert caught.value.message == "Authentication error: Invalid token"
    server.script(http.reply(400, {"error": "no"}, Request_Id="req-8", X_Echo=f"Bearer {http.KEY}"))
    with pytest.raises(APIError) as caught:
        lab.translate("a", **MEANT)
    assert (caught.value.request_id, caught.value.headers["x-echo"]) == ("req-8", "Bearer ***")
    server.script(http.RESET)
    with pytest.raises(APIConnectionError) as caught:
        lab.with_options(max_retries=0).translate("a", **MEANT)
    assert caught.value.advice == "the request had been sent in full, so it may have been done and billed"
    assert caught.value.message.startswith(f"POST {server.base_url}/translate/: ")


CELLS = {
    "lab.translate('a', source_lang='ja', target_lang='en')": (AuthenticationError, "Invalid token"),
    "async with other: await other.voices()": (AuthenticationError, "Invalid token"),
    "lab.translate('a', sorce_lang='ja')": (TypeError, "Client.translate() got an unexpected keyword"),
    "await other.translate('a', sorce_lang='ja')": (TypeError, "AsyncClient.translate() got an unexpected"),
    "other.stream_speech('a', voce='x')": (TypeError, "AsyncClient.stream_speech() got an unexpected"),
    "lab.with_options(api_key='sl:x')": (ConfigurationError, "make a new client for another value"),
    "other.with_options(retries=1)": (ConfigurationError, "a client has no option 'retries'"),
}


AT_DOORS = (
    "lab.transcribe('no.wav')",
    "sl.AudioClip.from_file('no.wav')",
    "sl.segments.read('no.srt')",
    "sl.metrics.error_rate(['a'], [])",
    "sl.show(pd.DataFrame({'text': ['a']}))",
    "sl.batch.translate(pd.DataFrame({'text': ['a']}), lab, source_lang='en')",
)
SCRIPT = """
import sys
import pandas as pd, speechlab as sl
lab = sl.Client('http://127.0.0.1:9')
for line in sys.argv[1:]:
    try:
        exec(compile(line, "script.py", "exec"))
    except Exception:
        sys.excepthook(*sys.exc_info())  # as Python does where a script ends with an error
    print("next line", file=sys.stderr)
"""


@pytest.mark.slow
def test_an_error_in_a_cell_or_a_script_is_a_few_lines(server, http, tmp_path):
    server.script(http.reply(401, REFUSED))
    given = {"api_key": http.KEY, "max_retries": 0}
    names = {"lab": Client(server.base_url, **given), "other": AsyncClient(server.base_url, **given)}
    done = script(SCRIPT, *AT_DOORS)
    printed = done.stderr.split("next line\n")[:-1]
    assert len(printed) == len(AT_DOORS)
    assert all(one.startswith("Traceback") for one in printed)
    with names["lab"], cells(tmp_path, sl=sl, pd=pd, **names) as run:
        for cell, (kind, told) in CELLS.items():
            shown, error = run(cell)
            assert isinstance(error, kind), (cell, error)
            assert told in shown
            printed.append(shown)
        printed += [run(line)[0] for line in AT_DOORS]
    for shown in printed:
        assert len(shown.splitlines()) <= 12, shown
        assert "speechlab/" not in shown


def test_a_verbose_traceback_in_a_cell_shows_no_key(server, http, tmp_path):
    wrong = (
        "await AsyncClient.connect(url, api_key=key(), retries=1)",
        "await AsyncClient.connect(url, key())",
        "AsyncClient(url, key())",
        "connect(url, api_key=key(), timeout='x')",
        "Client(url, api_key=key(), timeout='x')",
    )
    kinds = {"AsyncClient": AsyncClient, "Client": Client, "connect": connect}
    with cells(tmp_path, url=server.base_url, key=lambda: http.KEY, **kinds) as run:
        for cell in wrong:
            shown, error = run(cell, "Verbose")
            assert isinstance(error, (ConfigurationError, TypeError)), error
            assert "_brief.py" not in shown
            assert http.KEY.partition(":")[2] not in shown, cell
