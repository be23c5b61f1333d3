"""Arguments of the wrong kind are refused by name."""

from functools import partial

import numpy as np
import pytest

from speechlab import segments
from speechlab.audio import AudioClip, concatenate, decode
from support.arguments import list_accepted

TABLE = segments.frame([(0.0, 0.2, "a b"), (0.3, 0.4, "c")], file="a.wav").assign(speaker=["x", "y"])
CLIP = AudioClip(np.random.default_rng(0).normal(0, 0.1, 8_000).astype("f4"), 16_000)
ONE, TWO = {"table": TABLE}, {"a": TABLE, "b": TABLE, "by": None}
OF_SPEECH = ("min_silence_gap", "segment_padding", "initial_segment_padding_ms", "speech_pad_ms")


def functions(folder):
    path = folder / "a.srt"
    segments.write(TABLE, path)
    return {
        "align": (segments.align, {**TWO, "how": "all", "suffix": "_b"}),
        "captions": (
            segments.captions,
            {**ONE, "line_width": 42, "lines": 2, "longest_s": 7.0, "pace": None},
        ),
        "coverage": (segments.coverage, {**ONE, "extent": 9.0}),
        "crop": (segments.crop, {**ONE, "extent": 9.0, "edges": "cut"}),
        "doubts": (segments.doubts, ONE),
        "equal": (segments.equal, {"first": TABLE, "second": TABLE}),
        "frame": (segments.frame, {"data": TABLE, "file": "a"}),
        "from_seglst": (segments.from_seglst, {"data": segments.to_seglst(TABLE)}),
        "from_speech": (
            segments.from_speech,
            {"speech": TABLE, "extent": 9.0, "min_segment_duration": 1.5, **dict.fromkeys(OF_SPEECH, 100)},
        ),
        "gaps": (segments.gaps, {**ONE, "extent": 9.0}),
        "keys": (segments.keys, ONE),
        "merge": (segments.merge, {**ONE, "gap": 0.0, "by": ()}),
        "overlap_join": (segments.overlap_join, TWO),
        "read": (partial(segments.read, path), {"format": None, "unit": None, "file": None}),
        "resegment": (segments.resegment, {**ONE, "reference": TABLE}),
        "score": (
            segments.score,
            {"reference": TABLE, "hypothesis": TABLE, "extent": 9.0, "collar": 0.25, "by_speaker": False},
        ),
        "shift": (segments.shift, {**ONE, "by": 1.0}),
        "split": (segments.split, {**ONE, "gap": 0.1, "by": ()}),
        "subtract": (segments.subtract, {**ONE, "other": TABLE}),
        "to_records": (segments.to_records, ONE),
        "write": (partial(segments.write, path=path), {**ONE, "format": None}),
        "concatenate": (concatenate, {"clips": [CLIP], "gap_s": 0.1}),
        "decode": (decode, {"data": CLIP.encode("wav")}),
    }


ACCEPTED = {
    **dict.fromkeys(("data", "first", "other", "second", "speech", "table"), "[]"),
    **dict.fromkeys(OF_SPEECH, "0 2 5"),
    **dict.fromkeys(("collar", "gap", "gap_s", "min_segment_duration"), "0 2 5 1.5"),
    **dict.fromkeys(("line_width", "lines"), "2 5"),
    **dict.fromkeys(("format", "unit"), "None"),
    "by": "None []",
    "by_speaker": "True",
    "extent": "None 0 2 5 1.5",
    "file": "None x empty",
    "longest_s": "2 5 1.5",
    "pace": "None 2 5 1.5",
    "suffix": "x",
}
ACCEPTED_BY = {
    ("crop", "extent"): "0 2 5 1.5",
    ("decode", "data"): "",
    ("from_speech", "extent"): "None 2 5 1.5",  # speech ends after 0 s
    ("merge", "by"): "[]",
    ("score", "hypothesis"): "[]",
    ("score", "reference"): "[]",
    ("shift", "by"): "0 2 5 1.5",
    ("split", "by"): "[]",
}


@pytest.mark.slow
def test_wrong_arguments_are_refused_by_name(tmp_path):
    taken, expected = {}, {}
    for name, (function, good) in functions(tmp_path).items():
        function(**good)
        taken |= {(name, argument): labels for argument, labels in list_accepted(function, good).items()}
        expected |= {(name, a): ACCEPTED_BY.get((name, a), ACCEPTED.get(a, "")) for a in good}
    assert taken == expected
