"""Files: round trips, what each format loses, and errors with the line."""

import functools
import gzip
import json
import math
import random
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from speechlab import segments
from speechlab.errors import SegmentError, SegmentFileError
from support.oracles import MEETEVAL, recall
from support.segment_tables import make_table

SUFFIXES = {"nemo": ".jsonl", "lhotse": ".jsonl", "textgrid": ".TextGrid"}
KNOWN = segments.formats().set_index("format")
PHRASES = [
    "", "one", "two  words", "三時に会議。", "a\tb", "two\nlines", "a\n\nb", " spaced ", "<b>&amp;</b> --> x", "1",
    'say "yes", then \\N {go}', 'two ""', '"', "é\u2028x", "<o> label", ";; comment", "Ａ　Ｃ",
]  # fmt: skip
SPLINTERS = [b"", b"\n", b"\n\n", b" ", b"-", b"\x00", b"\xff", b"nan", b"<", b'"', b"1e999", b"\t"]


def find_suffix(name):
    return SUFFIXES.get(name, KNOWN.loc[name, "suffixes"].split()[0])


def squeeze(text):
    return " ".join(text.split())


def make_frame(name, count):
    """Return a table that the format can hold, with more than it does."""
    chance = random.Random(f"{name} {count}")
    many = KNOWN.loc[name, "recordings"] == "many"
    texts = {"ctm": ["one", "三時に", "<b>", ";;x"], "rttm": [""]}.get(name, PHRASES)
    latest = 400_000_000_000 if name not in {"ass", "ssa"} else 30_000_000_000
    places = [[0, chance.randrange(10_000_000), chance.randrange(latest)] for _ in range(count)]
    starts = np.array([chance.choice(three) for three in places])
    if name in {"textgrid", "elan"}:  # what overlaps fits in no tier
        starts = starts % 5_000_000 + np.arange(count) * 20_000_000
    least = 2_000 if name == "elan" else 0
    lengths = [chance.choice([least, chance.randrange(2_000, 9_000_000)]) for _ in range(count)]
    cells = {
        "file": ["a.wav", "b", "三.wav"] if many else ["talk"],
        "text": texts,
        "speaker": ["", "ann", "ボブ"],
        "channel": ["1", "2"],
        "confidence": [math.nan, 0.0, 0.123456789, 1.0],
    }
    columns = {column: chance.choices(values, k=count) for column, values in cells.items()}
    columns |= {"start": starts / 1e6, "end": (starts + lengths) / 1e6, "source": "me"}
    return segments.frame(pd.DataFrame(columns))


@pytest.mark.parametrize("name", KNOWN.index)
def test_round_trip(name, tmp_path):
    for count in (0, 1, 2, 60):
        table = make_frame(name, count)
        path = tmp_path / f"talk{find_suffix(name)}"
        done = segments.write(table, path, name, captions=False)
        back = segments.read(path, name)
        assert (done.path, done.format, done.rows, len(back)) == (path, name, count, count)
        silent = ("1 second of silence is written, since a TextGrid cannot be empty",)
        if not count:
            assert done.notes == (silent if name == "textgrid" else ())
            continue
        if name in {"textgrid", "elan"}:
            order = ["start", "end", "speaker", "text"]
            back = back.assign(speaker=back.get("speaker", ""))
            table, back = (one.sort_values(order, ignore_index=True) for one in (table, back))
        held = KNOWN.loc[name, "columns"].split()
        precision = max(KNOWN.loc[name, "precision_s"], 1e-6)
        for column in ("start", "end"):
            assert (back[column] - table[column]).abs().max() <= precision / 2 + 1e-7
        for column in set(held) & {"file", "speaker", "channel"}:
            got = back[column] if column in back else pd.Series([""] * count)
            assert got.tolist() == table[column].tolist()
        if "confidence" in held:
            got = back["confidence"] if "confidence" in back else pd.Series([math.nan] * count)
            np.testing.assert_allclose(got, table["confidence"], rtol=0, atol=0)
        if "text" in held:
            wanted = [squeeze(text) for text in table["text"]]
            if name == "textgrid":  # of a segment with a length
                long = (back["end"] > back["start"]).tolist()
                wanted = [text or ("speech" if some else "") for text, some in zip(wanted, long, strict=True)]
            styled = name in {"srt", "ass", "ssa", "ttml"}
            for one, other in zip(back["text"], wanted, strict=True):
                if not (styled and set(other) & set("{}\\<>&")):
                    assert squeeze(one) == other
        gone = {"source", "speaker", "channel", "confidence", "text", "file"} - set(held)
        said = {column for column in gone if not table[column].isin(["", math.nan]).all()}
        assert set(done.dropped) == said


