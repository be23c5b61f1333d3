"""``speechlab study``: its options, what it prints, and the status that it ends with."""

import json
import os
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.metrics import score
from support.clients import KEY
from support.forked import script
from support.openai_server import KEY as OPENAI_KEY
from support.openai_server import openai_server
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
    with serving(("low", "high", "heart")) as staged:
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
        "SPEECHLAB_API_KEY_OTHERS": OPENAI_KEY,
        "SPEECHLAB_API_KEY_THE_STRANGERS": "a-key-that-nobody-knows",
        "SPEECHLAB_STORE": str(root / "store"),
    }

    def run(*commands):
        given = json.dumps([list(map(str, command)) for command in commands])
        done = script(DRIVER, given, env={**os.environ, **where, "COLUMNS": "80"}, cwd=root)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    texts = pd.DataFrame({"text": SAID, "language": "en"})
    (root / "mine").mkdir()
    paths = [
        str(served.lab.synthesize(text, voice="low").save(root / "mine" / f"{number}.wav"))
        for number, text in enumerate(SAID)
    ]
    for number, text in enumerate(SAID):
        (root / "mine" / f"{number}.txt").write_text(text, "utf-8")
    tables = {
        "texts": texts,
        "clips": texts.assign(audio=paths),
        "clip": texts.head(1).assign(audio=paths[:1]),
        "both": texts.assign(source_lang="en", target_lang="ja", reference="x"),
        "own": texts.rename(columns={"text": "satz", "language": "sprache"}),
        "made": texts.assign(text=SAID[0], wav=paths, who=["anna", "bert"]),
        "few": pd.DataFrame({"text": ["会議室。"], "source_lang": "ja", "target_lang": "en"}),
        "terms": pd.DataFrame({"term": ["会議室"] * 2, "target": ["meeting room", "conference room"]}),
        "bad": pd.DataFrame({"a": [], "b": []}),
        "numbers": pd.DataFrame({"satz": ["12", "34"], "sprache": "en"}),
        "empty": pd.DataFrame({"text": ["Good morning.", " "], "language": "en"}),
    }
    for name, table in tables.items():
        table.to_csv(root / f"{name}.csv", index=False)
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
        assert max(len(line) for line in table if not line.endswith(".")) <= 80
    alone = " ".join(outs[0][1].split())
    assert "All rows: voice all recordings, English, 95% interval needs 19 more" in alone
    assert "counted in words" in alone
    assert "All rows: group all recordings, en, verdict no difference shown" in outs[-1][1].splitlines()
    answer = evaluate.Report.load(study.root / "v").answer
    assert " ".join(answer.split()) in " ".join(outs[2][1].split())


TITLES = {"Recognition", "Which voice?", "Translation", "What changed"}


@pytest.mark.slow
def test_services_settings_and_tables_of_every_kind(study, served):
    setting = ("--setting", 'skipping={"vad": "on"}', "--hotword", "letter", "--hotword", "morning")
    strangers = ("--service", "ours=", "--service", f"the strangers={served.base_url}")
    with openai_server(served) as (_, address):
        sides = ("--service", "ours=", "--service", f"others={address}")
        spoken = ("--openai", 'others={"speech": "tts-1", "voices": ["alloy"]}')
        named = (*sides, *spoken, "--voice", "ours=low", "--voice", "others=alloy")
        outs = study(
            ("recognition", "mine"),
            ("recognition", "clip.csv", "--out", "sides", *strangers, *setting),
            ("voices", "texts.csv", "--out", "kinds", "--speed", 1, "--dnsmos", 0, *named),
            ("round-trip", "texts.csv", "--out", "trip", *named),
            ("voices", "texts.csv", "--out", "o", *sides, *spoken, "--voice", "heart"),
            ("round-trip", "made.csv", "--out", "made", *MADE, "--service", "ears="),
            ("translation", "few.csv", "--out", "ways", *TERMS, "--keyword", "API", "--context", "A plan."),
            ("recognition", "clips.csv", "--out", "noisy", "--noise-db", 0, *NOISY),
            (
                "recognition",
                "mine",
                "--out",
                "now.html",
                "--earlier",
                "mine-recognition",
                "--fail-if",
                "worse",
            ),
        )
    assert [code for code, *_ in outs] == [0, 1, 0, 0, 2, 0, 0, 0, 0], outs
    told = [" ".join(f"{out} {wrong}".split()) for _, out, wrong in outs]
    texts, sides, kinds, _, wrong, _, ways, _, now = told
    names = ("mine-recognition", "sides", "kinds", "trip", "made", "ways", "noisy")
    reports = {name: evaluate.Report.load(study.root / name) for name in names}
    assert "language: en, by the texts; --language says another one" in texts
    assert reports["mine-recognition"].table["error_rate"].notna().all()
    systems = [f"{name}, {way}" for name in ("ours", "the strangers") for way in ("skipping", "hotwords")]
    assert reports["sides"].systems == systems
    assert reports["sides"].table["status"].isin(["ok", "cached"]).tolist() == [True, True, False, False]
    assert "the strangers, hotwords could not be asked" in sides
    settings = reports["sides"].record["settings"]["systems"]
    assert settings["ours, hotwords"]["hotwords"] == ["letter", "morning"]
    assert (
        set(reports["kinds"].summary["system"])
        == set(reports["trip"].summary["system"])
        == {"ours", "others"}
    )
    assert reports["kinds"].summary["timed_calls"].tolist() == [1, 1]
    assert set(reports["kinds"].table["engine"]) == {"tone", "tts-1"}
    assert "tts-1: alloy of others" in kinds
    assert "--voice ours=heart" in wrong
    assert not {"a-key-that-nobody-knows", OPENAI_KEY} & {word for one in outs for word in str(one).split()}
    assert sorted(reports["made"].summary["voice_name"]) == ["anna", "bert"]
    assert reports["made"].summary["ranking_rate"].notna().all()
    assert reports["ways"].table["system"].tolist() == ["plain", "keywords", "context"]
    assert reports["ways"].table["terms_expected"].tolist() == [1, 1, 1]
    assert "keywords instead of plain, ja → en: texts with terms, terms kept 0.0% to 0.0%" in ways
    conditions = ["as recorded", "noise 0 dB", "300 to 3400 Hz"]
    assert reports["noisy"].table["condition"].drop_duplicates().tolist() == conditions
    assert reports["noisy"].tables["speechless"]["hallucination"].notna().all()
    assert "No difference shown: all recordings, en" in now
    assert (study.root / "now.html").stat().st_size > 10_000


