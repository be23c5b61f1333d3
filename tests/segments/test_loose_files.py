"""Files as others write them: each loose form has its right value, and what is left out is named."""

import warnings

import pytest

from speechlab import metrics, segments
from speechlab.errors import SegmentFileError


def read(path, content, **options):
    path.write_text(content, encoding="utf-8", newline="")
    return segments.read(path, **options)


def rows(table):
    return table[["start", "end", "text"]].values.tolist()


SRT = "1\n00:00:01,000 --> 00:00:02,000\na\n"
TWO = [[1.0, 2.0, "a"], [2.0, 3.0, "b"]]
VTT = "WEBVTT\n\n00:01.000 --> 00:02.000\na\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.srt", SRT + "2\n00:00:02,000 --> 00:00:03,000\nb"),
        ("x.srt", "00:00:01,000 --> 00:00:02,000\na\n00:00:02,000 --> 00:00:03,000\nb\n"),
        ("x.srt", SRT.replace("\n", "\r\r\n") + "\r\r\n2\r\r\n00:00:02,000 --> 00:00:03,000\r\r\nb\r\r\n"),
        ("x.srt", SRT + " \n2\n00:00:02 --> 00:00:03\n\nb\n"),
        ("x.vtt", "WEBVTT\n00:01.000 --> 00:02.000\na\n00:02.000 --> 00:03.000\nb"),
        ("x.vtt", "WEBVTT\n\n1\n00:01.000 --> 00:02.000\na\n2\n00:02.000 --> 00:03.000 line:0\n \nb\n"),
    ],
)
def test_cues_without_blank_lines(name, content, tmp_path):
    assert rows(read(tmp_path / name, content)) == TWO


LATER = "\n3\n00:00:02,000 --> 00:00:03,000\nb\n"


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("x.srt", f"{SRT}\n2\n{LATER}", 5, "'2' has no time"),
        ("x.srt", f"{SRT}\nnot timed\nat all\n{LATER}", 5, "'not timed' has no time"),
        ("x.srt", f"{SRT}\n2\n00:00:01,500 -> 00:00:02,000\nx\n{LATER}", 6, "is not a timing"),
        ("x.srt", f"{SRT}\n2\n00:00:01,500 --> 00:99:02,000\nx\n{LATER}", 6, "is not a timing"),
        ("x.srt", f"{SRT}2\n00:00:01,500 --> 00:00:01,000\nx\n{LATER}", 5, "from 1.5 s to 1 s"),
        ("x.srt", f"{SRT}\n2\n00:00:01,500 --> 00:00:02,000 said here\nx\n{LATER}", 6, "behind the times"),
        ("x.vtt", f"{VTT}\nnot timed\n\nNOTE x\ny\n\n00:02.000 --> 00:03.000\nb\n", 6, "has no time"),
        ("x.vtt", f"{VTT}\n00:05 --> 00:06\nx\n\n00:02.000 --> 00:03.000\nb\n", 6, "is not a timing"),
        ("x.vtt", f"{VTT}\n00:01.500 --> 00:01.700\nx 00:00:01 --&gt; 00:00:02\n\n00:02.000 --> 00:03.000\nb\n",
         6, "holds times of captions"),
        ("x.csv", 'start,end,text\n1,2,a\n1,2,"x\ty\nz"\n2,3,b\n', 3, "a tab and a line end"),
        ("x.csv", "start,end,text\n1,2,a\n1,2,00:01.000 --> 00:02.000\n2,3,b\n", 3, "holds times of captions"),
    ],
)  # fmt: skip
def test_one_bad_cue_costs_itself_and_a_note(name, content, line, reason, tmp_path):
    with pytest.warns(UserWarning, match=rf"{name}: left out: line {line}: .*{reason}") as caught:
        assert rows(read(tmp_path / name, content)) == TWO
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_file_without_one_good_cue_is_refused(tmp_path):
    with pytest.raises(SegmentFileError, match=r"x\.srt, line 2: .* is not a timing") as caught:
        read(tmp_path / "x.srt", "1\n00:00:01,000 -> 00:00:02,000\na\n\nrest\n")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("x.srt", "<i>海月です</i>", "海月です"),
        ("x.srt", "{\\an8}水族館", "水族館"),
        ("x.srt", '<font color="#ff0000">one</font> <B>two</B><br/>three', "one two\nthree"),
        ("x.srt", "a < b > c, <unk> {go}", "a < b > c, <unk> {go}"),
        ("x.srt", "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>です", "漢字です"),
        ("x.vtt", "<ruby>漢<rt>かん</rt>字<rt>じ</ruby>です", "漢字です"),
        ("x.vtt", "{\\an8}<c.yellow>one</c> &lt;b&gt; <b>two</b>", "one <b> two"),
    ],
)
def test_tags_are_no_words(name, text, shown, tmp_path):
    head = "WEBVTT\n\n" if name == "x.vtt" else "1\n"
    table = read(tmp_path / name, f"{head}00:00:01.000 --> 00:00:02.000\n{text}\n")
    assert rows(table) == [[1.0, 2.0, shown]]
    assert metrics.error_rate([shown], table["text"].tolist(), language="en", unit="char").rate == 0


