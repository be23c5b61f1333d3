"""What studies refuse, in words that say what is allowed: each call and its error stand in ``refusals.md``."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import speechlab as sl
from evaluate.test_listening import KEY, answered, key_of, rows_of
from speechlab import evaluate
from speechlab.batch import Price
from support.planted import plant, right, study
from support.texts import check_refusals

REFUSALS = Path(__file__).with_name("refusals.md")
OPTIONS = {"Path": Path, "evaluate": evaluate, "float": float, "np": np, "pd": pd, "dict": dict}


@pytest.fixture(scope="module")
def lab():
    clip = sl.AudioClip(np.full(800, 0.1), 8_000)
    does = {
        "synthesize": lambda text: clip,
        "transcribe": lambda sound: "one",
        "translate": lambda text: text,
    }
    with sl.system("a", **does, voices={"ann": "en"}, version="1") as lab:
        yield lab


def check(part, folder=None, **names):
    check_refusals(REFUSALS, part, folder, **OPTIONS, **names)


def listen(data=None, key=KEY, **options):
    """Evaluate answers, of which one may have been changed."""
    return evaluate.listening(answered() if data is None else data, key, **options)


def change(**changes):
    """Answers whose second one has other contents."""
    data = answered()
    data["answers"][1] |= changes
    return data


def test_of_listening(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 200_000)
    rated = rows_of({("ann", item, "one"): 4 for item in range(3)})

    def empty(column):
        frame = rated.astype({column: "object"})
        frame.loc[1, column] = None
        return frame

    helpers = {"listen": listen, "answered": answered, "KEY": KEY, "change": change, "rated": rated}
    check("listening", tmp_path, deep=tmp_path, empty=empty, first=answered()["answers"][0], **helpers)


def test_of_listening_power():
    def power(key=None, scores=None, listeners=8, **options):
        given = {"good": 4, "bad": 3} if scores is None else scores
        return evaluate.listening_power(key or key_of(), given, listeners=listeners, **options)

    check("listening power", power=power, key_of=key_of)


def test_of_outputs_that_exist(tmp_path):
    frame = plant(6, a=right, b=right)
    prices = {"a": Price(per_hour=0.9, currency="EUR"), "b": Price(per_hour=0.3, currency="EUR")}
    texts = pd.DataFrame({"text": ["a"], "source_lang": "en", "target_lang": "ja", "x": ["B"]})
    names = {"study": study, "frame": frame, "texts": texts, "prices": prices, "Price": Price}
    names |= {"report": study(frame, "a"), "translate": evaluate.translation}
    check("outputs that exist", tmp_path, **names)


def test_of_what_a_service_would_be_asked(tmp_path, lab):
    sounds = pd.DataFrame(
        {"audio": [sl.AudioClip(np.full(800, 0.1), 8_000)], "text": "one", "language": "en"}
    )
    texts = pd.DataFrame({"text": ["one"], "language": "en"})
    half = texts.assign(text=pd.Series(["half \ud83d"], dtype=object))
    twice = pd.concat([texts, texts[["text"]]], axis=1)
    both = texts.assign(source_lang="en", target_lang="ja")
    named = tmp_path / "named.csv"
    sounds["audio"][0].save(tmp_path / "a.wav")
    named.write_text("path,words\na.wav,おはよう\n", "utf-8")
    how = {"store": tmp_path, "progress": False}
    names = {
        "recognition": lambda frame=sounds, lab=lab, **options: evaluate.recognition(
            lab, frame, **how, **options
        ),
        "voices": lambda frame=texts, lab=lab, **options: evaluate.voices(lab, frame, **how, **options),
        "translation": lambda frame=both, lab=lab, **options: evaluate.translation(
            lab, frame, **how, **options
        ),
        "readings": lambda frame=texts, voice="ann", **options: evaluate.readings(
            lab, frame, voice, **options
        ),
        "round_trip": lambda frame=texts, lab=lab, **options: evaluate.round_trip(
            lab, frame, **how, **options
        ),
        "latency": lambda texts="One.", lab=None, **options: evaluate.latency(lab, texts, "ann", **options),
    }
    check(
        "services",
        tmp_path,
        lab=lab,
        sounds=sounds,
        texts=texts,
        half=half,
        twice=twice,
        both=both,
        named=named,
        **names,
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_of_published_predictions(tmp_path):
    def audit(**files):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in files.items():
            path = folder / "_".join(name.split("_")[:-1]).replace("_", "/")
            path = path.with_suffix(f".{name.split('_')[-1]}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        folder.mkdir(exist_ok=True)
        return evaluate.audit(folder)

    check("audits", tmp_path, audit=audit)
