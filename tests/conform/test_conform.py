"""The real embedded service keeps the contract; reports, the command and the documentation say so."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from speechlab.cli import main
from speechlab.conform import (
    OUT_OF_REACH,
    ConformReport,
    ProbeOptions,
    Verdict,
    list_checks,
    read_statements,
    run,
    select_checks,
    to_json,
    to_junit,
    write_report,
)
from speechlab.errors import APIConnectionError, ConfigurationError
from speechlab.service import Database, KeyStore, ServiceConfig, run_service, voice_uuid
from support.forked import speechlab
from support.proxy import Fault, Proxy
from support.quick import MUTE, QUICK_ENGINES, SLOW, KeyedService
from support.staged import staged_service

ROOT = Path(__file__).parents[2]


def test_every_statement_is_tried_or_said_to_be_out_of_reach():
    tried = {number for check in list_checks() for number in check.statements}
    assert tried | set(OUT_OF_REACH) == set(read_statements())
    assert not tried & set(OUT_OF_REACH)
    assert len(tried) >= 110
    assert all(check.title and check.area for check in list_checks())


def test_the_documentation_counts_what_is_tried():
    page = (ROOT / "docs" / "conform.md").read_text("utf-8")
    tried = len(read_statements()) - len(OUT_OF_REACH)
    assert f"{len(list_checks())} checks try {tried} of the {len(read_statements())} statements" in page
    assert f"the {len(OUT_OF_REACH)} that are out of reach" in page.replace("\n", " ")


def test_checks_are_chosen_by_number_range_and_id():
    assert {check.id for check in select_checks("43-chunked")} == {"43-chunked"}
    assert {number for check in select_checks("20-23") for number in check.statements} == {20, 22, 23}
    assert select_checks("1-999999999999") == select_checks()  # a range costs nothing
    assert len(select_checks(quick=True)) < len(select_checks())
    assert sum(check.metered for check in select_checks(quick=True)) < sum(
        check.metered for check in select_checks()
    )
    with pytest.raises(ValueError, match="43-smoked"):
        select_checks("43-smoked")


def test_checks_travel_between_processes():
    assert pickle.loads(pickle.dumps(list_checks())) == list_checks()


def test_options_keep_their_keys_to_themselves():
    options = ProbeOptions("http://127.0.0.1", "sl:canary-canary", restricted_key="sl:canary-two")
    assert "canary" not in repr(options)
    with pytest.raises(ValueError, match="printable"):
        ProbeOptions("http://127.0.0.1", "sl:a\r\nX-Other: b")


def test_where_nobody_answers_it_cannot_run():
    with pytest.raises(APIConnectionError, match="there is no reply from"):
        run(ProbeOptions("http://127.0.0.1:9", "sl:0123456789abcdef"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    config = ServiceConfig(
        port=0,
        data_dir=folder,
        # Our fast voices, and quick engines for the large models, which are tried by themselves below.
        engines={"q": {"enabled": False}},
        recognizer="ears",
        translator="echo",
        extra_engines=(MUTE, SLOW, *QUICK_ENGINES),
    )
    with run_service(config) as service, contextlib.closing(Database(folder)) as database:
        yield KeyedService(service.base_url, KeyStore(database), voice_uuid("hibari", "heart"))


def broken(report):
    return {o.check.id: o.findings for o in report.outcomes if o.verdict in {Verdict.FAILS, Verdict.ADVISORY}}


@pytest.mark.engines
def test_the_embedded_service_keeps_the_contract(whole, tmp_path):
    options = whole.options()
    report = run(options)
    assert broken(report) == {}
    assert report.has_passed(strict=True)
    untried = {outcome.check.id for outcome in report.outcomes if outcome.verdict is Verdict.UNTRIED}
    assert untried <= {"44-early"}  # hibari may be too fast to tell
    slow = run(whole.options(voice=voice_uuid("slow", "tone")), select_checks("44"))
    assert [outcome.verdict for outcome in slow.outcomes] == [Verdict.HOLDS]
    assert set(report.summarize_statements()) | set(OUT_OF_REACH) == set(read_statements())
    assert all(outcome.metered <= outcome.check.metered for outcome in report.outcomes)
    said = json.dumps(to_json(report)) + to_junit(report)
    assert [key for key in options.keys if key.partition(":")[2] in said and ":" in key] == []
    write_report(report, tmp_path / "report.xml")
    suite = ET.parse(tmp_path / "report.xml").getroot()
    assert (int(suite.get("tests")), int(suite.get("failures"))) == (len(report.outcomes), 0)
    assert (
        int(suite.get("skipped"))
        == report.count_checks(Verdict.UNTRIED)
        == len(suite.findall("testcase/skipped"))
    )


@pytest.mark.engines
def test_the_translator_keeps_the_contract(live_service):
    selected = [check for check in select_checks(quick=True) if check.area in {"translation", "sse"}]
    report = run(ProbeOptions(live_service.base_url, live_service.api_key), selected)
    assert broken(report) == {}
    assert report.count_checks(Verdict.HOLDS) == len(selected) > 20


@pytest.mark.engines
def test_s8_135_keys_that_are_not_restricted_are_noticed(whole):
    only = select_checks("8-restricted,8-no-asr,135-denied")
    assert {o.verdict for o in run(whole.options(), only).outcomes} == {Verdict.HOLDS}
    for name, failing in (("restricted_key", {"8-restricted", "135-denied"}), ("no_asr_key", {"8-no-asr"})):
        assert set(broken(run(whole.options(**{name: whole.key()}), only))) == failing


@pytest.mark.engines
def test_a_service_that_forwards_to_whisper_keeps_the_contract(live_service):
    key = "sl:only-this-key"
    off = {name: {"enabled": False} for name in ("kokoro", "q", "openjtalk")}
    to = {"recognizer_url": live_service.base_url, "recognizer_api_key": live_service.api_key}
    with run_service(ServiceConfig(port=0, api_keys=(key,), engines=off, translator="", **to)) as service:
        selected = [check for check in select_checks(quick=True) if check.area in {"recognition", "segments"}]
        selected += select_checks("80-pre-roll")
        report = run(ProbeOptions(service.base_url, key, voice=voice_uuid("hibari", "heart")), selected)
    assert broken(report) == {}
    assert report.count_checks(Verdict.HOLDS) == len(selected) > 20


@pytest.mark.engines
def test_further_keys_let_more_be_tried():
    key, hibari = "sl:only-this-key", voice_uuid("hibari", "heart")
    engines = {name: {"enabled": False} for name in ("kokoro", "q", "openjtalk")}
    config = ServiceConfig(port=0, api_keys=(key,), recognizer="", translator="", engines=engines)
    with run_service(config) as service:
        more = {"expired_key": "sl:was-good-once", "legacy_key": "sl-0123456789abcdef", "restricted_key": key}
        options = ProbeOptions(service.base_url, key, voice=hibari, **more)
        report = run(options, select_checks("3,8,54-56,100,120,135"))
    verdicts = {outcome.check.id: outcome.verdict for outcome in report.outcomes}
    assert verdicts["3-expired"] is verdicts["120-legacy-token"] is Verdict.HOLDS
    assert verdicts["8-restricted"] is verdicts["135-denied"] is Verdict.FAILS  # the key is not restricted
    assert verdicts["8-no-asr"] is Verdict.UNTRIED
    assert verdicts["54-happy"] is verdicts["100-form"] is Verdict.UNTRIED


def conform(*arguments, **environment):
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith("SPEECHLAB_") or k == "SPEECHLAB_CACHE_DIR"
    }
    return speechlab("conform", *arguments, env={**kept, "COLUMNS": "80", **environment}, timeout=240)


@pytest.mark.engines
def test_the_command_prints_a_table_and_writes_a_report(live_service, tmp_path):
    where = {"SPEECHLAB_BASE_URL": live_service.base_url, "SPEECHLAB_API_KEY": live_service.api_key}
    done = conform("--only", "1-3,20-23", "--report", tmp_path / "report.json", **where)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hold" in done.stdout
    assert "22-fields" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith("report:")) <= 80
    found = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert found["passed"] is True
    assert found["statements"]["22"] == "holds"
    assert live_service.api_key not in done.stdout + done.stderr + json.dumps(found)


@pytest.mark.engines
def test_the_command_shows_what_was_sent_and_what_came(live_service):
    class Accepted(Fault):
        def answered(self, request, reply):
            if request.path == "/tts/voices" and reply.status == 200:
                reply.status = 202

    host, _, port = live_service.base_url.removeprefix("http://").partition(":")
    with contextlib.closing(Proxy((host, int(port)), Accepted())) as proxy:
        wrong = conform("--base-url", proxy.url, "--only", "20", SPEECHLAB_API_KEY=live_service.api_key)
    assert wrong.returncode == 1
    for words in (
        "expected: 200",
        "sent: GET /tts/voices",
        "came: 202 application/json",
        "statement 20 (§4.2)",
    ):
        assert words in re.sub(r"\s+", " ", wrong.stdout)
    assert live_service.api_key not in wrong.stdout + wrong.stderr


@pytest.mark.engines
@pytest.mark.parametrize("option", ["--voice", "--q-voice"])
def test_a_voice_that_is_not_there_is_no_success(live_service, option):
    done = conform(
        "--base-url", live_service.base_url, "--only", "20", option, "nobody",
        SPEECHLAB_API_KEY=live_service.api_key,
    )  # fmt: skip
    assert done.returncode == 2
    assert "has no voice 'nobody'" in done.stderr


@pytest.mark.slow
def test_the_command_says_why_it_cannot_run():
    done = conform("--base-url", "http://127.0.0.1:9", SPEECHLAB_API_KEY="sl:0123456789abcdef")
    assert done.returncode == 2
    assert "there is no reply from http://127.0.0.1:9" in done.stderr


def test_the_command_refuses_arguments_that_cannot_be_right(monkeypatch, capsys):
    for name in ("SPEECHLAB_BASE_URL", "SPEECHLAB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    there = ("--base-url", "http://127.0.0.1:9", "--api-key", "sl:0")
    for arguments, words in (
        (there[:2], "needs --base-url and --api-key"),
        (("--base-url", "smoke", "--api-key", "sl:0123456789abcdef"), "is not a URL"),
        (("--only", "smoke"), "neither a number"),
        (("--report", "no-such-folder/r.xml", *there), "there is no folder no-such-folder"),
        (("--only", "999", *there), "no check is about 999"),
    ):
        monkeypatch.setattr(sys, "argv", ["speechlab", "conform", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert words in capsys.readouterr().err


@pytest.mark.engines
def test_without_an_address_the_embedded_service_is_tried(tmp_path):
    state = {"SPEECHLAB_STATE_DIR": str(tmp_path / "state"), "SPEECHLAB_IDLE_EXIT_S": "1"}
    done = conform("--only", "20-23", **state)
    assert done.returncode == 0, done.stderr
    assert "0 fail" in done.stdout
    state = {"SPEECHLAB_STATE_DIR": str(tmp_path / "other"), "SPEECHLAB_STORE": str(tmp_path / "store")}
    done = conform("--only", "20-23", SPEECHLAB_MODE="replay", **state)
    assert done.returncode == 2
    assert "only replays" in done.stderr
    assert not (tmp_path / "other").exists()


def test_the_command_lists_what_it_would_try(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["speechlab", "conform", "--list"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert len(re.findall(r"^\d+-\S+", capsys.readouterr().out, re.MULTILINE)) == len(list_checks())


def test_an_empty_run_has_passed():
    assert ConformReport("http://a", "ws://a", "", ()).has_passed(strict=True)


@pytest.mark.parametrize(
    ("status", "page", "words"),
    [
        *(
            (status, b"<html></html>", f"no speech service .* {status}, {status}")
            for status in (200, 301, 501)
        ),
        *(
            (status, b"<html></html>", f"a proxy replies .* {status}, .*behind it running")
            for status in (502, 503)
        ),
        (400, b"The plain HTTP request was sent to HTTPS port", "requires TLS; write https://"),
    ],
)
def test_another_server_is_no_such_service(status, page, words):
    """Of a page, a redirection or a server of files nothing would hold, and nothing needs to be tried."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with pytest.raises(APIConnectionError, match=words):
                run(ProbeOptions(f"http://127.0.0.1:{server.server_port}", "sl:0123456789abcdef"), ())
        finally:
            server.shutdown()