ROLLING = """Kind: captions
Language: en

00:00:00.000 --> 00:00:02.389 align:start position:0%
 
what's<00:00:00.719><c> up</c>

00:00:02.389 --> 00:00:02.399 align:start position:0%
what's up
 

00:00:02.399 --> 00:00:05.000 align:start position:0%
what's up
today<00:00:03.000><c> we</c>

00:00:05.000 --> 00:00:05.010 align:start position:0%
today we
 

00:00:05.010 --> 00:00:08.000 align:start position:0%
today we
today<00:00:06.000><c> we</c>
"""  # noqa: W293 - as YouTube writes them
SAID = [[0.0, 2.389, "what's up"], [2.399, 5.0, "today we"], [5.01, 8.0, "today we"]]


def test_captions_of_youtube(tmp_path):
    assert rows(read(tmp_path / "x.vtt", f"WEBVTT\n{ROLLING}")) == SAID
    as_srt = ROLLING.partition("\n\n")[2].replace(" align:start position:0%", "")
    for mark in ("<00:00:00.719><c>", "<00:00:03.000><c>", "<00:00:06.000><c>", "</c>"):
        as_srt = as_srt.replace(mark, "")
    with pytest.warns(UserWarning, match=r"line 5: .* in 4 rolling captions"):
        assert rows(read(tmp_path / "x.srt", as_srt)) == SAID
    song = "".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n + 1},000\nLa la la\n\n" for n in range(1, 6))
    assert len(read(tmp_path / "song.srt", song)) == 5


@pytest.mark.parametrize("name", ["x.srt", "x.vtt", "x.csv", "x.json", "x.stm", "x.parquet"])
@pytest.mark.parametrize("text", ["a\n00:00:01,000 --> 00:00:02,000", "a\tb\nc"])
def test_texts_that_are_several_are_not_written(name, text, tmp_path):
    table = segments.frame([(0.0, 1.0, "a"), (1.0, 2.0, text)], file="x")
    with pytest.raises(SegmentFileError, match="so it is several texts; correct it first") as caught:
        segments.write(table, tmp_path / name)
    assert (caught.value.rows, caught.value.column) == ((1,), "text")
    assert not list(tmp_path.iterdir())


def test_tags_in_texts_are_written_with_a_note(tmp_path):
    table = segments.frame(
        [(0.0, 1.0, "<i>a</i>"), (1.0, 2.0, "{\\an8}b"), (2.0, 3.0, "a < b {c}")], file="x"
    )
    assert segments.write(table, tmp_path / "x.srt").notes == ("2 texts with tags, which are styles there",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert segments.write(table, tmp_path / "x.vtt").notes == ()
        assert segments.read(tmp_path / "x.vtt")["text"].tolist() == table["text"].tolist()


def test_what_an_stm_does_not_score_is_left_out(tmp_path):
    said = "f 1 f-ann 17.8 20.0 <o,f0,female> hello { there / their } you\n"
    gap = "f 1 inter_segment_gap 0 17.8 <o,f0,unknown> ignore_time_segment_in_scoring\n"
    mark = "f 1 f-ann 20 21 <o,f0,female> IGNORE_TIME_SEGMENT_IN_SCORING\n"
    with pytest.warns(UserWarning, match="line 2: alternatives but the first"):
        assert rows(read(tmp_path / "x.stm", gap + said + mark)) == [[17.8, 20.0, "hello there you"]]
    for text in ("a { b / @ }", "ignore_time_segment_in_scoring"):
        with pytest.raises(SegmentFileError, match="first"):
            segments.write(segments.frame([(0.0, 1.0, text)], file="f"), tmp_path / "y.stm")
    assert len(read(tmp_path / "x.ctm", "f 1 0.0 0.5 so 0.9 lex\nf 1 0.5 0.5 x 0.9 noscore\n")) == 1


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ('a\t0\t1\t"Hello there\na\t1\t2\tb\na\t2\t3\tsaid "x"\n', ['"Hello there', "b", 'said "x"']),
        ('a\t0\t1\t"say ""yes"""\na\t1\t2\t"no"\n', ['say "yes"', '"no"']),
        ('a\t0\t1\t"say\nyes"\na\t1\t2\tno\n', ["say\nyes", "no"]),
    ],
)
def test_tsv_has_no_quotes(content, texts, tmp_path):
    assert read(tmp_path / "x.tsv", f"file\tstart\tend\ttext\n{content}")["text"].tolist() == texts


def test_a_quote_that_takes_lines_of_tsv_is_refused(tmp_path):
    with pytest.raises(SegmentFileError, match="line 3: the line has 2 cells") as caught:
        read(tmp_path / "x.tsv", 'start\tend\ttext\n0\t1\t"Hello\n1\t2\n2\t3\tx"\n')
    assert caught.value.line == 3


def test_the_unit_of_whispers_tsv_is_asked_for(tmp_path):
    content = "start\tend\ttext\n0\t2500\tHello\n"
    with pytest.raises(SegmentFileError, match=r"whole numbers, in milliseconds if .* unit='ms' or unit='s'"):
        read(tmp_path / "x.tsv", content)
    assert rows(read(tmp_path / "x.tsv", content, unit="ms")) == [[0.0, 2.5, "Hello"]]
    assert rows(read(tmp_path / "x.tsv", content, unit="s")) == [[0.0, 2500.0, "Hello"]]
    with pytest.raises(SegmentFileError, match="unit='h' is not"):
        read(tmp_path / "x.tsv", content, unit="h")