MADE = ("--audio-column", "wav", "--voice-column", "who")
TERMS = ("--glossary", "terms.csv")
NOISY = ("--noise", "white", "--band", "300-3400", "--speechless", 1)
OWN = ("--column", "text=satz", "--column", "language=sprache")
GATES = ("--fail-if", "worse", "--fail-if", "slower")
WAYS = (*OWN[:2], "--source-lang", "en", "--target-lang", "ja", "--setting", "a=", "--setting", "b=")
ENDS = {
    ("compare", "bad", "good"): (0, ""),
    ("compare", "bad", "good", *GATES): (4, "nothing can be said of speed"),
    ("compare", "good", "bad", *GATES): (2, "nothing can be said of speed"),
    ("compare", "good", "other"): (2, "earlier and now have no row in common"),
    ("compare", "good", "other", "--fail-if", "worse"): (2, "no row is in both reports"),
    ("recogniton", "clips.csv"): (2, "Did you mean 'recognition'?"),
    ("compare", "good", "broken"): (1, "cannot be read"),
    ("round-trip", "empty.csv", "--voice", "low", "--out", "o"): (1, "1 of 2 rows failed"),
    ("round-trip", "own.csv", "--voice", "low", "--out", "own", *OWN): (0, ""),
    ("round-trip", "nowhere.csv", "--out", "o"): (2, "there is no file"),
    ("round-trip", "texts.csv", "--voice", "nobody", "--out", "texts.csv"): (2, "names neither a page"),
    ("round-trip", "texts.csv", "--voice", "nobody", "--out", "o"): (2, "fits no voice"),
    ("round-trip", "texts.csv", "--out", "o", "--earlier", "nowhere"): (2, "holds no report"),
    ("round-trip", "texts.csv", "--out", "o", "--fail-if", "worse"): (2, "give --earlier REPORT"),
    ("round-trip", "texts.csv", "--out", "o", "--junit", "gone/file"): (2, "there is no folder gone"),
    ("round-trip", "own.csv", "--out", "o"): (2, "as in --column text=satz"),
    ("round-trip", "own.csv", "--voice", "nobody", "--out", "o", *OWN[:2]): (2, "language: en, by the texts"),
    ("round-trip", "numbers.csv", "--out", "o", *OWN[:2]): (2, "--column language=NAME or --language CODE"),
    ("round-trip", "made.csv", "--out", "o", *MADE[2:]): (2, "give --audio-column as well"),
    ("voices", "own.csv", "--out", "o", "--column", "audio=satz"): (2, "columns are text, language, split"),
    ("recognition", "clips.csv", "--out", "o", "--noise-db", 200): (2, "--noise-db: noise_db is [200.0]"),
    ("recognition", "clips.csv", "--out", "o", "--band", "wide"): (2, "as in --band 300-3400"),
    ("recognition", "clip.csv", "--out", "o", "--service", "b b=http://x"): (2, "set SPEECHLAB_API_KEY_B_B"),
    ("recognition", "clips.csv", "--out", "o", "--hypothesis", "a=out/a"): (2, "neither a column nor a file"),
    ("recognition", "clips.csv", "--out", "o", "--setting", "a={"): (2, "is no JSON"),
    ("translation", "own.csv", "--out", "o", *OWN[:2]): (2, "--column source_lang=NAME or --source-lang"),
    ("translation", "own.csv", "--out", "ways", *WAYS): (0, "that takes references, or translations back."),
    ("translation", "few.csv", "--out", "o", "--glossary", "bad.csv"): (2, "no column 'term'"),
    ("translation", "few.csv", "--out", "o", "--openai", 'a={"model": "x"}'): (2, "there is no 'model'"),
}


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
    for command, (code, out, wrong), (expected, words) in zip(ENDS, study(*ENDS), ENDS.values(), strict=True):
        assert "UserWarning" not in wrong
        told = " ".join([*out.split(), *wrong.split()])
        assert (code, words in told) == (expected, True), (command, told)
    assert evaluate.Report.load(root / "own").table["text"].tolist() == SAID
    shutil.rmtree(root / "o")  # of the one that failed in part
    assert evaluate.Report.load(root / "ways").systems == ["a", "b"]
