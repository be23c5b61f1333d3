"""Listening tests: answers are read with their key, screened, and compared with honest chances."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from speechlab import evaluate
from speechlab.audio import AudioClip
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._listening.statistics import (
    bootstrap_two_way,
    compute_binomial_p,
    compute_detectable_difference,
    count_answers_for_excess,
    count_more_needed,
    estimate_two_way_mean,
)
from speechlab.listening import estimate_pair_scale

NAMES = ("one", "two")
HOSTILE = "<img src=x onerror='window.fired=1'> $5 and $6 \u202e"
KEY = {
    "format": "speechlab listening key 1",
    "test": "0a1b",
    "title": "Voices",
    "method": "mos",
    "question": "How natural?",
    "seed": 1,
    "systems": ["one", HOSTILE],
    "trials": [
        {"id": "t1", "role": "test", "item": "a", "sounds": {"s1": "one"}},
        {"id": "t2", "role": "test", "item": "a", "sounds": {"s2": HOSTILE}},
        {"id": "t3", "role": "check", "item": "a", "sounds": {"s3": "noise"}},
        {"id": "t0", "role": "training", "item": "b", "sounds": {"s0": "one"}},
    ],
}


def answered(listener="ann", *, check=1, started="2026-01-01", finished="2026-01-02", **changes):
    scores = {"t0": ("s0", 3), "t1": ("s1", 4), "t2": ("s2", 2), "t3": ("s3", check)}
    answers = [
        {"trial": trial, "order": order, "sounds": [sound], "scores": {sound: score}, "time_s": 2.5}
        | {"plays": {sound: 2}}
        for order, (trial, (sound, score)) in enumerate(scores.items(), 1)
    ]
    return {
        "format": "speechlab listening answers 1",
        "test": "0a1b",
        "listener": listener,
        "started": started,
        "finished": finished,
        "answers": answers,
        **changes,
    }


def rows_of(scores, method="mos", role="test", **more):
    """A tidy frame of scores by (listener, item, system) or (listener, item, system, other)."""
    made = []
    for order, (names, score) in enumerate(scores.items()):
        listener, item, system, *other = map(str, names)
        row = {"listener": listener, "item": item, "system": system, "other": other[0] if other else None}
        row |= {"question": "?", "score": float(score), "choice": None, "order": order + 1, "position": 1}
        row |= {"time_s": 1.0, "plays": 1, "attention": None, "role": role, "method": method, "test": "x"}
        made.append({**row, "trial": f"t{item}{system}", "session": "s", "finished": True, **more})
    return pd.DataFrame(made)


def rate(score, listeners, items, systems):
    """A tidy frame of scores, which are a function of the numbers of the listener, the item and the system."""
    cells = itertools.product(range(listeners), range(items), enumerate(systems))
    return rows_of({(who, item, name): score(who, item, at) for who, item, (at, name) in cells})


# -- reading


def test_a_file_and_its_key_become_a_tidy_table(tmp_path):
    (tmp_path / "ann.json").write_text(json.dumps(answered(HOSTILE)))
    (tmp_path / "test.key.json").write_text(json.dumps(KEY))
    table = evaluate.listening_answers(tmp_path, tmp_path / "test.key.json")
    columns = ["listener", "system", "score", "role", "attention", "order", "plays"]
    assert table[columns].to_numpy().tolist() == [
        [HOSTILE, "one", 4, "test", pd.NA, 2, 2],
        [HOSTILE, HOSTILE, 2, "test", pd.NA, 3, 2],
        [HOSTILE, "noise", 1, "check", True, 4, 2],
    ]


def test_files_as_editors_and_packers_leave_them_are_read(tmp_path):
    text = json.dumps(answered())
    (tmp_path / "._ann.json").write_bytes(b"\x00\x05\x16\x07")
    for data in (text.encode("utf-8-sig"), text.encode("utf-16"), b"\xfe\xff" + text.encode("utf-16-be")):
        (tmp_path / "ann.json").write_bytes(data)
        assert len(evaluate.listening_answers(tmp_path, KEY)) == 3
    (tmp_path / "ann.json").write_text(text[:200])
    with pytest.raises(
        InvalidRequestError, match=r"ann\.json holds no answers.*ask its listener for it once more"
    ):
        evaluate.listening_answers(tmp_path, KEY)


def test_abx_is_answered_by_one_of_two():
    key = {**KEY, "method": "abx", "systems": ["one", "two"]}
    sounds = {"a": "one", "b": "two", "x": "two"}
    key["trials"] = [{"id": "t1", "role": "test", "item": "i", "sounds": sounds, "right": "b"}]
    answer = {"trial": "t1", "order": 1, "sounds": ["x", "b", "a"], "time_s": 1.0}
    table = evaluate.listening_answers(answered(answers=[{**answer, "choice": "b"}]), key)
    found = table[["system", "other", "choice", "score", "position"]].values.tolist()
    assert found == [["one", "two", "two", 1.0, 1]]


# -- screening


def test_the_report_says_who_was_excluded_and_why():
    twice = [answered("ann"), answered("ann"), answered("ann", started="2026-02-01")]
    files = [*twice, answered("bob", check=5), answered("cid", finished=None)]
    report = evaluate.listening(files, KEY, draws=200)
    told = "\n".join(map(str, report.findings))
    assert "given twice and count once: 'ann'" in told
    assert "later sessions of listeners who had answered before are excluded: 'ann'" in told
    assert "'bob' is excluded: attention: 1 of 1 checks failed" in told
    assert "did not finish; their answers count: 'cid'" in told
    listeners = report.tables["listeners"].set_index("listener")
    assert listeners["excluded"].tolist() == ["", "attention: 1 of 1 checks failed", ""]
    assert listeners.loc["ann", "answers"] == 2
    assert report.summary.set_index("system").loc["one", "answers"] == 2
    forgiving = evaluate.listening(files, KEY, draws=200, max_failed_checks=1)
    assert forgiving.summary.set_index("system").loc["one", "answers"] == 3


def mushra(listener, reference, middle, items=20):
    scores = {
        "codec": lambda _: 60,
        "reference": reference,
        "anchor 3.5 kHz": lambda _: 20,
        "anchor 7 kHz": middle,
    }
    parts = [
        rows_of({(listener, item, system): score(item) for item in range(items)}, "mushra", role)
        for (system, score), role in zip(
            scores.items(), ("test", "reference", "anchor", "anchor"), strict=True
        )
    ]
    return pd.concat(parts)


@pytest.mark.slow
def test_mushra_listeners_are_screened_by_the_recommendation():
    fine = [mushra(f"l{n}", lambda _: 95, lambda _: 50) for n in range(8)]
    three = mushra("three", lambda item: 80 if item < 3 else 100, lambda _: 50)  # 15%, which is allowed
    deaf = mushra("deaf", lambda item: 89 if item < 4 else 100, lambda _: 50)
    lavish = mushra("lavish", lambda _: 100, lambda item: 91 if item < 4 else 40)
    report = evaluate.listening([*fine, three, deaf, lavish], draws=200)
    excluded = report.tables["listeners"].set_index("listener")["excluded"]
    assert excluded[excluded != ""].to_dict() == {
        "deaf": "hidden reference below 90 in 20% of the items (BS.1534-3)",
        "lavish": "anchor above 90 in 20% of the items (BS.1534-3)",
    }
    assert len(report.differences) == 0
    assert report.summary["role"].tolist() == ["reference", "test", "anchor", "anchor"]
    # where more than a quarter rate an anchor so high, it excludes nobody
    same = [mushra(f"l{n}", lambda _: 95, lambda item: 95 if item < 4 else 40) for n in range(4)]
    report = evaluate.listening([*same, *fine[4:]], draws=200)
    assert (report.tables["listeners"]["excluded"] == "").all()
    assert any("hardly worse than the reference" in str(one) for one in report.findings)


# -- figures that are known


def test_agreement_is_krippendorff_s():
    """Source: K. Krippendorff, Computing Krippendorff's alpha-reliability (2011), part C: 0.743, 0.815, 0.849."""
    rated = ("123321412***", "1233224125*3", "*3332342251*", "12332441251*")
    scores = {
        (listener, item, "one"): float(value)
        for listener, row in enumerate(rated)
        for item, value in enumerate(row)
        if value != "*"
    }
    pairs = {(*names, "two"): value for names, value in scores.items()}
    for method, values, alpha in (("mos", scores, 0.815), ("mushra", scores, 0.849), ("ab", pairs, 0.743)):
        found = evaluate.listening(rows_of(values, method), draws=100).record["agreement"]
        assert round(found, 3) == alpha, method