NASTY = [
    "one\rtwo", "one\r\ntwo", " lead", "trail ", "a  b", "a\tb", "a\nb", "a\n\nb", "{\\i1}x", "a\\Nb", "a & b",
    "<b>x</b>", "&amp;", 'say "x"', "a --> b", "NOTE x", "WEBVTT", "\u200bx", "é\u2028x", "😀", "\\", "a,b;c",
    *(f"a{control}b" for control in "\x00\x07\x0b\x0c\x1b\x1c\x7f\x85\ufffe\uffff"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(KNOWN.index) - {"rttm", "uem", "ssa", "nemo"}))
def test_no_text_or_name_is_changed_in_silence(name, tmp_path):
    path = tmp_path / f"talk{find_suffix(name)}"
    held = {"text", *KNOWN.loc[name, "columns"].split()} & {"text", "speaker"}
    for column in sorted(held):
        fixed = {"file": "talk", "text": "x", "speaker": "ann"}
        rows = [
            {**fixed, "start": 2.0 * at, "end": 2.0 * at + 1, column: one} for at, one in enumerate(NASTY)
        ]
        done = None
        while done is None:
            try:
                done = segments.write(segments.frame(rows), path, name)
            except SegmentFileError as error:  # one that is refused
                assert error.column == column
                (row,) = error.rows
                del rows[row]
        assert rows
        back = segments.read(path, name).sort_values("start")[column].tolist()
        changed = sum(one != row[column] for one, row in zip(back, rows, strict=True))
        assert changed <= sum(int(note.split()[0]) for note in done.notes)


def test_halves_of_characters_are_refused_with_their_row():
    for data in (
        [(0, 1, "a"), (1, 2, "b\ud83d")],
        pd.DataFrame({"start": [0, 1], "end": 2, "text": ["", "\ud83d"]}, dtype=object),
    ):
        with pytest.raises(SegmentError, match=r"text of row 1 has '\\ud83d', half of a character") as caught:
            segments.frame(data)
        assert caught.value.rows == (1,)


@pytest.mark.slow
def test_pieces_make_the_file_that_the_whole_makes(tmp_path):
    for name, packed in [*((name, "") for name in KNOWN.index), ("csv", ".gz"), ("vtt", ".gz")]:
        many = KNOWN["recordings"][name] == "many"
        said = {"rttm": "", "ctm": "a"}.get(name)
        rows = [
            {"file": f"f{at % 3 * many}", "start": at, "end": at + 0.5, "speaker": "ann"}
            | {"text": f"a  {at}" if said is None else said}
            for at in range(9)
        ]
        table = segments.frame(rows)
        whole, parts = (tmp_path / f"{part}{find_suffix(name)}{packed}" for part in ("whole", "parts"))
        one = segments.write(table, whole, name)
        other = segments.write((table.iloc[max(0, at) : at + 2] for at in range(-2, 10, 2)), parts, name)
        assert (one.rows, one.dropped, one.notes) == (other.rows, other.dropped, other.notes), name
        assert segments.read(whole, name, file="f").equals(segments.read(parts, name, file="f")), name
        if name not in {"parquet", "elan"}:  # groups of rows; a date
            assert whole.read_bytes() == parts.read_bytes(), name


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_pieces_that_differ_are_refused_and_nothing_is_written(name, tmp_path):
    table = segments.frame([(0.0, 1.0, "a")], file="f")
    with pytest.raises(SegmentFileError, match="pieces of the table have different columns"):
        segments.write(iter([table, table.assign(mine=1)]), tmp_path / f"t.{name}")
    with pytest.raises(SegmentError, match="'end'"):
        segments.write(iter([table, table.drop(columns="end")]), tmp_path / f"t.{name}")
    assert not list(tmp_path.iterdir())
    for empty in (tmp_path / f"t.{name}", tmp_path / "t.json"):
        assert segments.write(iter([]), empty).rows == len(segments.read(empty)) == 0


SAID = "It was not so much the loss of the cotton itself, but the fantasy, the hopes, the dreams built around it."


