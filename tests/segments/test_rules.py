"""The contract's rules offline: against the recognizer's own arithmetic, and against the real service."""

import inspect
import random

import numpy as np
import pytest

from speechlab import segments
from speechlab.audio import compute_merged_span_indices, widen_spans
from speechlab.contract import RecognitionRequest
from speechlab.errors import SegmentError


def by_the_recognizer(spans, duration, rules):
    """The steps as the recognizer takes them, for spans that are parted by the wanted gap already."""
    if not len(spans):
        return spans
    pad, margin = rules["speech_pad_ms"] / 1000, rules["segment_padding"] / 1000
    starts, ends = widen_spans(*spans.T, pad, pad, duration)
    first, last = compute_merged_span_indices(starts, ends, rules["min_segment_duration"])
    starts, ends = starts[first], ends[last]
    before = np.full(len(starts), margin)
    onset = next(start for start, end in spans if end > starts[0])
    before[0] = max(0.0, rules["initial_segment_padding_ms"] / 1000 - (onset - starts[0]))
    return np.stack(widen_spans(starts, ends, before, margin, duration), axis=1)


def make_speech(chance):
    """Return speech of some recordings, in order and apart, and the length of each."""
    files = {}
    for number in range(12):
        edges = sorted(chance.sample(range(20_001), 2 * chance.randrange(13)))
        files[f"{number}.wav"] = np.reshape(edges, (-1, 2)) / 1000
    rests = chance.choices([0.0, 0.25, 10.0], k=len(files))
    return files, {
        name: (spans[-1, 1] if len(spans) else 0.0) + rest
        for (name, spans), rest in zip(files.items(), rests, strict=True)
    }


RULES = {
    "min_silence_gap": [0, 100, 400, 2000],
    "segment_padding": [0, 100, 1000, 5000],
    "initial_segment_padding_ms": [0, 100, 1500, 5000],
    "speech_pad_ms": [0, 30, 200, 1000],
    "min_segment_duration": [0.0, 0.5, 1.5, 30.0],
}


BARE = dict.fromkeys(
    ("segment_padding", "initial_segment_padding_ms", "speech_pad_ms", "min_segment_duration"), 0
)


@pytest.mark.parametrize("seed", range(12))
def test_from_speech_computes_as_the_recognizer(seed):
    chance = random.Random(seed)
    files, lengths = make_speech(chance)
    rules = {name: chance.choice(values) for name, values in RULES.items()}
    rows = [
        {"file": name, "start": start, "end": end} for name, spans in files.items() for start, end in spans
    ]
    made = segments.from_speech(segments.frame(rows), extent=lengths, **rules)
    for name, spans in files.items():
        parted = []
        for start, end in spans:
            if parted and round((start - parted[-1][1]) * 1000) < rules["min_silence_gap"]:
                parted[-1][1] = end
            else:
                parted.append([start, end])
        wanted = by_the_recognizer(np.reshape(parted, (-1, 2)), lengths[name], rules)
        found = made[made["file"] == name][["start", "end"]].to_numpy()
        assert found == pytest.approx(wanted, abs=1.1e-6), (name, rules)
    assert not len(segments.overlap_join(made, made).query("left != right"))
    assert (made["end"] >= made["start"]).all()


def test_defaults_are_the_contract_s():
    parameters = inspect.signature(segments.from_speech).parameters
    names = set(parameters) - {"speech", "extent"}
    assert len(names) == 5
    for name in names:
        assert parameters[name].default == RecognitionRequest.model_fields[name].default


@pytest.mark.slow
@pytest.mark.timeout(20)  # of half a second; it is a minute where each merge moves all that follows
def test_merging_takes_time_as_there_are_segments():
    starts = np.arange(300_000.0)
    first, last = compute_merged_span_indices(starts, starts + 0.01, 1e9)
    assert (first.tolist(), last.tolist()) == ([0], [299_999])


def test_texts_go_along_and_what_has_none_is_dropped():
    table = segments.frame([(1.0, 1.2, "a"), (1.3, 2.0, "b"), (5.0, 7.0, ""), (9.0, 12.0, "c")])
    made = segments.from_speech(table, **BARE)
    assert made[["start", "end", "text"]].values.tolist() == [[1.0, 2.0, "a b"], [9.0, 12.0, "c"]]
    silent = segments.from_speech(table.assign(text=""), **BARE)
    assert len(silent) == 3


def test_what_is_refused():
    table = segments.frame([(1.0, 2.0)], file="a")
    with pytest.raises(SegmentError, match=r"row 0 ends at 2 s, but 'a' is only 1.5 s long"):
        segments.from_speech(table, extent=1.5)


@pytest.mark.engines
def test_the_real_service_says_the_same(lab):
    from speechlab.audio import concatenate

    parts = [
        lab.synthesize(text, voice="heart")
        for text in ("Good morning, everybody.", "The weather is fine.", "See you tomorrow.")
    ]
    clip = concatenate(parts, gap_s=1.0)
    heard = lab.transcribe(clip, language="en", vad="segments", **BARE)
    speech_found = segments.frame(heard.segments, file="talk")
    assert len(speech_found) >= 3
    for rules in (
        {},
        {"segment_padding": 300, "initial_segment_padding_ms": 200},
        {"speech_pad_ms": 0, "min_segment_duration": 0.0},
        {"min_segment_duration": 30.0},
    ):
        wanted = lab.transcribe(clip, language="en", vad="segments", **rules).segments
        made = segments.from_speech(speech_found, extent=clip.duration_s, **rules)
        assert made[["start", "end"]].to_numpy() == pytest.approx(
            wanted[["start", "end"]].to_numpy(), abs=0.0021
        )
