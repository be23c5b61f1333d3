"""Keys that are kept: shown once, limited, expired, revoked; and the ledger of what they used."""

import base64
import contextlib
import csv
import io
import os
import re
import sqlite3
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from speechlab.audio import encode
from speechlab.cli import app
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.service import Database, KeyStore, Ledger, ServiceConfig, UsageRow, run_service, voice_uuid
from support.clients import Http
from support.clock import ends_within, eventually
from support.sockets import read_all
from support.staged import used


@pytest.fixture
def database(tmp_path):
    with contextlib.closing(Database(tmp_path / "data")) as database:
        yield database


@pytest.fixture
def wav() -> bytes:
    return encode(np.zeros(16_000, dtype=np.float32), "wav", 16_000)


def waited(folder, count: int) -> list[UsageRow]:
    assert eventually(lambda: len(used(folder)) >= count), used(folder)
    time.sleep(0.1)  # for one row too many
    rows = used(folder)
    assert len(rows) == count, rows
    return rows


def test_a_key_is_shown_once_and_its_digest_kept(database):
    access = KeyStore(database)
    stored, key = access.create_key("a study")
    assert ServiceConfig.of({"api_keys": (key,)}).api_keys == (key,)
    assert len(base64.urlsafe_b64decode(key.removeprefix("sl:") + "=")) == 32
    assert access.list_keys() == [stored]
    database.close()
    for path in database.folder.iterdir():
        held = path.read_bytes()
        assert key.encode() not in held
        assert key.removeprefix("sl:").encode() not in held
        if os.name == "posix":
            assert path.stat().st_mode & 0o077 == 0


def test_other_folders_open_nothing_here(tmp_path):
    folders = [Database(tmp_path / name) for name in "ab"]
    first, second = (KeyStore(folder) for folder in folders)
    stored, key = first.create_key("mine")
    # Even the stored digest is of no use under another secret.
    row = folders[0].read("SELECT * FROM keys")[0]
    folders[1].write(f"INSERT INTO keys VALUES ({','.join('?' * len(row))})", tuple(row))
    assert [known.key_id for known in second.list_keys()] == [stored.key_id]
    assert second.find_owner(key) is None
    for folder in folders:
        folder.close()


def test_a_folder_without_its_secret_says_what_is_lost(tmp_path, caplog):
    with contextlib.closing(Database(tmp_path)) as database:
        _, key = KeyStore(database).create_key("mine")
    (tmp_path / "secret").unlink()
    with contextlib.closing(Database(tmp_path)) as database:
        assert KeyStore(database).find_owner(key) is None
    (warning,) = caplog.records
    assert warning.levelname == "WARNING"
    assert "restore 'secret'" in warning.message


def test_names_that_cannot_be(database):
    access = KeyStore(database)
    for name in ("  ", "a\nb"):
        with pytest.raises(InvalidRequestError, match="name"):
            access.create_key(name)
    access.create_key("twin")
    access.create_key("twin")
    with pytest.raises(InvalidRequestError, match="2 keys"):
        access.revoke_key("twin")
    with pytest.raises(InvalidRequestError, match="no key") as caught:
        access.revoke_key("sl:typed-into-the-wrong-place")
    assert "typed" not in str(caught.value)


