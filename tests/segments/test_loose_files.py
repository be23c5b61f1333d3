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


def test_cues_without_blank_lines(tmp_path):
    for name, content in [
        ("x.srt", SRT + "2\n00:00:02,000 --> 00:00:03,000\nb"),
        ("x.srt", "00:00:01,000 --> 00:00:02,000\na\n00:00:02,000 --> 00:00:03,000\nb\n"),
        ("x.srt", SRT.replace("\n", "\r\r\n") + "\r\r\n2\r\r\n00:00:02,000 --> 00:00:03,000\r\r\nb\r\r\n"),
        ("x.vtt", "WEBVTT\n00:01.000 --> 00:02.000\na\n00:02.000 --> 00:03.000\nb"),
        ("x.vtt", "WEBVTT\n\n1\n00:01.000 --> 00:02.000\na\n2\n00:02.000 --> 00:03.000 line:0\n \nb\n"),
    ]:
        assert rows(read(tmp_path / name, content)) == TWO


LATER = "\n3\n00:00:02,000 --> 00:00:03,000\nb\n"


def test_tags_are_no_words(tmp_path):
    for name, text, shown in [
        ("x.srt", "<i>海月です</i>", "海月です"),
        ("x.srt", '<font color="#ff0000">one</font> <B>two</B><br/>three', "one two\nthree"),
        ("x.srt", "a < b > c, <unk> {go}", "a < b > c, <unk> {go}"),
        ("x.srt", "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>です", "漢字です"),
        ("x.vtt", "<ruby>漢<rt>かん</rt>字<rt>じ</ruby>です", "漢字です"),
        ("x.vtt", "{\\an8}<c.yellow>one</c> &lt;b&gt; <b>two</b>", "one <b> two"),
    ]:
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


def test_tsv_has_no_quotes(tmp_path):
    for content, texts in [
        ('a\t0\t1\t"Hello there\na\t1\t2\tb\na\t2\t3\tsaid "x"\n', ['"Hello there', "b", 'said "x"']),
        ('a\t0\t1\t"say ""yes"""\na\t1\t2\t"no"\n', ['say "yes"', '"no"']),
        ('a\t0\t1\t"say\nyes"\na\t1\t2\tno\n', ["say\nyes", "no"]),
    ]:
        assert read(tmp_path / "x.tsv", f"file\tstart\tend\ttext\n{content}")["text"].tolist() == texts


def test_the_unit_of_whispers_tsv_is_asked_for(tmp_path):
    content = "start\tend\ttext\n0\t2500\tHello\n"
    with pytest.raises(SegmentFileError, match=r"whole numbers, in milliseconds if .* unit='ms' or unit='s'"):
        read(tmp_path / "x.tsv", content)
    assert rows(read(tmp_path / "x.tsv", content, unit="ms")) == [[0.0, 2.5, "Hello"]]
    assert rows(read(tmp_path / "x.tsv", content, unit="s")) == [[0.0, 2500.0, "Hello"]]


TTML = (
    '<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" '
    'xmlns:tts="http://www.w3.org/ns/ttml#styling" {}><body>{}</body></tt>'
)


RUBY = '<span tts:ruby="base">漢</span><span tts:ruby="text">かん</span>'


def test_times_of_ttml(tmp_path):
    for rates, body, said in [
        ('ttp:tickRate="10000000"', '<p begin="10000000t" end="20000000t">a<br/>b</p>', [[1.0, 2.0, "a\nb"]]),
        ('ttp:frameRate="25"', '<p begin="00:00:01:05" end="50f">a  b</p>', [[1.2, 2.0, "a b"]]),
        ('ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001"', '<p begin="30f" dur="1s">a</p>',
         [[1.001, 2.001, "a"]]),
        ('ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001" ttp:timeBase="smpte" ttp:dropMode="dropNTSC"',
         '<p begin="00:10:00:00" dur="1s">a</p>', [[599.9994, 600.9994, "a"]]),
        ("", '<div begin="10s" end="12s"><p>a</p><p begin="1s" end="5s">b</p></div>',
         [[10.0, 12.0, "a"], [11.0, 12.0, "b"]]),
        ("", '<div timeContainer="seq"><p dur="2s">a</p><p dur="3s">b</p></div>', [[0.0, 2.0, "a"], [2.0, 5.0, "b"]]),
        ("", '<p><span begin="1s" end="2s">a</span><span begin="2s" end="3s">b</span></p>',
         [[1.0, 2.0, "a"], [2.0, 3.0, "b"]]),
        ("", f'<p begin="5s" end="6s">{RUBY}です</p>', [[5.0, 6.0, "漢です"]]),
    ]:  # fmt: skip
        table = read(tmp_path / "x.ttml", TTML.format(rates, body))
        assert [[round(start, 4), round(end, 4), text] for start, end, text in rows(table)] == said


