"""The wheel that users get: alone in an empty environment, on the oldest dependencies that it allows, it does what
the README shows. (The environment of the other tests has the newest.)
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from speechlab.audio import AudioClip

ROOT = Path(__file__).parents[1]

ONE_BY_ONE = """
import json, sys
shared = {"__name__": "__main__"}
for number, block in enumerate(json.load(sys.stdin), start=1):
    try:
        exec(compile(block, f"block {number} of README.md", "exec"), shared)
    except BaseException as error:
        raise SystemExit(f"{block}\\n{error!r}") from error
assert shared["spoken"]["status"].tolist() == ["ok", "ok", "error"]
assert shared["report"].summary["error_rate"].notna().all()
assert shared["report"]._repr_html_().count("<audio") == len(shared["report"].table) == 3
assert shared["clip"].duration_s > 1
shared["lab"].close()
"""


@pytest.mark.engines
@pytest.mark.slow
def test_the_readme_runs_on_the_wheel_with_oldest_packages(light_service, tmp_path):
    made = subprocess.run(
        [
            sys.executable,
            ROOT / "tools" / "wheel.py",
            tmp_path / "built",
            "--oldest",
            "--extra",
            "toolkit",
            "--extra",
            "ja",
        ],
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    python = Path(made.stdout.splitlines()[-1])
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "SPEECHLAB_BASE_URL": light_service.base_url,
        "SPEECHLAB_API_KEY": light_service.api_key,
        "SPEECHLAB_STORE": str(tmp_path / "store"),
    }
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    AudioClip(np.full(16_000, 0.1, dtype=np.float32), 16_000).save(recordings / "a.wav")
    (recordings / "a.txt").write_text("good morning", "utf-8")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    ran = subprocess.run(
        [python, "-c", ONE_BY_ONE],
        input=json.dumps(blocks),
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    command = python.with_name("speechlab")
    for arguments in (["--help"], ["doctor", "--help"], ["--version"]):
        said = subprocess.run(
            [command, *arguments], capture_output=True, text=True, env=environment, timeout=60, check=False
        )
        assert said.returncode == 0, said.stderr