def test_damaged_folders_are_said_plainly(tmp_path):
    (tmp_path / "service.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match=r"service\.sqlite"):
        Database(tmp_path)
    with contextlib.closing(Database(tmp_path / "other")) as database:
        (database.folder / "secret").write_bytes(b"short")
        with pytest.raises(StoreError, match="damaged"):
            KeyStore(database)


def test_keys_that_cannot_be_read_let_nobody_in(stage, error_body, tmp_path):
    with stage(data_dir=tmp_path) as service:
        db = sqlite3.connect(tmp_path / "service.sqlite")
        db.execute("ALTER TABLE keys RENAME TO gone")
        db.close()
        reply = service.http.request("GET", "/tts/voices", key="sl:some-stored-key")
        error_body(reply, 500, "ErrInternal")
        assert "sqlite" not in reply.body.decode()
        assert service.http.request("GET", "/tts/voices").status == 200


@pytest.mark.slow
def test_s17_one_row_for_each_operation_that_reached_an_engine(stage, wav, tmp_path):
    with stage(data_dir=tmp_path) as service:
        http = service.http
        spoken = service.speak(text="𠮷野家", format="wav")
        streamed = service.speak(stream=True)
        assert service.speak("broken").status == 500
        http.recognize(wav)
        service.translate("Hello.")
        service.translate("Hello.", stream="true")
        rows = waited(tmp_path, 6)
    figures = [
        (row.operation, row.provider, row.model, row.status, row.characters, row.input_bytes) for row in rows
    ]
    assert figures == [
        ("tts", "staged", "staged-1", "completed", 3, 10),
        ("tts", "staged", "staged-1", "completed", 3, 3),
        ("tts", "staged", "staged-1", "backend_error", 3, 3),
        ("asr", "ears", "staged-ears", "completed", 0, len(wav)),
        ("translate", "echo", "staged/echo", "completed", 6, 6),
        ("translate", "echo", "staged/echo", "completed", 6, 6),
    ]
    assert [row.audio_bytes for row in rows[:3]] == [len(spoken.body), len(streamed.body), 0]
    assert [row.audio_s for row in rows] == [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    assert [(row.prompt_tokens, row.completion_tokens) for row in rows[3:]] == [(0, 0), (6, 3), (6, 3)]
    ((owner, transport),) = {(row.key_id, row.transport) for row in rows}
    assert (bool(re.fullmatch("s-[0-9a-f]{8}", owner)), transport) == (True, "http")
    assert all(time.time() - 60 < row.time <= time.time() for row in rows)


ANNA, BERT, CLARA = (f"sl:the-key-of-{name}" for name in ("anna", "bert", "clara"))


@pytest.mark.slow
def test_usage_stays_with_its_key_when_the_settings_change(stage, tmp_path):
    def used(*keys):
        with stage(api_keys=keys, operator_keys=(), data_dir=tmp_path) as service:
            client = Http(service.http.base_url, BERT)
            assert service.speak(http=client).status == 200

    used(ANNA, BERT)
    used(BERT)
    used(CLARA, ANNA, BERT)
    rows = waited(tmp_path, 3)
    assert len({row.key_id for row in rows}) == 1


def test_s17_broken_and_abandoned_streams_are_metered_too(stage, tmp_path):
    with stage(data_dir=tmp_path) as service:
        with service.asking("breaks-later", stream=True) as connection:
            read_all(connection)
        waited(tmp_path, 1)
        with service.asking("endless", stream=True) as connection:
            connection.recv(4096)
        rows = waited(tmp_path, 2)
    assert [row.status for row in rows] == ["partial_backend_error", "cancelled"]
    assert rows[0].audio_bytes > 0
    assert rows[1].audio_s >= 0.5


def test_s17_a_text_that_the_engine_finds_wrong_is_rejected(stage, error_body, tmp_path):
    with stage(data_dir=tmp_path) as service:
        for stream in (False, True):
            body = error_body(service.speak("picky", stream=stream), 400, "ErrInvalidRequest")
            assert body["context"] == ["tts", "text"]
        with service.talk("picky") as client:
            for _ in range(2):
                told = client.refusal("x", id="7")
                assert (told["code"], "does not read" in told["message"]) == ("invalid_message", True)
    assert used(tmp_path) == []


@pytest.mark.slow
def test_s17_rejected_requests_leave_no_row(stage, wav, tmp_path):
    settings = {"data_dir": tmp_path, "service_requests_per_minute": {"tts": 1}, "tts_text_limit": 5}
    with stage(**settings) as service, contextlib.closing(Database(tmp_path)) as database:
        _, key = KeyStore(database).create_key("limited", providers=["q"], recognition=False)
        limited, http = Http(service.http.base_url, key), service.http
        assert [service.speak().status for _ in range(2)] == [200, 429]  # the service's
        assert service.speak(text="too long").status == 400
        assert service.speak(voice_id="no such voice").status == 400
        assert service.speak(http=limited).status == 403
        assert limited.recognize(wav).status == 403
        assert http.recognize(b"no audio").status == 400
        assert http.recognize(b"fLaC" + bytes(100)).status == 400
        assert http.translate(text="", source_lang="en", target_lang="ja").status == 400
        assert http.request("POST", "/tts", b"{}", key="sl:unknown-key-1").status == 401
        assert [row.status for row in waited(tmp_path, 1)] == ["completed"]


def test_what_clients_leave_is_no_failure(database):
    for status in ("completed", "cancelled", "cancelled", "backend_error", "partial_backend_error"):
        row = UsageRow(1.0, "k", "tts", "http", "q", "q", 1, 1, 1, 1.0, 0, 0, status)
        Ledger(database).queue_row(row)
    waited(database.folder, 5)
    (total,) = Ledger(database).sum_usage(())
    assert (total.operations, total.failed, total.cancelled) == (5, 2, 2)


def test_a_locked_ledger_holds_nobody_up_and_loses_nothing(stage, tmp_path):
    with stage(data_dir=tmp_path) as service:
        blocker = sqlite3.connect(tmp_path / "service.sqlite", isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with ends_within(5):
            for _ in range(3):
                assert service.translate().status == 200
        assert used(tmp_path) == []
        blocker.execute("COMMIT")
        blocker.close()
        waited(tmp_path, 3)


def test_without_a_folder_nothing_is_kept(stage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with stage() as service:
        service.translate()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def command(tmp_path, monkeypatch):
    """The command line on the data folder, in a terminal so wide that no cell is folded."""
    for console in ("console", "errors"):
        monkeypatch.setattr(f"speechlab.cli._console.{console}._width", 400)

    def run(*arguments: str) -> str:
        options = ["--data-dir", str(tmp_path)]
        done = CliRunner().invoke(app, [*arguments, *options], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_the_command_makes_lists_limits_and_revokes(command, tmp_path):
    given = ("--expires", "30d", "--provider", "hibari", "--no-asr")
    key, _, said = command("keys", "create", "Anna [b]", *given).partition("\n")
    assert ServiceConfig.of({"api_keys": (key,)}).api_keys == (key,)
    assert "hibari, no recognition, translation" in said
    listed = command("keys", "list")
    assert (key[:9] in listed, key in listed + said, "Anna [b]" in listed) == (True, False, True)
    config = ServiceConfig(port=0, data_dir=tmp_path, recognizer="", translator="")
    with run_service(config) as service:
        http = Http(service.base_url, key)
        assert http.request("GET", "/tts/voices").status == 200
        assert http.recognize(b"").status == 404
        voice = voice_uuid("hibari", "heart").upper()
        for arguments, said in (
            (("allow", key[:9], "--provider", "all", "--asr"), "all voices, recognition, translation"),
            (("allow", "Anna [b]", "--voice", voice), "(1 of their voices)"),
            (("allow", "Anna [b]", "--voice", "all"), "all voices"),
            (
                ("limit", key[:9], "requests_per_minute=1000", "concurrent=0"),
                "1,000 requests per minute, concurrent: no limit",
            ),
            (("limit", key[:9], "requests_per_minute=", "concurrent="), "no limits of its own"),
            (("limit", "service:tts", "concurrent=5"), "service:tts: 5 at the same moment"),
            (("list",), "service:tts: 5 at the same moment"),
        ):
            assert said in command("keys", *arguments)
        command("keys", "revoke", "Anna [b]")
        assert http.request("GET", "/tts/voices").status == 401
        assert service.api_key not in listed
    assert "revoked" in command("keys", "list")


@pytest.mark.slow
def test_the_command_refuses_what_cannot_be(command):
    for arguments in (
        ("keys", "create", "x", "--expires", "0d"),
        ("keys", "create", "x", "--provider", "nobody"),
        ("keys", "revoke", "k-00000000"),
        ("keys", "limit", "k-00000000", "concurrent=1"),
        ("keys", "limit", "all", "requests_per_minute=-3"),
        ("keys", "limit", "all", "concurrent=99999999999999999"),
        ("keys", "limit", "all", "weather=1"),
        ("keys", "limit", "service:cook", "concurrent=1"),
        ("usage", "--by", "weather"),
    ):
        with pytest.raises(InvalidRequestError):
            command(*arguments)
    assert "no keys yet" in command("keys", "list")


@pytest.mark.slow
def test_usage_as_a_table_and_as_csv(command, stage, wav, tmp_path):
    def read_csv(*arguments: str) -> list[list[str]]:
        return list(csv.reader(io.StringIO(command("usage", "--csv", *arguments))))

    assert "nothing was used" in command("usage")
    with stage(data_dir=tmp_path) as service:
        for voice, text in (("plain", "One."), ("plain", "Two and more."), ("broken", "Hi.")):
            service.speak(voice, text=text)
        service.http.recognize(wav)
    head, *lines = read_csv()
    found = [dict(zip(head, line, strict=True)) for line in lines]
    owner = found[0]["key"]
    assert owner in command("usage")
    assert [(row["key"], row["operation"], row["operations"], row["failed"]) for row in found] == [
        (owner, "asr", "1", "0"),
        (owner, "tts", "3", "1"),
    ]
    assert (found[1]["characters"], found[1]["audio_s"]) == ("20", "2.0")
    assert len(read_csv("--rows")) == 5
    assert len(read_csv("--key", "nobody")) == 1
    assert len(read_csv("--by", "day", "--since", "1h")) in {2, 3}  # midnight may pass
    assert "backend_error" in command("usage", "--by", "status")
