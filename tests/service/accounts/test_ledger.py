"""The ledger does not end in silence: it comes back, says that it cannot write, and leaves nothing out unsaid."""

import contextlib
import json
import sqlite3
import stat

import pytest

from speechlab.errors import StoreError
from speechlab.service import Database, ServiceConfig, create_app, run_service, voice_uuid
from support.clients import KEY, Http
from support.clock import eventually
from support.staged import used

FULL = "CREATE TRIGGER full BEFORE INSERT ON usage BEGIN SELECT RAISE(ABORT, 'as if the disk were full'); END"


def speak(service, times: int) -> None:
    for _ in range(times):
        assert service.speak().status == 200


def gauge(http: Http, name: str) -> float:
    lines = http.request("GET", "/metrics").body.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


@contextlib.contextmanager
def full_disk(folder):
    Database(folder).close()
    with contextlib.closing(sqlite3.connect(folder / "service.sqlite", isolation_level=None)) as database:
        database.execute(FULL)
        yield
        database.execute("DROP TRIGGER full")


@pytest.mark.slow
def test_a_ledger_that_comes_back_has_all_rows(stage, tmp_path):
    folder, away = tmp_path / "data", tmp_path / "away"
    with stage(data_dir=folder) as service:
        folder.rename(away)
        speak(service, 6)
        assert eventually(lambda: service.http.request("GET", "/readyz").status == 503)
        assert "usage cannot be written" in service.http.request("GET", "/readyz").json()["error"]
        assert gauge(service.http, "speechlab_ledger_failing") == 1
        assert gauge(service.http, "speechlab_ledger_waiting_rows") >= 6
        away.rename(folder)
        assert eventually(lambda: service.http.request("GET", "/readyz").status == 200)
        assert gauge(service.http, "speechlab_ledger_failing") == 0
        assert len(used(folder)) == 6
    assert len(used(folder)) == 6


def test_unwritten_rows_are_left_for_the_next_start(stage, tmp_path, caplog):
    with full_disk(tmp_path), stage(data_dir=tmp_path) as service:
        speak(service, 3)
        assert eventually(lambda: service.http.request("GET", "/readyz").status == 503)
    assert len(used(tmp_path)) == 0
    journal = tmp_path / "usage-left.jsonl"
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    assert KEY not in journal.read_text("utf-8")
    with stage(data_dir=tmp_path):
        assert len(used(tmp_path)) == 3
        assert not journal.exists()
    assert "usage is left for the next start" in caplog.text
    assert "usage of the last service was taken in" in caplog.text


def test_a_journal_that_broke_off_gives_its_whole_rows(stage, tmp_path):
    with full_disk(tmp_path), stage(data_dir=tmp_path) as service:
        speak(service, 2)
    journal = tmp_path / "usage-left.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    with stage(data_dir=tmp_path):
        assert len(used(tmp_path)) == 1


@pytest.mark.slow
def test_usage_that_is_lost_is_said_and_has_a_status_of_its_own(start, tmp_path):
    folder = tmp_path / "data"
    options = ("--recognizer=", "--translator=", "--set", "read_workers=0")
    process = start("--data-dir", str(folder), *options)
    folder.rename(tmp_path / "away")
    spoken = process.http.speak(voice_id=voice_uuid("openjtalk", "mei"), text="はい。", format="pcm")
    assert spoken.status == 200
    process.child.terminate()
    code, _, log = process.end()
    assert code == 3
    (said,) = [line for line in map(json.loads, log.splitlines()) if line["event"] == "usage was lost"]
    assert said["rows"] >= 1


@pytest.mark.slow
def test_a_data_folder_has_one_service_and_many_readers(tmp_path):
    config = ServiceConfig(port=0, api_keys=(KEY,), data_dir=tmp_path, recognizer="", translator="")
    with run_service(config):
        with pytest.raises(StoreError, match="another service uses the data folder"):
            create_app(config)
        assert len(used(tmp_path)) == 0


def test_a_ledger_of_another_version_is_refused_with_what_to_do(tmp_path):
    with contextlib.closing(Database(tmp_path)) as database:
        database.write("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match=r"another version of speechlab .*choose another folder") as caught:
        Database(tmp_path)
    assert "disk" not in caught.value.message
