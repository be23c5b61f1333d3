"""One real service for all workers of a run of the tests: each would load the same models otherwise.

Its recognizer decodes the same sound once, whatever the rules of segments: those decide which sound is decoded, and
which words belong to which segment.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from support.clients import KEY

TESTS = str(Path(__file__).parents[1])
RULES = (
    "min_silence_gap",
    "segment_padding",
    "initial_segment_padding_ms",
    "speech_pad_ms",
    "min_segment_duration",
)


@contextmanager
def user_of(folder):
    """Be a user of the service of a folder, which runs as long as it has users, once it has been started."""
    users = folder / "users"
    users.mkdir(exist_ok=True)
    with FileLock(users / f"{os.getpid()}.lock"):
        yield


def service_in(folder):
    """The service of a folder, which the first of its users starts."""
    from speechlab.service import RunningService

    with FileLock(folder / "service.lock"):
        ready = folder / "ready.json"
        if not ready.exists():
            ready.write_text(_start(folder), "utf-8")
    return RunningService(**json.loads(ready.read_text("utf-8")))


def _start(folder):
    command = [sys.executable, "-c", "from support.live import serve; serve()", "--port", "0"]
    command += ["--users-dir", folder / "users", "--idle-exit-s", "5"]
    environment = dict.fromkeys(("SPEECHLAB_SERVICE_API_KEYS", "SPEECHLAB_SERVICE_OPERATOR_KEYS"), KEY)
    environment["PYTHONPATH"] = os.pathsep.join((TESTS, os.environ.get("PYTHONPATH", "")))
    with (folder / "service.log").open("wb") as log:
        service = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=log)
    with service.stdout:
        word, _, fields = service.stdout.readline().partition(b" ")
    service.returncode = 0  # it ends by itself, without users, and nobody waits for it
    assert word == b"ready", (folder / "service.log").read_text("utf-8")
    return json.dumps({"api_key": KEY, "pid": service.pid, **json.loads(fields)})


@contextmanager
def decoding_once():
    """Decode the same sound with the same options once; all that comes before and after is done anew."""
    from speechlab.engines import RecognitionOptions
    from speechlab.engines._recognition.whisper import WhisperEngine

    decode, known, usual = WhisperEngine._decode, {}, RecognitionOptions()
    without_rules = {name: getattr(usual, name) for name in RULES}

    def decoded(engine, sound, options):
        asked = sound.tobytes(), replace(options, **without_rules)
        if asked not in known:
            known[asked] = decode(engine, sound, options)
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhisperEngine, "_decode", decoded)
        yield


def serve():
    """Be the service's process."""
    from speechlab.service.__main__ import main

    with decoding_once():
        sys.exit(main())