def test_a_difference_of_listeners_alone_is_student_s_paired_t():
    by = [0.5, 1.0, -0.25, 0.75, 0.5, 0.0, 1.25, 0.25]
    rated = rate(lambda who, _, system: 3 + by[who] * (system == 0), 8, 8, NAMES)
    (pair,) = evaluate.listening(rated, draws=100).differences.to_dict("records")
    assert pair["difference"] == pytest.approx(0.5)
    assert pair["p"] == pytest.approx(0.02546, abs=2e-5)  # t = 2.8284 with 7 degrees of freedom
    assert (pair["low"], pair["high"]) == pytest.approx((0.0820, 0.9180), abs=1e-4)


def test_holm_is_over_pairs_and_few_listeners_show_nothing():
    rated = rate(lambda who, item, system: 3 + system + 0.1 * ((who + item) % 2), 5, 10, "abc")
    pairs = evaluate.listening(rated, draws=100).differences
    assert pairs[["p", "p_holm"]].to_numpy().tolist() == [[0.0625, 0.1875]] * 3
    assert set(pairs["verdict"]) == {"no difference shown"}
    rated = rate(lambda who, item, system: 3 + system + 0.2 * ((who * item + system) % 3), 9, 5, "ab")
    (pair,) = evaluate.listening(rated, draws=100).differences.to_dict("records")
    assert (pair["more_listeners"], pair["more_items"]) == (math.inf, 1)  # no listeners make up for items


