"""The real embedded service keeps the contract; reports, the command and the documentation say so."""

import contextlib
import json
import os
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from speechlab.cli import main
from speechlab.conform import (
    OUT_OF_REACH,
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
from support.quick import MUTE, QUICK_ENGINES, KeyedService
from support.sockets import Listener
from support.staged import staged_config, staged_service

ROOT = Path(__file__).parents[2]


def test_every_statement_is_tried_or_said_to_be_out_of_reach():
    tried = {number for check in list_checks() for number in check.statements}
    assert tried | set(OUT_OF_REACH) == set(read_statements())
    assert not tried & set(OUT_OF_REACH)


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
    with pytest.raises(ValueError, match="43-smoked"):
        select_checks("43-smoked")


def test_options_keep_their_keys_to_themselves():
    options = ProbeOptions("http://127.0.0.1", "sl:canary-canary", restricted_key="sl:canary-two")
    assert "canary" not in repr(options)
    with pytest.raises(ValueError, match="printable"):
        ProbeOptions("http://127.0.0.1", "sl:a\r\nX-Other: b")


def broken(report):
    return {o.check.id: o.findings for o in report.outcomes if o.verdict in {Verdict.FAILS, Verdict.ADVISORY}}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """The service with quick engines, and every key that a check may need."""
    folder = tmp_path_factory.mktemp("keyed")
    config = staged_config(MUTE, *QUICK_ENGINES, data_dir=folder, operator_keys=())
    with run_service(config) as service, contextlib.closing(Database(folder)) as database:
        yield KeyedService(service.base_url, KeyStore(database), voice_uuid("quick", "tone"))


@pytest.mark.slow
def test_a_report_counts_what_was_tried(keyed, tmp_path):
    options = keyed.options()
    report = run(options, select_checks("1-12,20-23,44,54-56"))
    assert broken(report) == {}
    assert report.has_passed(strict=True)
    assert all(outcome.metered <= outcome.check.metered for outcome in report.outcomes)
    said = json.dumps(to_json(report)) + to_junit(report)
    assert [key for key in options.keys if key.partition(":")[2] in said and ":" in key] == []
    write_report(report, tmp_path / "report.xml")
    suite = ET.parse(tmp_path / "report.xml").getroot()
    assert (int(suite.get("tests")), int(suite.get("failures"))) == (len(report.outcomes), 0)
    untried = report.count_checks(Verdict.UNTRIED)
    assert int(suite.get("skipped")) == untried == len(suite.findall("testcase/skipped"))


@pytest.mark.engines
def test_real_engines_keep_the_contract(live_service):
    config = {"voice": voice_uuid("hibari", "heart")}
    areas = {"translation", "sse", "speech"}  # recognition and segments: below
    selected = [check for check in select_checks(quick=True) if check.area in areas]
    report = run(ProbeOptions(live_service.base_url, live_service.api_key, **config), selected)
    assert broken(report) == {}
    assert report.count_checks(Verdict.HOLDS) > 30


@pytest.mark.slow
def test_s8_135_keys_that_are_not_restricted_are_noticed(keyed):
    only = select_checks("8-restricted,8-no-asr,135-denied")
    assert {o.verdict for o in run(keyed.options(), only).outcomes} == {Verdict.HOLDS}
    for name, failing in (
        ("restricted_key", {"8-restricted", "135-denied"}),
        ("no_asr_key", {"8-no-asr"}),
    ):
        assert set(broken(run(keyed.options(**{name: keyed.key()}), only))) == failing
    bare = run(ProbeOptions(keyed.base_url, keyed.key()), only)
    assert {o.verdict for o in bare.outcomes} == {Verdict.UNTRIED}


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


def conform(*arguments, **environment):
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith("SPEECHLAB_") or k == "SPEECHLAB_CACHE_DIR"
    }
    return speechlab("conform", *arguments, env={**kept, "COLUMNS": "80", **environment}, timeout=240)


