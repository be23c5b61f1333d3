"""What all tests share: folders of their own, and one real service for those that need a real one."""

import gc
import os
import re
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("support")
from support.notebooks import round_as_recorded  # noqa: E402 - it is one of the modules above

round_as_recorded()  # before anything imports numpy

# Imports and tests make many objects that stay, among which the search for garbage would take a tenth of the time.
gc.set_threshold(50_000)
# What is slow to import and not needed, here and in the processes that tests start.
ABSENT = str(Path(__file__).parent / "support" / "absent")
sys.path.insert(0, ABSENT)
if ABSENT not in os.environ.get("PYTHONPATH", ""):
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (ABSENT, os.environ.get("PYTHONPATH"))))

# What a script starts with "&" ignores interrupts, and so would the processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A machine that is busy with other tests makes an example slow; that is no fault of the example.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")

LONGEST = (
    "notebooks/test_notebooks.py",
    "widgets/test_lab_browser.py",
    "test_wheel.py",
    "engines/test_whisper.py",
    "cli/test_cli.py",
    "engines/test_synthesizers.py",
    "cli/test_study.py",
    "evaluate/test_answers.py",
    "evaluate/test_proofs.py",
    "widgets/test_listening_browser.py",
    "evaluate/test_speech.py",
    "batch/run/test_cluster.py",
    "test_rooms.py",
    "evaluate/test_voices.py",
    "evaluate/test_verify.py",
    "client/test_any_system.py",
    "strangers/test_reports.py",
    "widgets/test_editor_browser.py",
    "evaluate/test_recognition.py",
    "conform/test_conform.py",
    "evaluate/test_listening.py",
    "service/workers/test_reading.py",
    "conform/test_mutations.py",
    "evaluate/test_streams.py",
    "widgets/test_player_browser.py",
    "evaluate/test_prices.py",
    "client/test_own_engines.py",
    "cli/test_direct.py",
    "widgets/test_hosts_browser.py",
    "widgets/test_table_browser.py",
    "batch/run/test_pressure.py",
    "cli/test_terminal.py",
    "evaluate/test_watch.py",
    "widgets/test_errors_browser.py",
    "evaluate/test_audit.py",
    "service/server/test_process.py",
    "evaluate/test_columns.py",
    "service/test_schema_fuzz.py",
    "widgets/test_recorder_browser.py",
    "batch/test_zoo.py",
    "client/test_embedded.py",
    "service/workers/test_decoding.py",
    "evaluate/test_change_answers.py",
    "widgets/test_report_browser.py",
    "evaluate/test_translation_answers.py",
    "widgets/test_keys_browser.py",
    "engines/test_llama.py",
    "metrics/test_arguments.py",
    "batch/run/test_claims.py",
    "evaluate/test_existing.py",
    "batch/test_long.py",
    "evaluate/test_report.py",
    "cli/test_watch.py",
    "strangers/test_files.py",
)
"""Files that take long: first, so that no worker is left with one when the others are done.

Those that compute and those that wait take turns, so that neither cores nor workers are idle.
"""


# What a system does not have; files of tests that use it are not collected there.
MISSING = {
    "win32": r"\bos\.(fork|mkfifo|killpg|getuid)"
    r"|\bsignal\.(SIG(KILL|STOP|CONT|HUP|XFSZ|SEGV)|pthread_kill|siginterrupt)"
    r"|\bimport (fcntl|resource|termios|pty)|AF_UNIX|unix:/|/proc/|/dev/|/usr/bin|\"bash\"|\.chmod\(",
    "darwin": r"/proc/|/dev/full|VmHWM|RLIMIT_AS",
}


def pytest_ignore_collect(collection_path):
    missing = MISSING.get(sys.platform)
    if missing and collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return bool(re.search(missing, collection_path.read_text("utf-8"))) or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers():
    """More workers than cores, as some wait for engines, browsers and processes.

    Each takes 7 s of processor time to collect the tests, and more to import what they do and to load engines.
    """
    count = yield
    return count if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else count + 2


def pytest_collection_modifyitems(items):
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.split("::")[0].removeprefix("tests/"), len(place)))


def pytest_collection_finish():
    """Thousands of tests live as long as the process: no collection of garbage looks through them again and again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Count the tests that were skipped by what they need; pytest has a line for each of them."""
    reasons = Counter(report.longrepr[2] for report in terminalreporter.getreports("skipped"))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"SKIPPED [{count}] {reason.removeprefix('Skipped: ')}")


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory, _shared):
    """No test touches a user's state or results; models stay in the user's cache, where their hashes are checked."""
    root = tmp_path_factory.mktemp("speechlab")
    kept = {name: value for name, value in os.environ.items() if name.startswith("SPEECHLAB_")}
    for name in kept:
        if name != "SPEECHLAB_CACHE_DIR":
            del os.environ[name]
    os.environ["SPEECHLAB_STATE_DIR"] = str(root / "state")
    os.environ["SPEECHLAB_STORE"] = str(root / "store")
    here = Path.cwd()
    debris = [name for name in ("store.sqlite", "blobs", "claims") if not (here / name).exists()]
    yield
    os.environ.update(kept)
    left = [name for name in debris if (here / name).exists()]
    assert not left, f"a test opened a store in {here} and left {left} there; give it tmp_path"


@pytest.fixture(scope="session", autouse=True)
def _idle_at_the_end(_shared):
    """No test leaves a thread that spins: it would take time from all tests that follow."""
    yield
    began = time.process_time()
    time.sleep(1)
    used = time.process_time() - began
    busy = [traceback.format_stack(frame)[-1] for frame in sys._current_frames().values()]
    assert used < 0.15, f"threads are busy when all tests are done:\n{''.join(busy)}"


@pytest.fixture(scope="session")
def _shared(tmp_path_factory):
    """A folder that all workers of this run have in common, as a user of its service."""
    from support.live import user_of

    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with user_of(folder):
        yield folder


@pytest.fixture(scope="session")
def live_service(_shared):
    """The embedded service with its real engines, as a process of its own, which all workers share."""
    from support.live import service_in

    return service_in(_shared)


@pytest.fixture(scope="session")
def light_service(live_service):
    """The embedded service with its two fast voices, for what each voice would repeat; the shared one recognizes."""
    from speechlab.service import ServiceConfig, run_service

    off = {name: {"enabled": False} for name in ("kokoro", "q")}
    to = {"recognizer_url": live_service.base_url, "recognizer_api_key": live_service.api_key}
    with run_service(ServiceConfig(port=0, engines=off, **to)) as service:
        yield service


@pytest.fixture(scope="session")
def lab(live_service):
    """A client of the real service."""
    from speechlab.client import Client

    with Client(base_url=live_service.base_url, api_key=live_service.api_key) as client:
        yield client