def test_abx_is_the_exact_binomial_test():
    scores = {(n % 4, n // 4, "one", "two"): n < 15 for n in range(20)}
    report = evaluate.listening(rows_of(scores, "abx"), draws=100)
    (pair,) = report.differences.to_dict("records")
    assert (pair["p"], pair["difference"]) == pytest.approx((0.020695, 0.25), abs=1e-6)  # 15 of 20 tosses
    assert "exact binomial test" in report.methods().text
    assert report.summary[["system", "mean"]].to_numpy().tolist() == [["one or two", 0.75]]


def test_preference_counts_no_preference_as_half():
    scores = {(n, item, "one", "two"): [1, 1, 0, -1][n % 4] for n in range(8) for item in range(6)}
    report = evaluate.listening(rows_of(scores, "ab"), draws=200)
    assert report.summary.set_index("system")["mean"].to_dict() == {"one": 0.625, "two": 0.375}
    assert report.differences["difference"].tolist() == [0.25]
    share, pair = report.summary.set_index("system").loc["one"], report.differences.iloc[0]
    assert [share["low"], share["high"]] == pytest.approx([(1 + pair["low"]) / 2, (1 + pair["high"]) / 2])


def test_intervals_of_differences_stay_within_what_is_possible():
    """Of three listeners; two have none, since Student's t has one degree of freedom."""
    for listeners, ends in ((3, (-4, 4)), (2, (math.nan, math.nan))):
        rated = rate(lambda who, _, system: [(5, 1), (1, 5), (3, 3)][who][system], listeners, 3, NAMES)
        (pair,) = evaluate.listening(rated, draws=200).differences.to_dict("records")
        assert (pair["low"], pair["high"]) == pytest.approx(ends, nan_ok=True)


# -- chance


def simulated(rng, pairs, listeners, items, spread, shift=0.0):
    """Values for many pairs, of which listeners, items and answers vary."""
    by_listener, by_item, by_answer = spread
    return (
        shift
        + by_listener * rng.standard_normal((pairs, listeners, 1))
        + by_item * rng.standard_normal((pairs, 1, items))
        + by_answer * rng.standard_normal((pairs, listeners, items))
    ).round(1)


def compared(values):
    """The test of each pair, as a report makes it of its answers."""
    _, listeners, items = values.shape
    listener, item = (place.ravel() for place in np.indices((listeners, items)))
    for pair in values:
        mean = float(pair.mean())
        yield estimate_two_way_mean(mean, (pair.ravel() - mean) / pair.size, listener, item)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("listeners", "items", "spread"),
    [(8, 8, (0.5, 0.5, 1)), (8, 20, (0.3, 1, 1)), (6, 6, (1, 0, 1))],
)
def test_at_most_six_in_a_hundred_find_what_is_not_there(listeners, items, spread):
    rng = np.random.default_rng(7)
    values = np.sign(simulated(rng, 2_000, listeners, items, spread))  # zeros are no preference
    found = list(compared(values))
    assert np.mean([one.p < 0.05 for one in found]) <= 0.06
    assert np.mean([not one.low <= 0 <= one.high for one in found]) <= 0.06


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pilot", "spread", "shift"), [((12, 20), (0.5, 0.15, 1.0), 0.3), ((8, 10), (0.5, 0.1, 0.6), 0.4)]
)
def test_the_advice_on_listeners_finds_what_it_promises(pilot, spread, shift):
    rng = np.random.default_rng(3)
    tried = compared(simulated(rng, 300, *pilot, spread))
    enough = pilot[0] + round(np.median([count_more_needed(one, shift)[0] for one in tried]))
    assert 15 < enough < 50
    found = list(compared(simulated(rng, 1_000, enough, pilot[1], spread, shift)))
    assert 0.76 < np.mean([one.p < 0.05 for one in found]) < 0.88