@pytest.fixture
def talker():
    """Makes a port that answers whatever comes as a function says."""
    with contextlib.ExitStack() as stack:

        def make(answer):
            class Talk(socketserver.BaseRequestHandler):
                def handle(self):
                    answer(self.request)

            server = stack.enter_context(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talk))
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            return server.server_address[1]

        yield make


def _echo(connection):
    connection.sendall(connection.recv(65_536))


def _greet(connection):
    connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    connection.recv(65_536)


def _greet_and_wait(connection):
    connection.sendall(b"\x4a\x00\x00\x00\x0a8.0.35")  # as a database does, without the end of a line
    connection.recv(65_536)
    connection.recv(1)


def _alert(connection):
    connection.recv(65_536)
    connection.sendall(b"\x15\x03\x01\x00\x02\x02\x46")


def _end(connection):
    connection.recv(65_536)


def _silence(connection):
    connection.recv(65_536)
    connection.recv(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "answer", "words"),
    [
        ("http", _echo, "does not speak HTTP; its reply begins with 'GET /tts/voices"),
        ("http", _greet, "does not speak HTTP; its reply begins with 'SSH-2.0-OpenSSH"),
        ("http", _greet_and_wait, "does not speak HTTP"),
        ("http", _alert, "requires TLS; write https://"),
        ("http", _end, "closes them without a reply"),
        ("http", _silence, "sends no reply within 1 s"),
        ("https", _greet, "TLS with https://.* failed"),
    ],
)
def test_a_port_that_speaks_no_http_is_said_at_once(talker, scheme, answer, words):
    options = ProbeOptions(f"{scheme}://127.0.0.1:{talker(answer)}", "sl:0123456789abcdef", timeout_s=1.0)
    with pytest.raises(APIConnectionError, match=words) as said:
        run(options)
    assert "0123456789abcdef" not in str(said.value)


def test_a_key_that_may_use_nothing_is_said_at_once():
    operator = "ops:the-key-of-the-operator"
    with (
        staged_service(operator_keys=(operator,)) as service,
        pytest.raises(ConfigurationError, match="the key has no access to any operation"),
    ):
        run(ProbeOptions(service.http.base_url, operator), ())


@pytest.mark.engines
def test_a_wrong_key_or_path_is_said_at_once(live_service):
    wrong = ProbeOptions(live_service.base_url, "sl:a-key-that-nobody-has")
    with pytest.raises(ConfigurationError, match="key is not accepted"):
        run(wrong, ())
    with pytest.raises(APIConnectionError, match="there is no speech service"):
        run(ProbeOptions(f"{live_service.base_url}/elsewhere", live_service.api_key), ())
    done = conform("--base-url", live_service.base_url, SPEECHLAB_API_KEY="sl:a-key-that-nobody-has")
    assert done.returncode == 2
    assert "key is not accepted" in re.sub(r"\s+", " ", done.stdout + done.stderr)