@pytest.mark.parametrize("name", ["srt", "vtt", "ass", "ssa", "ttml"])
def test_subtitles_are_captions_and_say_what_was_done(name, tmp_path):
    path = tmp_path / f"talk{find_suffix(name)}"
    table = segments.frame([(0.0, 10.0, SAID), (10.0, 11.0, "Yes."), (12.0, 13.0, "No, not at all, I fear.")])
    done = segments.write(table, path)
    back = segments.read(path)
    assert done.rows == len(back) == 4
    assert done.notes == (
        "1 captions were added, because long segments are split",
        "2 captions have other line breaks, in lines of at most 42 characters",
        "1 captions show more than 17 characters a second; captions(table, pace=17) helps",
    )
    lines = back["text"].str.split("\n")
    assert (max(map(len, lines)), lines.explode().str.len().max()) <= (2, 42)
    assert " ".join(back["text"]).split() == " ".join(table["text"]).split()
    assert back["end"].tolist()[:2] == [back["start"][1], 10.0]
    plain = segments.write(table, path, captions=False)
    assert (plain.rows, plain.notes) == (3, ())
    assert segments.read(path)["text"].tolist() == table["text"].tolist()
    long = segments.frame([(0.0, 9.0, "x" * 50)])
    assert "1 captions have a longer line, or more than 2" in segments.write(long, path).notes


def test_exact_columns_and_own_columns(tmp_path):
    table = segments.frame([{"start": 1 / 3, "end": 2 / 3, "file": "a"}]).assign(mine=[5], labels=["o"])
    for name in ("csv", "parquet", "tsv"):
        done = segments.write(table, tmp_path / f"t.{name}")
        assert done.dropped == ()
        back = segments.read(tmp_path / f"t.{name}")
        assert segments.equal(back.astype({"mine": int}), table)
    assert segments.read(tmp_path / "t.parquet")["start"][0] == 1 / 3
    assert segments.write(table, tmp_path / "t.stm").dropped == ("mine",)
    assert segments.read(tmp_path / "t.stm")["labels"].tolist() == ["o"]
    assert segments.write(table, tmp_path / "t.uem").dropped == ("mine", "labels")


def test_compressed_manifests_tell_whose_they_are(tmp_path):
    table = segments.frame([{"start": 1, "end": 2, "file": "a", "text": "x"}])
    for name in ("nemo", "lhotse"):
        path = tmp_path / f"{name}.jsonl.gz"
        segments.write(table, path, name)
        assert gzip.decompress(path.read_bytes()).startswith(b"{")
        back = segments.read(path)
        assert back[["file", "start", "end", "text"]].values.tolist() == [["a", 1.0, 2.0, "x"]]


VTT = """WEBVTT - title

NOTE a
--

STYLE
::cue {}

id-1
00:01.500 --> 00:03.000 align:left
a &lt;b&gt; <i>c</i>
"""
SPEAKER = "SPEAKER a 1 1.5 1.5 <NA> <NA> ann <NA> <NA>\n"
SRT = "1\n00:00:01,500 --> 00:00:03,000\nHello\nthere\n\n"
CUE = "\n00:01.500 --> 00:03.000\nsaid\n\n"


def test_what_others_write_is_read(tmp_path):
    for name, content, rows in [
        ("x.srt", "\ufeff" + SRT.replace("\n", "\r\n"), [[1.5, 3.0, "Hello\nthere"]]),
        ("x.vtt", VTT, [[1.5, 3.0, "a <b> c"]]),
        ("x.vtt", f"WEBVTT\n\nNOTEBOOK{CUE}NOTE{CUE}NOTE\nnothing\n\nSTYLE\n::cue {{}}\n", [[1.5, 3.0, "said"]] * 2),
        ("x.txt", "1.5\t3.0\thello\n\\\t100.0\t200.0\n4\t4\n", [[1.5, 3.0, "hello"], [4.0, 4.0, ""]]),
        ("x.jsonl", '{"audio_filepath": "a", "duration": 1.5, "lang": "en"}\n\n', [[0.0, 1.5, ""]]),
        ("x.ctm", ";; no\na 1 1.5 1.5 so\na A 3 1 there 0.5 lex ann\n", [[1.5, 3.0, "so"], [3.0, 4.0, "there"]]),
        ("x.stm", "a 1 ann 1.5 3.0 <o,f0> hello  there\na 1 ann 3 4\n", [[1.5, 3.0, "hello  there"], [3.0, 4.0, ""]]),
        ("x.rttm", f"SPKR-INFO a 1 <NA> <NA> <NA> unknown ann <NA>\n{SPEAKER}", [[1.5, 3.0, ""]]),
    ]:  # fmt: skip
        path = tmp_path / name
        path.write_text(content, encoding="utf-8", newline="")
        assert segments.read(path)[["start", "end", "text"]].values.tolist() == rows


