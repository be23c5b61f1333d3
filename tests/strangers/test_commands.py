"""What commands print of a service whose catalogue, texts and errors are hostile: a field stays a field."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import speechlab as sl
from speechlab.cli import app
from strangers.test_fields import STEERS

NAMED = "[link=http://strangers.example]zq7[/] [/nothing] \\[bold]"
FIELD = f"{NAMED} \x1b]0;owned\x07\x9b2J\x1b[31m\x08\x00\u202e zq8"
VOICE = "00000000-0000-4000-8000-000000000000"
REPLIES = {
    "/tts/voices": {
        "voices": [
            {"id": VOICE, "description": FIELD, "language": FIELD, "gender": FIELD, "formats": ["wav", FIELD]}
        ]
    },
    "/asr/srt/audio_llm": {
        "text": FIELD,
        "language": FIELD,
        "model": FIELD,
        "segments": [{"start": 0.0, "end": 0.1, "text": FIELD, "speaker": FIELD}],
    },
    "/translate/": {"id": FIELD, "model": FIELD, "choices": [{"message": {"content": FIELD}}]},
}


class Hostile(BaseHTTPRequestHandler):
    """Answers with fields of a stranger; speech is refused with one."""

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        reply = None if self.server.refuses else REPLIES.get(self.path.split("?")[0])
        body = json.dumps(reply or {"error": FIELD, "detail": FIELD, "message": FIELD}).encode()
        self.send_response(200 if reply else 400)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - of http.server

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def hostile():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    server.refuses = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


COMMANDS = [
    "voices",
    "voices --json",
    "doctor",
    "say Hello. -o a.wav",
    "say Hello. -o a.wav --voice zq9",
    "transcribe a.wav --language en",
    "transcribe a.wav b.wav --language en --to csv -o all.csv",
    "translate Hello. --from en --to ja",
    "batch tts texts.csv --out said",
    "batch asr sounds.csv --language en --out heard",
    "batch translate texts.csv --source-lang en --target-lang ja --out translated",
    "study recognition sounds.csv --language en --out recognized",
    "study translation texts.csv --source-lang en --target-lang ja --out studied",
    "study voices texts.csv --out voices",
    "audit predictions.csv --out audited",
]


@pytest.mark.slow
@pytest.mark.parametrize("refuses", [False, True], ids=["answers", "refuses"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_prints_is_text(command, refuses, hostile, tmp_path, monkeypatch):
    if refuses and command.startswith("audit"):
        pytest.skip("asks nothing of a service")
    monkeypatch.chdir(tmp_path)
    hostile.refuses = refuses
    for name, value in {
        "SPEECHLAB_BASE_URL": f"http://127.0.0.1:{hostile.server_address[1]}",
        "SPEECHLAB_API_KEY": "sl:q7Jm2xVd90Rb4TzKc81Wn5Lf",
        "SPEECHLAB_STORE": str(tmp_path / "store"),
        "COLUMNS": "200",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("a.wav", "b.wav"):
        sl.AudioClip(np.zeros(1_600), 16_000).save(name)
    Path("texts.csv").write_text("text,target\nHello.,a\n", "utf-8")
    Path("sounds.csv").write_text(f'audio,text,speaker\na.wav,"{NAMED}","{NAMED}"\nb.wav,hello,b\n', "utf-8")
    Path("predictions.csv").write_text(f'text,"{NAMED}",two\n' + f'a b c,"{NAMED}",a b c\n' * 12, "utf-8")
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code in {0, 1, 2, 3}
    assert done.exception is None or isinstance(done.exception, (SystemExit, sl.SpeechLabError)), (
        done.exception
    )
    printed = re.sub(r"\x1b\[(\?25[lh]|2K|1A|0?m)", "", done.output)  # of progress
    assert not STEERS.search(printed)
    if "zq7" in printed:
        assert "[link=http" in printed  # as it was written, and no link; a narrow console folds the rest