@pytest.mark.slow
def test_the_command_shows_what_was_sent_and_what_came(keyed, tmp_path):
    class Accepted(Fault):
        def answered(self, request, reply):
            if request.path == "/tts/voices" and reply.status == 200:
                reply.status = 202

    key = keyed.key()
    host, _, port = keyed.base_url.removeprefix("http://").partition(":")
    with contextlib.closing(Proxy((host, int(port)), Accepted())) as proxy:
        where = {"SPEECHLAB_BASE_URL": proxy.url, "SPEECHLAB_API_KEY": key}
        wrong = conform("--only", "1-3,20", "--report", tmp_path / "report.json", **where)
    assert wrong.returncode == 1
    assert max(len(line) for line in wrong.stdout.splitlines() if not line.startswith("report:")) <= 80
    shown = re.sub(r"\s+", " ", wrong.stdout)
    for words in (
        "expected: 200",
        "sent: GET /tts/voices",
        "came: 202 application/json",
        "statement 20 (§4.2)",
    ):
        assert words in shown
    found = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert (found["passed"], found["statements"]["2"], found["statements"]["20"]) == (False, "holds", "fails")
    assert key not in wrong.stdout + wrong.stderr + json.dumps(found)


def test_the_command_says_why_it_cannot_run(keyed, monkeypatch, capsys):
    for name in ("SPEECHLAB_BASE_URL", "SPEECHLAB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    there = ("--base-url", keyed.base_url, "--api-key", keyed.key(), "--only", "20")
    for arguments, words in (
        ((*there, "--voice", "nobody"), "has no voice 'nobody'"),
        ((*there[:2], "--api-key", "sl:a-key-that-nobody-has"), "key is not accepted"),
        (("--base-url", "http://127.0.0.1:9", *there[2:]), "there is no reply from http://127.0.0.1:9"),
        (there[:2], "needs --base-url and --api-key"),
        (("--base-url", "smoke", *there[2:]), "is not a URL"),
        ((*there, "--report", "no-such-folder/r.xml"), "there is no folder no-such-folder"),
        ((*there[:4], "--only", "999"), "no check is about 999"),
        (("--list",), ""),
    ):
        monkeypatch.setattr(sys, "argv", ["speechlab", "conform", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert ended.value.code == (2 if words else 0), arguments
        assert words in re.sub(r"\s+", " ", err)
    assert len(re.findall(r"^\d+-\S+", out, re.MULTILINE)) == len(list_checks())


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


class Talker(Listener):
    """Speaks in turns: what it says, or None to listen."""

    def __init__(self, turns):
        self.turns = turns
        self.listen()

    def serve(self, connection):
        for turn in self.turns:
            if turn is None:
                connection.recv(65_536)
            else:
                connection.sendall(turn)


def page(status: int, content: bytes = b"<html></html>") -> tuple[None, bytes]:
    """It listens, and answers with a page."""
    head = f"HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {len(content)}\r\n\r\n"
    return None, head.encode() + content


GREETING = b"SSH-2.0-OpenSSH_9.2p1\r\n"
ALERT = b"\x15\x03\x01\x00\x02\x02\x46"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "turns", "words"),
    [
        # Of a page, a redirection or a server of files nothing would hold, and nothing needs to be tried.
        ("http", page(301), "no speech service .* 301, 301"),
        ("http", page(502), "a proxy replies .* 502, .*behind it run"),
        ("http", page(400, b"The plain HTTP request was sent to HTTPS port"), "requires TLS; write https://"),
        ("http", (GREETING, None), "does not speak HTTP; its reply begins with 'SSH-2.0-OpenSSH"),
        ("http", (None, ALERT), "requires TLS; write https://"),
        ("http", (None,), "closes them without a reply"),
        ("http", (None, None), "sends no reply within 1 s"),
        ("https", (GREETING, None), "TLS with https://.* failed"),
    ],
)
def test_a_port_that_is_no_such_service_is_said_at_once(scheme, turns, words):
    with contextlib.closing(Talker(turns)) as talker:
        options = ProbeOptions(f"{scheme}://{talker.place}", "sl:0123456789abcdef", timeout_s=1.0)
        with pytest.raises(APIConnectionError, match=words) as said:
            run(options, ())
    assert "0123456789abcdef" not in str(said.value)


def test_a_path_or_an_operators_key_is_said_at_once(keyed):
    with pytest.raises(APIConnectionError, match="there is no speech service"):
        run(ProbeOptions(f"{keyed.base_url}/elsewhere", keyed.key()), ())
    operator = "ops:the-key-of-the-operator"
    told = pytest.raises(ConfigurationError, match="the key has no access to any operation")
    with staged_service(operator_keys=(operator,)) as service, told:
        run(ProbeOptions(service.http.base_url, operator), ())