@pytest.mark.slow
def test_damaged_files_are_read_or_refused(tmp_path):
    """Whatever was done to a file: a segment frame, or an error of ours."""
    row = {"file": "a", "channel": "1", "confidence": 0.5}
    one, two = ({"text": "one", "speaker": "x"}, {"text": "two", "speaker": "y"})
    valid = segments.frame([row | one | {"start": 1.25, "end": 2.5}, row | two | {"start": 3.25, "end": 4.5}])
    chance, read = random.Random(1), 0
    for name in KNOWN.index:
        path = tmp_path / f"x{find_suffix(name)}"
        segments.write(valid, path, name)
        whole = path.read_bytes()
        for _ in range(12):
            at, gone = chance.randrange(len(whole) + 1), chance.randrange(41)
            path.write_bytes(whole[:at] + chance.choice(SPLINTERS) + whole[at + gone :])
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of parts that are left out
                    back = segments.read(path, name)
            except SegmentFileError as error:
                assert str(path) in str(error)
            else:
                read += 1
                assert segments.frame(back)[list(back)].equals(back), path.read_bytes()
    assert 20 < read < 180


def test_voices_of_a_cue(tmp_path):
    path = tmp_path / "x.vtt"
    path.write_text("WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann Lee>Hi</v> <v.loud Bob>Ho &amp; hey\n")
    back = segments.read(path)
    assert back[["speaker", "text"]].values.tolist() == [["Ann Lee", "Hi"], ["Bob", "Ho & hey"]]


NEMO = '{"audio_filepath": "a", "duration": 1, "text": "x"}\n'
SEGLST = '{"session_id": "f", "start_time": "1", "end_time": 2, "words": "x"}'


def test_tiers_of_one_name_are_told_apart(tmp_path):
    rows = [{"start": 0, "end": 1, "text": "a", "speaker": name} for name in ("ann", "bob")]
    path = tmp_path / "x.TextGrid"
    segments.write(segments.frame(rows), path)
    path.write_text(path.read_text("utf-8").replace('"bob"', '"ann"'), "utf-8")
    assert segments.read(path)["speaker"].tolist() == ["ann", "ann_2"]


def test_a_malformed_line_costs_itself(tmp_path):
    for name, content, texts, fault in [
        ("x.rttm", "SPEAK a\n" + SPEAKER, [""], "line 1: 'SPEAK' is not a type of RTTM"),
        ("x.ctm", "a 1 1 1 x\na 1 2 1\na 1 3 1 y 1.5\na 1 4 1 z", ["x", "z"], "line 2: .* 4 fields.*line 3: .*1.5"),
        ("x.ctm", "a 1 * * <ALT_BEGIN>\na 1 1 1 x\na 1 * * <ALT>\na 1 1 1 y\na 1 * * <ALT_END>\na 1 2 1 z",
         ["x", "z"], "line 1: alternatives but the first"),
        ("x.uem", "a 1 0 nan\na 1 0 9\n", [""], "line 1: the end is 'nan'"),
        ("x.txt", "1.0\t2.0\tx\n1.0 2.0 x\n", ["x"], "line 2: .* separated by tabs"),
        ("x.jsonl", f'{NEMO}{{"audio_filepath": "a"\n', ["x"], "line 2: .*JSON"),
        ("x.json", f"[{SEGLST}, {{}}, 3, {SEGLST.replace('1', 'a')}]", ["x"], "entry 1 .*; entry 2 .*; .* 3: .*'a'"),
        ("x.csv", 'start,end,text\n1,2,"a\nb"\n1,x,c\n', ["a\nb"], "line 4: the end is 'x'"),
        ("x.csv", 'start,end,text\n1,2,a\n2,3,"b\n3,4,c"\n4,5,d\n', ["a", 'c"', "d"], "line 3: .*encloses"),
        ("x.tsv", 'start\tend\ttext\n0.5\t1\t"Hello\n1\t2\n2\t3\tx"\n', ['"Hello', 'x"'], "line 3: .* 2 cells"),
    ]:  # fmt: skip
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        with pytest.warns(UserWarning, match=rf"{name}: left out: .*{fault}"):
            assert segments.read(path)["text"].tolist() == texts