GOOD = '<p begin="1s" end="2s">a</p>\n{}<p begin="2s" end="3s">b</p>'
ASS = """[Script Info]

[Events]
Format: Start, End, Text
Dialogue: 0:00:01.00,0:00:02.00,a
{}Dialogue: 0:00:02.00,0:00:03.00,b
"""
EAF = """<ANNOTATION_DOCUMENT>
<HEADER TIME_UNITS="{unit}"><MEDIA_DESCRIPTOR MIME_TYPE="audio/x-wav" TIME_ORIGIN="{origin}"/></HEADER>
<TIME_ORDER><TIME_SLOT TIME_SLOT_ID="t1" TIME_VALUE="25"/><TIME_SLOT TIME_SLOT_ID="t2" TIME_VALUE="50"/>
<TIME_SLOT TIME_SLOT_ID="t3" TIME_VALUE="75"/><TIME_SLOT TIME_SLOT_ID="t4"/></TIME_ORDER>
<TIER TIER_ID="ann">
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="t1" TIME_SLOT_REF2="t2">
<ANNOTATION_VALUE>a</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a2" TIME_SLOT_REF1="{first}" TIME_SLOT_REF2="t3">
<ANNOTATION_VALUE>b</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
</TIER></ANNOTATION_DOCUMENT>"""
GRID = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 3
tiers? <exists>
size = 1
item []:
    item [1]:
        class = "IntervalTier"
        name = "ann"
        xmin = 0
        xmax = 3
        intervals: size = {size}
        intervals [1]:
            xmin = 1e-05
            xmax = 2.0E+0
            text = "say ""item [1]"" now"
{more}"""


def test_one_bad_cue_costs_itself_and_a_note(tmp_path):
    for name, content, line, reason in [
        ("x.srt", f"{SRT}\n2\n{LATER}", 5, "'2' has no time"),
        ("x.srt", f"{SRT}\n2\n00:00:01,500 -> 00:00:02,000\nx\n{LATER}", 6, "is not a timing"),
        ("x.srt", f"{SRT}2\n00:00:01,500 --> 00:00:01,000\nx\n{LATER}", 5, "from 1.5 s to 1 s"),
        ("x.srt", f"{SRT}\n2\n00:00:01,500 --> 00:00:02,000 said here\nx\n{LATER}", 6, "behind the times"),
        ("x.vtt", f"{VTT}\n00:05 --> 00:06\nx\n\n00:02.000 --> 00:03.000\nb\n", 6, "is not a timing"),
        ("x.vtt", f"{VTT}\n00:01.500 --> 00:01.700\nx 00:00:01 --&gt; 00:00:02\n\n00:02.000 --> 00:03.000\nb\n",
         6, "holds times of captions"),
        ("x.csv", 'start,end,text\n1,2,a\n1,2,"x\ty\nz"\n2,3,b\n', 3, "a tab and a line end"),
        ("x.ttml", TTML.format("", GOOD.format('<p begin="soon" end="2s">x</p>')), 2, "begin is 'soon'"),
        ("x.ttml", TTML.format("", GOOD.format('<p begin="3s" end="2s">x</p>')), 2, "from 3 s to 2 s"),
        ("x.ass", ASS.format("Dialogue: 0:00:01.00,soon,x\n"), 6, "'soon' is not a time"),
        ("x.ssa", ASS.format("Dialogue: 0:00:03.00,0:00:02.00,x\n"), 6, "from 3 s to 2 s"),
    ]:  # fmt: skip
        with pytest.warns(UserWarning, match=rf"{name}: left out: line {line}: .*{reason}") as caught:
            assert rows(read(tmp_path / name, content)) == TWO
        assert (len(caught), caught[0].filename) == (1, __file__)


def test_drawings_and_fields_of_ass(tmp_path):
    drawn = "Dialogue: 0:00:01.00,0:00:02.00,{\\p1}m 0 0 l 100 0{\\p0}\n"
    mixed = "Dialogue: 0:00:01.00,0:00:02.00,{\\an8\\i1}one,{\\i0} two{\\p1}m 0 0{\\p0}\n"
    table = read(tmp_path / "x.ass", ASS.format(drawn + mixed))
    assert table["text"].tolist() == ["a", "one, two", "b"]


def test_annotations_of_elan_are_in_the_time_of_the_medium(tmp_path):
    for unit, origin, times in (
        ("milliseconds", 1000, [[1.025, 1.05], [1.05, 1.075]]),
        ("PAL-frames", 0, [[1.0, 2.0], [2.0, 3.0]]),
    ):
        content = EAF.format(unit=unit, origin=origin, first="t2")
        assert read(tmp_path / "x.eaf", content)[["start", "end"]].values.tolist() == times
    with pytest.warns(UserWarning, match="left out: line 8: an annotation of the tier 'ann' has no time"):
        assert len(read(tmp_path / "x.eaf", EAF.format(unit="milliseconds", origin=0, first="t4"))) == 1


def test_exponents_and_bad_intervals_of_a_textgrid(tmp_path):
    said = [[1e-05, 2.0, 'say "item [1]" now']]
    assert rows(read(tmp_path / "x.TextGrid", GRID.format(size=1, more=""))) == said
    head = ['"ooTextFile"', '"TextGrid"', "0", "3", "<exists>", "1", '"IntervalTier"', '"ann"', "0", "3", "1"]
    short = "\n".join([*head, "1e-5", "2", '"say ""item [1]"" now"\n'])
    assert rows(read(tmp_path / "x.TextGrid", short)) == said
    (tmp_path / "x.TextGrid").write_text(short, "utf-16")
    assert rows(segments.read(tmp_path / "x.TextGrid")) == said
    (tmp_path / "x.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\n海月\n", "utf-16")
    assert rows(segments.read(tmp_path / "x.srt")) == [[1.0, 2.0, "海月"]]
    bad = 'xmin = 2.5\nxmax = 2\ntext = "x"\n'
    with pytest.warns(UserWarning, match="left out: line 19: .* from 2.5 s to 2 s"):
        assert rows(read(tmp_path / "x.TextGrid", GRID.format(size=2, more=bad))) == said


def test_malformed_files_name_the_line_and_no_library(tmp_path):
    for name, content, line, text in [
        ("x.srt", "1\n00:00:01,000 -> 00:00:02,000\na\n\nrest\n", 2, "not a timing"),
        ("x.vtt", "00:01.000 --> 00:02.000\nx\n", 1, "begins with WEBVTT"),
        ("x.rttm", "SPEAKER a 1 -1 1 <NA> <NA> ann <NA> <NA>\n", 1, "start is '-1'"),
        ("x.ctm", "\n\na 1 1 1\n", 3, "4 fields"),
        ("x.stm", "a 1 ann 2.0 1.0 x\n", 1, "from 2 s to 1 s"),
        ("x.uem", "a 1 0 nan\n", 1, "end is 'nan'"),
        ("x.jsonl", '{"audio_filepath": "a", "duration": null}\n', 1, "duration is None"),
        ("x.jsonl", '{"duration": 1}\n', 1, "no key 'audio_filepath'"),
        ("x.json", '[{"session_id": "a",\n "start_time": 1,,}]', 2, "not valid JSON"),
        ("x.csv", "begin,end\n", 1, "columns start and end"),
        ("x.csv", b"start,end,text\n1,2,ok\n1,2,\xff\n", 3, "neither UTF-8 nor UTF-16"),
        ("x.ttml", "<tt><body>\n<p begin", 2, "this is not valid XML"),
        ("x.ttml", "<a>" * 1000, 1, "the elements are within each other"),
        ("x.ass", "hello", None, "has no section"),
        ("x.eaf", "<a/>", 1, "the first element is 'a'"),
        ("x.TextGrid", GRID.format(size=2, more=""), 18, "the file ends before a time"),
        *((f"x.{kind}", '{"neither": "nor"}', ..., "x") for kind in ("parquet", "TextGrid", "eaf", "json")),
    ]:  # fmt: skip
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(SegmentFileError, match=text) as caught:
            segments.read(path)
        assert line is ... or (caught.value.line, caught.value.path) == (line, str(path))
        assert f"{name}, line {line}" in str(caught.value) or not isinstance(line, int)
        assert not any(
            word in str(caught.value) for word in ("Error(", "KeyError", "praatio", "pympi", "pysubs2")
        )
