"""References that are likely wrong: planted faults are found, errors of one system are not."""

import pandas as pd

from speechlab.metrics import suspects

WORDS = "the old clock on the north tower strikes twice before the market opens at dawn".split()  # noqa: SIM905


def rows(*cells, **columns):
    return pd.DataFrame(cells, columns=["text", "a", "b", "language"]).assign(**columns)


def planted(count=40, wrong=(3, 11, 27)):
    """Sentences whose references have a wrong word in some rows; each system errs in rows of its own."""
    said, references, a, b = [], [], [], []
    for row in range(count):
        words = [WORDS[(row * step + row) % len(WORDS)] for step in range(1, 9)]
        said.append(" ".join(words))
        references.append(
            " ".join(["lantern" if at == 4 else word for at, word in enumerate(words)])
            if row in wrong
            else said[-1]
        )
        a.append(" ".join(["shadow" if at == 2 and row % 5 == 0 else w for at, w in enumerate(words)]))
        b.append(" ".join(["window" if at == 2 and row % 5 == 1 else w for at, w in enumerate(words)]))
    table = pd.DataFrame({"text": references, "a": a, "b": b, "language": "en", "duration_s": 3.0})
    return table, said


def test_planted_faults_are_found_and_nothing_else():
    table, said = planted()
    found = suspects(table, ["a", "b"])
    assert sorted(found.index) == [3, 11, 27]
    assert set(found["certainty"]) == {"likely"}
    for row in (3, 27):  # in 11, the second system has an error of its own
        assert found["suggestion"][row] == said[row]
    assert "lantern" not in found["suggestion"][11]


def test_agreement_counts_where_other_words_were_heard():
    for reference, first, second, language, certainty in [
        ("ten cats sat down", "ten hats sat down", "Ten hats sat down.", "en", "likely"),
        ("He paid 20 pounds", "he paid twenty pounds", "He paid £20", "en", None),
        ("they left there bags", "they left their bags", "They left their bags.", "en", "possible"),
        ("明日は晴れでしょう", "明日は雨でしょう", "明日は雨でしょう。", "ja", "likely"),
        ("制度が高い", "精度が高い", "精度が高い", "ja", "possible"),
        ("guten Tag heute", "guten Abend heute", "guten Abend", "de", "likely"),
        ("all is well", "all as well", "all was well", "en", None),
        ("all is well", "all as well", None, "en", None),
        (None, "all as well", "all as well", "en", None),
    ]:
        found = suspects(rows((reference, first, second, language)), ["a", "b"])
        assert found["certainty"].tolist() == ([] if certainty is None else [certainty])


def test_a_text_that_does_not_fit_its_sound_is_told():
    table, _ = planted(wrong=())
    table.loc[7, "duration_s"] = 0.6
    table.loc[7, ["a", "b"]] = ["the old", "the clock"]
    table.loc[9, "duration_s"] = 0.6  # the transcripts are as long: the clock is wrong, not the text
    found = suspects(table, ["a", "b"])
    assert found.index.tolist() == [7]
    assert "times as long as usual" in found["why"][7]


def test_the_most_certain_and_the_most_differences_are_first():
    table = rows(
        ("制度が高い", "精度が高い", "精度が高い", "ja"),
        ("明日は晴れでしょう", "明日は雨でしょう", "明日は雨でしょう", "ja"),
        ("今日は山で花を見る", "今日は海で魚を見る", "今日は海で魚を見る", "ja"),
    )
    assert suspects(table, ["a", "b"]).index.tolist() == [2, 1, 0]