def test_touching_annotations_of_elan_share_their_time(tmp_path):
    """Words that subdivide a phrase: ELAN spaces slots without a time evenly."""
    path = tmp_path / "x.eaf"
    rows = [{"start": at, "end": at + 1, "text": str(at), "speaker": "words"} for at in range(1, 5)]
    segments.write(segments.frame(rows, file="x"), path)
    text = path.read_text("utf-8")
    slots = re.findall(r'TIME_SLOT_ID="(ts\d+)" TIME_VALUE="(\d+)"', text)
    joined = {value: slot for slot, value in slots}  # one for the end of a word and the start of the next
    for slot, value in slots:
        text = re.sub(f'(REF[12])="{slot}"', rf'\1="{joined[value]}"', text)
    path.write_text(re.sub(r' TIME_VALUE="(2000|3000)"', "", text).replace('"4000"', '"3400"'), "utf-8")
    back = segments.read(path)
    assert back["start"].tolist() == [1.0, 1.8, 2.6, 3.4]
    assert (back["end"].tolist(), back["text"].tolist()) == ([1.8, 2.6, 3.4, 5.0], [*"1234"])


@pytest.mark.parametrize(
    ("name", "rows", "text"),
    [
        ("x.srt", [{"file": "a"}, {"file": "b"}], "has one recording, and the table has 2"),
        ("x.rttm", [{"file": "a b"}], "row 0 cannot be written .* file 'a b' has a space"),
        ("x.rttm", [{"file": ""}], "the file is missing, which this format needs"),
        (
            "x.ctm",
            [{"file": "a", "text": "one"}, {"file": "a", "text": "two words"}],
            "row 1 .* not one word",
        ),
        ("x.jsonl", [{"file": "a"}], "give format='nemo' or format='lhotse'"),
        ("x.doc", [{"file": "a"}], "sets no format"),
        ("x.eaf", [{"file": "a", "end": 1.0}], "no whole millisecond"),
        ("x.TextGrid", [{"file": "a"}, {"file": "a", "start": 1.5}], "overlap"),
        ("x.TextGrid", [{"file": "a", "text": "see item [1]"}], r"text 'see item \[1\]' has 'item \['"),
    ],
)
def test_write_refuses_what_a_format_cannot_hold(name, rows, text, tmp_path):
    table = pd.DataFrame([{"start": 1.0, "end": 2.0, **row} for row in rows])
    path = tmp_path / name
    path.write_text("before")
    with pytest.raises(SegmentFileError, match=text):
        segments.write(table, path)
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert path.read_text() == "before"


def test_what_was_changed_is_said(tmp_path):
    table = segments.frame([(1.0, 1.0002, "a\n\nb"), (2.0, 3.0, "c\td")], file="talk")
    done = segments.write(table, tmp_path / "x.srt", captions=False)
    assert (done.precision_s, done.dropped) == (0.001, ("file",))
    assert done.notes == (
        "1 segments lost their length, as times are rounded to 1 ms",
        "1 texts had blank lines or spaces around a line, which were removed",
    )
    assert segments.write(table, tmp_path / "x.stm").notes == (
        "2 texts had line breaks, tabs or double spaces, which became single spaces",
        "2 rows without a channel are written as channel 1",
    )


def ask_meeteval(kind, path):
    import meeteval.io

    lines = getattr(meeteval.io, kind.upper()).load(path).lines
    ends = [float(getattr(line, "end_time", 0) or line.begin_time + line.duration) for line in lines]
    return {
        "text": path.read_text("utf-8"),
        "starts": [float(line.begin_time) for line in lines],
        "ends": ends,
    }


def test_other_libraries_read_what_is_written(tmp_path):
    pysubs2 = pytest.importorskip("pysubs2")
    rows = pd.DataFrame({"start": [0.25, 1.123456], "end": [1.5, 2.0], "text": ["one", "two"]})
    table = segments.frame(rows.assign(speaker=["ann", "bob"], channel="1"), file="a")
    for kind in ("rttm", "stm", "ctm"):
        path = tmp_path / f"x.{kind}"
        segments.write(table, path)
        theirs = recall(MEETEVAL, f"a file of {kind}", functools.partial(ask_meeteval, kind, path))
        assert path.read_text("utf-8") == theirs["text"]
        assert np.allclose(theirs["starts"], table["start"], atol=1e-9)
        assert np.allclose(theirs["ends"], table["end"], atol=1e-9)
    for name in ("srt", "vtt"):
        path = tmp_path / f"x.{name}"
        segments.write(table, path)
        events = pysubs2.load(str(path))
        assert [(event.start, event.end) for event in events] == [(250, 1500), (1123, 2000)]
        assert [event.plaintext for event in events] == ["one", "two"]


