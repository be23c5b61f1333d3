"""Fields of strangers in whatever is written or shown: a field stays a field, whatever it holds."""

import csv
import io
import re
import warnings
from html.parser import HTMLParser

import pandas as pd
import pytest

import speechlab as sl
from speechlab import datasets, evaluate, segments
from speechlab.errors import SegmentFileError, SpeechLabError

MARK = "zq7"
FIELDS = [
    f"<script>{MARK}()</script>",
    f"<!-- <script>{MARK}",
    f"--><b>{MARK}",
    f'"><img src=x onerror={MARK}()>',
    f"' onmouseover='{MARK}()",
    f"</style></title></textarea><iframe src=javascript:{MARK}()>",
    f"javascript:{MARK}()",
    f"&lt;b&gt;{MARK}&#60;i&#62;",
    f"{{{{{MARK}}}}} ${{{MARK}}} <%={MARK}%>",
    f"=HYPERLINK(\"http://strangers.example/{MARK}\")",
    f"@SUM({MARK})",
    f"\t={MARK}",
    f"＝{MARK}",
    f"-2+3+cmd|' /C {MARK}'!A0",
    f"'={MARK}",
    f"\x1b[2J\x1b[31m{MARK}",
    f"\x1b]8;;http://strangers.example\x07{MARK}\x1b]8;;\x07",
    f"{MARK}\x00end",
    f"{MARK}\x08\x08\x08",
    f"{MARK}\nok",
    f"{MARK}\r\n\r\n2\r\n00:00:09,000 --> 00:00:10,000\r\nadded",
    f"{MARK}\n\n00:09.000 --> 00:10.000\nadded",
    f"{MARK}\tok\t9.0",
    f"{MARK} --> ok",
    f"\u202e{MARK}",
    f"\u2066{MARK}",
    f"{MARK}\u2028ok\u2029ok\x85ok",
    f"\ud800{MARK}",
    f"\ufffe{MARK}\uffff",
    f"$\\sum_{{{MARK}}}$ $$x$$",
    f"\\input{{/etc/{MARK}}}",
    f"}}\\def\\x{{{MARK}}} % ~^&#_",
    f"^^5cinput{{{MARK}}}",
    f"![{MARK}](http://strangers.example/a.png)",
    f"[{MARK}](javascript:{MARK}())",
    f"http://strangers.example/{MARK}",
    f"| {MARK} | a |\n|---|",
    f"`{MARK}` **a** # b",
    f"# {MARK}",
    f"---\n{MARK}",
    f"{{\\an8}}{{\\pos(1,1)}}{MARK}",
    f"\\N{MARK},,,Dialogue: 0,0:00:09.00,0:00:10.00,Default,,0,0,0,,added",
    f"<v {MARK}>added</v>",
    f"NOTE {MARK}",
    f";; {MARK}",
    f'"" "{MARK}"',
    f'{MARK}"\n"IntervalTier" "added" 0 1 1 0 1 "added"',
    f"]]>{MARK}<![CDATA[",
    f"<!DOCTYPE a SYSTEM 'file:///etc/passwd'>{MARK}",
    f"../../{MARK}",
    f"file:///etc/{MARK}",
    f"%s%n%x {{0}} {MARK}",
    f"[bold red]{MARK}[/] [link=http://strangers.example]a[/link] [/nothing]",
    MARK + "a" * 2_000,
    MARK + "\u0301" * 300,
    MARK + "".join(f" a{number}" for number in range(60)),
]  # fmt: skip
STEERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)")