@pytest.mark.slow
def test_what_a_test_can_find_it_finds_in_eight_of_ten():
    rng = np.random.default_rng(4)
    spread = (0.4, 0.2, 0.8)
    size = np.median(
        [compute_detectable_difference(one) for one in compared(simulated(rng, 500, 14, 10, spread))]
    )
    found = list(compared(simulated(rng, 1_000, 14, 10, spread, size)))
    assert 0.76 < np.mean([one.p < 0.05 for one in found]) < 0.88


def test_the_advice_for_abx_is_that_of_the_exact_test():
    rng = np.random.default_rng(2)
    for above in (0.1, 0.15, 0.25, 0.5):
        asked = count_answers_for_excess(above)
        chances = {right: compute_binomial_p(right, asked) for right in range(asked + 1)}
        found = np.mean([chances[right] < 0.05 for right in rng.binomial(asked, 0.5 + above, 4_000)])
        assert 0.78 < found < 0.86 or above == 0.5
        assert np.mean([chances[right] < 0.05 for right in rng.binomial(asked, 0.5, 4_000)]) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("spread", [(0.7, 0, 0.6), (0.3, 0.3, 1)])
def test_intervals_cover_the_truth(spread):
    rng = np.random.default_rng(11)
    listener, item = (place.ravel() for place in np.indices((10, 12)))
    drawn = simulated(rng, 1_000, 10, 12, spread)
    differences = np.mean([one.low <= 0 <= one.high for one in compared(drawn)])
    assert 0.93 <= differences <= 0.975
    ends = [bootstrap_two_way(3 + values.ravel(), listener, item, draws=300, seed=1) for values in drawn]
    # of means they are rather too wide, the more the less listeners and items differ
    assert np.mean([low <= 3 <= high for low, high in ends]) >= 0.94


# -- the report


@pytest.mark.slow
def test_the_report_draws_shows_and_saves_itself(tmp_path):
    rng = np.random.default_rng(5)
    listeners = [HOSTILE, *(f"l{n}" for n in range(1, 7))]
    cells = [(who, item, system) for who in listeners for item in range(6) for system in ("_one", HOSTILE)]
    rated = {names: int(rng.integers(1, 6)) for names in cells}
    report = evaluate.listening(rows_of(rated), draws=200, title="Voices")
    folder = report.save(tmp_path / "out")
    page = (folder / "report.html").read_text("utf-8")
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert "Nobody was excluded" in page
    assert "The pigeonhole bootstrap" in str(report.methods())
    assert pd.read_csv(folder / "results.csv")["score"].tolist() == report.table["score"].tolist()


@pytest.mark.slow
def test_a_page_plays_the_recordings_beside_their_scores(tmp_path):
    clips = {
        name: AudioClip(np.full(800, level, np.float32), 8_000) for name, level in (("a", 0.1), ("b", 0.2))
    }
    cells = [(f"item {item}", name, clip) for item in range(2) for name, clip in clips.items()]
    sounds = pd.DataFrame(cells, columns=["item", "system", "audio"])
    pairs = {(f"l{n}", f"item {item}", "a", "b"): -item for n in range(6) for item in range(2)}
    rows = rows_of(pairs, "ab")
    report = evaluate.listening(rows, draws=100, sounds=sounds)
    assert report.tables["sounds"]["score"].tolist() == [0.5, 0.5, 0, 1]
    assert report.tables["sounds"]["answers"].tolist() == [6] * 4
    folder = report.save(tmp_path / "study")
    page = folder / "report.html"
    assert "Hear them below." in page.read_text(encoding="utf-8")
    assert evaluate.verify(page).unequal.empty
    loaded = evaluate.Report.load(folder).tables["sounds"]["audio"]
    assert {Path(place).parent for place in loaded} == {folder / "audio"}
    assert loaded.nunique() == 2


# -- a scale from pairs


def choices(truth, listeners=12, items=8, seed=0):
    """Answers to all pairs, drawn by the model of Bradley and Terry."""
    random = np.random.default_rng(seed)
    rows = [
        {
            "system": one,
            "other": other,
            "score": 1.0 if random.random() < 1 / (1 + math.exp(below - above)) else -1.0,
        }
        | {"listener": f"l{listener}", "item": f"i{item}"}
        for listener in range(listeners)
        for item in range(items)
        for (one, above), (other, below) in itertools.combinations(truth.items(), 2)
    ]
    return pd.DataFrame(rows)


