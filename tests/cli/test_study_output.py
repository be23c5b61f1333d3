"""What ``speechlab study`` prints, and the status that it ends with, on staged engines."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.metrics import score
from support.clients import KEY
from support.forked import script
from support.studies import serving

SAID = ["Good morning to all.", "The letter came."]
DRIVER = """
import contextlib, io, json, sys
sys.modules["speechmos"] = None  # as where DNSMOS is not installed, which takes a second for each clip
from speechlab.cli import main
found = []
for arguments in json.loads(sys.argv[1]):
    out, wrong = io.StringIO(), io.StringIO()
    sys.argv = ["speechlab", "study", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
        try:
            main()
        except SystemExit as end:
            code = end.code
    found.append([code, out.getvalue(), wrong.getvalue()])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def served():
    with serving() as staged:
        staged.ears.hears = lambda duration_s: "good morning to all"
        yield staged


@pytest.fixture(scope="module")
def study(served, tmp_path_factory):
    """Run commands one after the other in one process, and return status, output and errors of each."""
    root = tmp_path_factory.mktemp("study")
    where = {
        "SPEECHLAB_BASE_URL": served.base_url,
        "SPEECHLAB_API_KEY": KEY,
        "SPEECHLAB_API_KEY_THEIRS": KEY,
        "SPEECHLAB_STORE": str(root / "store"),
    }

    def run(*commands):
        given = json.dumps([list(map(str, command)) for command in commands])
        done = script(DRIVER, given, env={**os.environ, **where, "COLUMNS": "80"}, cwd=root)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    texts = pd.DataFrame({"text": SAID, "language": "en"})
    texts.to_csv(root / "texts.csv", index=False)
    paths = [
        str(served.lab.synthesize(text, voice="low").save(root / f"{number}.wav"))
        for number, text in enumerate(SAID)
    ]
    texts.assign(audio=paths).to_csv(root / "clips.csv", index=False)
    texts.assign(source_lang="en", target_lang="ja", reference="x").to_csv(root / "both.csv", index=False)
    texts.rename(columns={"text": "satz", "language": "sprache"}).to_csv(root / "own.csv", index=False)
    run.root, run.sides = root, ("--service", "ours=", "--service", f"theirs={served.base_url}")
    return run


@pytest.mark.slow
def test_tables_fit_80_columns_and_break_no_word(study):
    compared = ("--setting", "plain=", "--hotword", "letter", "--speed", 1)
    outs = study(
        ("recognition", "clips.csv", "--out", "r1"),
        ("recognition", "clips.csv", "--out", "r2", *study.sides, *compared),
        ("voices", "texts.csv", "--out", "v", *study.sides, "--speed", 1),
        ("translation", "both.csv", "--out", "x", *study.sides, "--keyword", "tea", "--speed", 1),
        ("compare", "r1", "r1"),
    )
    for code, out, wrong in outs:
        assert code == 0, wrong
        title = next(at for at, line in enumerate(out.splitlines()) if line in TITLES)
        table = [line.rstrip() for line in out.splitlines()[title:] if not line.startswith("report:")]
        told = [line for line in table if not line.endswith(".")]
        assert max(map(len, told)) <= 80
        words = {word.lower() for line in told for word in line.split()}
        assert not {word for word in words if word.isalpha()} - KNOWN
    alone = " ".join(outs[0][1].split())
    assert "All rows: voice all recordings, English, 95% interval needs 19 more" in alone
    assert "counted in words" in alone
    assert "All rows: group all recordings, en, verdict no difference shown" in outs[-1][1].splitlines()


TITLES = {"Recognition", "Which voice?", "Translation", "What changed"}
KNOWN = set(
    " ".join(
        [
            *TITLES,
            "System Condition Voice Language Utterances Counted in Error rate interval Text First sound RTF Group",
            "Its own Direction Texts chrF Length Copies Terms kept word Whole Step Lost Verdict Pairs Earlier Now",
            "Difference all recordings ours theirs plain hotwords keywords as recorded noise dB low high en ja a p",
            "text translated recognized spoken and again then worse better no difference shown of",
            "rows English Japanese",
            "characters clips sentences needs more with notation words readings on same back different",
        ]
    )
    .lower()
    .split()
)


def scored(right):
    """A report of 24 recordings, all of which were recognized rightly or wrongly."""
    frame = pd.DataFrame({"text": [f"good morning number {row}" for row in range(24)], "language": "en"})
    frame = frame.assign(
        voice="v", voice_name="v", gender="", audio=None, duration_s=1.0, error=None, status="ok",
        hypothesis=frame["text"] if right else "no",
    )  # fmt: skip
    return evaluate.Report.of_scores("Nightly", score(frame).assign(loop=False))


@pytest.mark.slow
def test_the_status_says_how_it_ended(study):
    root = study.root
    good, bad, other = scored(right=True), scored(right=False), scored(right=True)
    other.table["text"] += " of another day"
    for name, report in (("good", good), ("bad", bad), ("other", other)):
        replace(report, drawings=()).save(root / name)
    (root / "broken").mkdir()
    (root / "broken" / "record.json").write_text("{")
    pd.DataFrame({"satz": ["12", "34"], "sprache": "en"}).to_csv(root / "numbers.csv", index=False)
    pd.DataFrame({"text": ["Good morning.", " "], "language": "en"}).to_csv(root / "empty.csv", index=False)
    gates = ("--fail-if", "worse", "--fail-if", "slower")
    own = ("--column", "text=satz", "--column", "language=sprache")
    sides = (*own[:2], "--source-lang", "en", "--target-lang", "ja", "--setting", "a=", "--setting", "b=")
    commands = {
        ("compare", "bad", "good"): (0, ""),
        ("compare", "bad", "good", *gates): (4, "nothing can be said of speed"),
        ("compare", "good", "bad", *gates): (2, "nothing can be said of speed"),
        ("compare", "good", "other", "--fail-if", "worse"): (2, "no row is in both reports"),
        ("compare", "good", "nowhere"): (2, "holds no report"),
        ("round-trip", "texts.csv", "--voice", "nobody", "--out", "texts.csv"): (2, "names neither a page"),
        ("compare", "good", "broken"): (1, "cannot be read"),
        ("round-trip", "empty.csv", "--voice", "low", "--out", "o"): (1, "1 of 2 rows failed"),
        ("round-trip", "nowhere.csv", "--out", "o"): (2, "there is no file"),
        ("round-trip", "texts.csv", "--voice", "nobody", "--out", "o"): (2, "fits no voice"),
        ("round-trip", "texts.csv", "--out", "o", "--earlier", "good", *gates): (2, "speed"),
        ("round-trip", "texts.csv", "--out", "o", "--earlier", "nowhere"): (2, "holds no report"),
        ("round-trip", "own.csv", "--voice", "low", "--out", "own", *own): (0, ""),
        ("round-trip", "own.csv", "--out", "o"): (2, "as in --column text=satz"),
        ("round-trip", "numbers.csv", "--out", "o", *own[:2]): (
            2,
            "--column language=NAME or --language CODE",
        ),
        ("round-trip", "own.csv", "--voice", "nobody", "--out", "o", *own[:2]): (
            2,
            "language: en, by the texts",
        ),
        ("round-trip", "own.csv", "--out", "o", *own, "--column", "split=satz"): (
            2,
            "'satz' is given for 'text' and for 'split'",
        ),
        ("round-trip", "language=ja/none.csv", "--out", "o"): (2, "there is no file language=ja/none.csv"),
        ("voices", "own.csv", "--out", "o", "--column", "audio=satz"): (
            2,
            "columns are text, language, split",
        ),
        ("translation", "own.csv", "--out", "o", *own[:2]): (2, "--column source_lang=NAME or --source-lang"),
        ("round-trip", "texts.csv", "--out", "o", "--sample", 9): (2, "draw 2 or fewer, as in --sample 2"),
        ("recognition", "clips.csv", "--out", "o", "--noise-db", 200): (
            2,
            "error: --noise-db: noise_db is [200.0]",
        ),
        ("translation", "own.csv", "--out", "o", *sides): (0, "that takes references, or translations back."),
    }
    for command, (code, out, wrong), (expected, words) in zip(
        commands, study(*commands), commands.values(), strict=True
    ):
        assert "UserWarning" not in wrong
        told = " ".join([*out.split(), *wrong.split()])
        assert (code, words in told) == (expected, True), (command, told)
    assert evaluate.Report.load(root / "own").table["text"].tolist() == SAID