class Page(HTMLParser):
    """What a browser would make of a page: the names of its elements, and attributes that do something."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.active = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        for name, value in attributes:
            if (
                MARK in name
                or name.startswith("on")
                or (
                    MARK in (value or "")
                    and name in {"src", "href", "style", "id", "class", "srcdoc", "action"}
                )
            ):
                self.active.append((tag, name, value))


# Half of a pair of surrogates is refused before it is a field.
WHOLE = [field for field in FIELDS if "\ud800" not in field]


def build_report(fields):
    """Return a report whose texts, names, columns and title a stranger chose."""
    other = [*fields[1:], "ten cats"]
    rows = pd.DataFrame(
        {"text": fields, "language": "en", "speaker": other, "one": other, "other": fields[::-1]}
    )
    rows = rows.assign(**{field[:200]: other for field in fields[1:20:4]}, note=fields)
    names = {"one": fields[0], "other": fields[-1]}
    rows = rows.rename(columns=names) if len(set(names.values())) == 2 else rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate.recognition(
            None, rows, hypotheses=list(names.values()), title=" ".join(field[:200] for field in fields)
        )


@pytest.fixture(scope="module")
def report():
    return build_report(WHOLE)


@pytest.fixture(scope="module")
def saved(report, tmp_path_factory):
    return report.save(tmp_path_factory.mktemp("fields") / "report")


@pytest.fixture(scope="module")
def plain():
    """A report of as few rows as have all elements of a page."""
    return build_report([f"ten cats and {number} dogs" for number in range(24)])


@pytest.mark.slow
def test_a_page_has_no_element_of_a_field(report, saved, plain):
    page = Page((saved / "report.html").read_text("utf-8"))
    assert not page.active
    assert set(page.elements) <= set(Page(plain.to_html()).elements)
    for text in (report.answer, repr(report), str(report)):
        assert not STEERS.search(text)


def test_a_table_with_sound_has_no_element_of_a_field():
    frame = pd.DataFrame(
        {"text": WHOLE, "hypothesis": WHOLE[::-1], "audio": WHOLE, WHOLE[0]: "a", WHOLE[4]: "b"}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        page = Page(sl.show(frame, audio="audio").static_html())
    assert not page.active
    assert not {"script", "img", "svg", "iframe", "b", "i", "a"} & set(page.elements)


def test_markdown_shows_a_field_as_it_is(report, plain):
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
    kinds = [
        {
            child.type
            for token in parser.parse(each.to_markdown())
            for child in [token, *(token.children or [])]
        }
        for each in (report, plain)
    ]
    assert kinds[0] <= kinds[1]
    assert not STEERS.search(report.to_markdown())


def test_latex_shows_a_field_as_it_is(report, plain):
    latex = report.to_latex()
    names = "textbackslash textasciitilde textasciicircum textless textgreater textbar textasciigrave hbox"
    allowed = {*(f"\\{sign}" for sign in "{}&%$#_\\"), *(f"\\{name}" for name in names.split())}
    commands, usual = (set(re.findall(r"\\(?:[A-Za-z]+|.)", text)) for text in (latex, plain.to_latex()))
    assert commands <= allowed | usual
    assert "$" not in re.sub(r"\$-\$|\\\$", "", latex)
    assert not STEERS.search(latex)


def test_the_tables_of_a_report_have_no_formula(saved):
    for name in ("results", "summary"):
        with (saved / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            cells = {cell for row in csv.reader(file) for cell in row}
        numbers = re.compile(r"-\d+(\.\d+)?(e-?\d+)?")
        assert not [
            cell for cell in cells if cell[:1] in set("=+-@\t\r＝＋－＠") and not numbers.fullmatch(cell)
        ]
    names = [path.name for path in saved.rglob("*")]
    assert not [name for name in names if STEERS.search(name) or set('<>"|&$\\') & set(name)]


def test_csv_has_no_formula_and_gives_a_field_back(tmp_path):
    fields = [field for field in WHOLE if "added" not in field]
    rows = segments.frame([(number, number + 1.0, field) for number, field in enumerate(fields)], file="a")
    for path, sign in ((tmp_path / "a.csv", ","), (tmp_path / "a.tsv", "\t")):
        segments.write(rows, path)
        with path.open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file, delimiter=sign) for cell in row]
        assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r＝＋－＠") and cell[1:2]]
        assert segments.read(path)["text"].tolist() == fields


# What a format may take for a part of itself.
STRUCTURES = [field for field in FIELDS if set(field) & set('\n\t\r{}\\;"&\0\u2028') and "$" not in field][
    :36
]
FORMATS = [
    (row["format"], (row["suffixes"].split() or [".jsonl"])[0])
    for row in segments.formats().to_dict("records")
]


def find_wrong_rows(name, path, column, fields):
    """Return what is wrong with a file whose every second row has a field in a column; refusals are allowed."""
    times = [float(number) for number in range(2 * len(fields) + 1)]
    rows = segments.frame([(start, start + 1.0, "said") for start in times], file="a").assign(speaker="b")
    rows[column] = rows[column].astype("object")
    rows.loc[1::2, column] = fields
    try:
        written = segments.write(rows, path, format=name)
    except SpeechLabError as error:
        if STEERS.search(str(error)):
            return [(fields, column, "steers")]
        row = re.match(r"row (\d+) ", str(error))
        at = int(row[1]) // 2 if row else 0
        others = [*fields[:at], *fields[at + 1 :]] if row else fields[1:]
        return find_wrong_rows(name, path, column, others) if others else []
    try:
        starts = sorted(segments.read(path, format=name)["start"])
    except SegmentFileError as error:
        return [(fields, column, f"not read: {error}"[:200])]
    # Long captions are divided; what is empty is no caption.
    allowed = set(times) if written.rows <= len(times) else {*times, *starts}
    return [] if len(starts) == written.rows and set(starts) <= allowed else [(fields, column, starts)]


@pytest.mark.slow
def test_a_field_is_no_segment_of_a_file(tmp_path):
    for name, suffix in FORMATS:
        columns = {"text", "speaker", "file"} & set(
            segments.formats().set_index("format").loc[name, "columns"].split()
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for column in sorted(columns):
                fields = STRUCTURES if column == "text" else STRUCTURES[::4]
                assert not find_wrong_rows(name, tmp_path / f"a{suffix}", column, fields)


def test_no_warning_and_no_error_steers_the_terminal(tmp_path):
    for field in filter(STEERS.search, FIELDS):
        said = io.StringIO()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for name, text in (
                ("a.csv", f'audio,text\n"{field}",a\n'),
                ("a.jsonl", f'{{"audio": "a"}}\n{field}\n'),
                ("a.ctm", f"a 1 0 1 x\n{field} 1 x 1\n"),
                ("a.srt", f"1\n00:00:00,000 --> 00:00:01,000\nx\n\n2\n00:00:01,00 --> {field}\ny\n"),
            ):
                (tmp_path / name).write_text(text, "utf-8", "surrogatepass", newline="")
                try:
                    (segments if name in {"a.ctm", "a.srt"} else datasets).read(tmp_path / name)
                except SpeechLabError as error:
                    said.write(str(error))
        said.write("".join(str(warning.message) for warning in caught))
        assert not STEERS.search(said.getvalue()), field