TRUTH = {"a": 1.2, "b": 0.3, "c": -0.2, "d": -1.3}


def test_a_scale_from_pairs_holds_the_planted_strengths():
    scale = estimate_pair_scale(choices(TRUTH), draws=300).set_index("system")
    assert scale.index.tolist() == list(TRUTH)
    assert scale["strength"].sum() == pytest.approx(0, abs=1e-9)
    for system, strength in TRUTH.items():
        assert scale.loc[system, "low"] < strength < scale.loc[system, "high"]


def test_a_scale_is_the_maximum_of_the_likelihood():
    """The gradient is 0 there; choix 0.4.1 (ilsr_pairwise) gives the same strengths within 2e-9."""
    wins = np.random.default_rng(3).integers(1, 30, (5, 5)).astype(float)
    np.fill_diagonal(wins, 0)
    rows = [(str(one), str(other)) for one, other in np.ndindex(5, 5) for _ in range(int(wins[one, other]))]
    frame = pd.DataFrame(rows, columns=["system", "other"])
    frame = frame.assign(score=1.0, listener="ann", item=[f"i{row}" for row in range(len(rows))])
    found = estimate_pair_scale(frame, draws=100).set_index("system")["strength"][[*"01234"]].to_numpy()
    chance = 1 / (1 + np.exp(found[None] - found[:, None]))
    assert np.abs((wins - (wins + wins.T) * chance).sum(axis=1)).max() < 1e-6


SYSTEMS, ITEMS = ("good", "bad"), 20


def key_of(method="mos", items=ITEMS, systems=SYSTEMS):
    trials = [
        {"id": f"t{item}s{place}", "role": "test", "item": f"i{item}", "sounds": {f"a{item}b{place}": system}}
        for item in range(items)
        for place, system in enumerate(systems)
    ]
    check = {"id": "c1", "role": "check", "item": "i0", "sounds": {"c2": "noise"}}
    practice = {"id": "p1", "role": "training", "item": "i0", "sounds": {"p2": "good"}}
    key = {"format": "speechlab listening key 1", "test": "0a", "title": "Voices", "question": "How natural?"}
    key |= {"method": method, "seed": 1, "systems": list(systems)}
    return {**key, "trials": [practice, *trials, check]}


@pytest.mark.slow
def test_the_report_says_that_nobody_listened():
    model = "simulated: true scores 4 and 3"
    files = [answered(f"number {n}", started=model, finished=model) for n in range(7)]
    report = evaluate.listening([*files, answered()], KEY, draws=200)
    told = "7 of 8 listeners are simulated, so that nobody heard what they rate (true scores"
    assert str(report.findings[0]).startswith(told)
    assert "simulated listeners" in report.answer
    assert "Listeners are simulated: nobody heard what they rated." in report.methods()[0]


def simulate(seed, means, listeners, listener_sd, item_sd, answer_sd):
    """Answers that follow the model of ``listening_power``, drawn one by one."""
    random = np.random.default_rng(seed)
    exact = np.array(means) + random.normal(0, listener_sd, (listeners, 1, 2))
    exact = (
        exact + random.normal(0, item_sd, (1, ITEMS, 2)) + random.normal(0, answer_sd, (listeners, ITEMS, 2))
    )
    return rate(lambda *cell: np.clip(np.rint(exact[cell]), 1, 5), listeners, ITEMS, SYSTEMS)


@pytest.mark.slow
def test_listening_power_is_that_of_the_analysis():
    spread = {"listener_sd": 0.6, "item_sd": 0.1, "answer_sd": 0.6}
    how = {"tests": 60, **spread}
    power = evaluate.listening_power(key_of(), {"good": 3.5, "bad": 3.0}, listeners=(6, 12, 24), **how)
    assert power["listeners"].tolist() == [6, 12, 24]
    assert power["found"].is_monotonic_increasing
    assert power["found"].iloc[0] < 0.6 < 0.8 < power["found"].iloc[-1]
    alike = evaluate.listening_power(key_of(), dict.fromkeys(SYSTEMS, 3.0), listeners=12, tests=60)
    assert alike["found"].tolist()[0] <= 0.08
    reports = [
        evaluate.listening(simulate(seed, (3.5, 3.0), 12, **spread), draws=100) for seed in range(16, 24)
    ]
    found = np.mean([report.differences["verdict"][0] == "better" for report in reports])
    assert found == pytest.approx(power["found"].iloc[1], abs=0.35)