# -- conversions


def test_pyannote_and_back():
    pytest.importorskip("pyannote.core")
    table = segments.frame(make_table(1, instants=False)).assign(speaker="s")
    table["speaker"] += table.index.astype("str")
    made = segments.to_pyannote(table)
    assert set(made) == set(table["file"])
    order = ["file", "start", "end", "speaker"]
    back = segments.from_pyannote(made).sort_values(order, ignore_index=True)
    assert segments.equal(back, table.sort_values(order, ignore_index=True))
    assert not len(segments.from_pyannote(segments.to_pyannote(table[:0])))


def test_pyannote_timelines_and_refusals():
    core = pytest.importorskip("pyannote.core")
    line = core.Timeline([core.Segment(1, 2)], uri="x")
    assert segments.from_pyannote(line).values.tolist() == [["x", 1.0, 2.0, ""]]
    assert segments.from_pyannote([line], file="y")["file"].tolist() == ["y"]
    with pytest.raises(SegmentError, match="row 0 has no length"):
        segments.to_pyannote(segments.frame([(1.0, 1.0)]))


def test_audformat_and_back():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audformat = pytest.importorskip("audformat")
    table = segments.frame(make_table(2)).drop_duplicates(["file", "start", "end"], ignore_index=True)
    made = segments.to_audformat(table)
    assert audformat.is_segmented_index(made)
    wanted = audformat.segmented_index(
        table["file"].tolist(),
        *(pd.to_timedelta(np.rint(table[name] * 1e6), unit="us").tolist() for name in ("start", "end")),
    )
    pd.testing.assert_index_equal(made.index, wanted)
    assert segments.equal(segments.from_audformat(made), table)
    assert segments.equal(segments.from_audformat(wanted), table)


def test_audformat_refusals_and_open_ends():
    twice = segments.frame([(0.0, 1.0), (0.0, 1.0)], file="a")
    with pytest.raises(SegmentError, match="row 1 has the file, start and end of an earlier row"):
        segments.to_audformat(twice)
    whole = pd.Index(["a", "b"], name="file")
    with pytest.raises(SegmentError, match="row 0 goes to the end of 'a'"):
        segments.from_audformat(whole)
    back = segments.from_audformat(pd.Series(["x", "y"], index=whole), extent={"a": 1.0, "b": 2.0})
    assert back.values.tolist() == [["a", 0.0, 1.0, "x"], ["b", 0.0, 2.0, "y"]]


def test_seglst_and_records():
    first = {"file": "a", "start": 0.1 + 0.2, "end": 1, "text": "x", "speaker": "ann", "confidence": 0.5}
    table = segments.frame([first, {"file": "b", "start": 0, "end": 1}])
    records = segments.to_records(table)
    assert records == [{**first, "start": 0.3}, {"file": "b", "start": 0.0, "end": 1.0, "text": ""}]
    assert json.loads(json.dumps(records)) == records
    assert segments.equal(segments.frame(records), table)
    made = segments.to_seglst(table)
    assert made[0] == {"session_id": "a", "start_time": 0.3, "end_time": 1.0, "words": "x", "speaker": "ann"}
    assert segments.equal(segments.from_seglst(made), table.drop(columns="confidence"))
    assert segments.equal(segments.from_seglst(iter(made)), table.drop(columns="confidence"))  # as meeteval's
    written = [entry | {name: str(entry[name]) for name in ("start_time", "end_time")} for entry in made]
    assert segments.equal(segments.from_seglst(written), segments.from_seglst(made))
    with pytest.raises(SegmentError, match="entry 1 has no key 'end_time'"):
        segments.from_seglst([made[0], {"session_id": "a", "start_time": 0}])


def test_a_file_that_cannot_be_written_is_an_error_of_segments(tmp_path):
    table = segments.frame([(0, 1, "hello")])
    with pytest.raises(SegmentFileError, match=r"talk\.srt cannot be written: No such file") as caught:
        segments.write(table, tmp_path / "none" / "talk.srt")
    assert caught.value.path == str(tmp_path / "none" / "talk.srt")
