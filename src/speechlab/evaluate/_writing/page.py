"""The page of a report: findings, figures, rows with sound, methods and record, and what proves it.

For its verification a page holds its rows as data, the hashes of its figures, and its own.
"""

from __future__ import annotations

import base64
import lzma
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from speechlab._arguments import is_missing
from speechlab._pandas import pd
from speechlab._untrusted import load_json, unpack_lzma
from speechlab.display import Html, element, escape, format_count, join, join_with_and, render_details
from speechlab.evaluate._study_columns import NO_SPEAKER, RECOMPUTABLE, SCORING
from speechlab.evaluate._writing.columns import format_language
from speechlab.evaluate._writing.contents import MANY_ROWS, SHOWN_ROWS, Contents, ShownRows, to_findings
from speechlab.evaluate._writing.record import describe_failures
from speechlab.evaluate._writing.recordings import list_sound_columns

if TYPE_CHECKING:
    from speechlab.evaluate._writing.columns import RowFinder

# Languages that the line above the answer names.
_MAX_LANGUAGES = 3
_DIRECTION_MARKS = re.compile(r"[\u202a-\u202e\u2066-\u2069]")


def render_page(
    report: Contents,
    above: Iterable[Html],
    figures: Mapping[str, tuple[bytes, bytes]],
    rows: Any,
    max_bytes: int,
) -> str:
    """Return the page."""
    head, below = render_page_parts(report, above, figures, sound=rows.has_sound)
    held = _render_data_script(to_embedded_json(report, figures, sound=rows.has_sound))
    page: str = rows.render_page(replace_direction_marks(report.title), head, below + held, max_bytes)
    return _SEAL_VALUE.sub(find_and_compute_seal(page)[1], page, count=1)


def render_page_shell(
    report: Contents,
    above: Iterable[Html],
    figures: Mapping[str, tuple[bytes, bytes]],
    rows: Any,
    *,
    sound: bool,
) -> str:
    """Return the page without its data, as verification compares it with a page of which they are removed."""
    head, below = render_page_parts(report, above, figures, sound=sound)
    shell: str = rows.render_shell(
        replace_direction_marks(report.title), head, below + _render_data_script("")
    )
    return shell


def _render_data_script(data: str) -> Html:
    return Html(f'<script type="application/json" id="report">{data}</script>')


def render_page_parts(
    report: Contents, above: Iterable[Html], figures: Mapping[str, tuple[bytes, bytes]], *, sound: bool
) -> tuple[Html, Html]:
    """Return the parts above and below the rows."""
    answer, record, methods = report.conclusion, report.record, report.said
    note = ""
    rows = len(report.resolve_frame(report.shown.frame))
    if rows > MANY_ROWS and not report.shown.options.get("names"):
        worst = f"the {SHOWN_ROWS:,} with most errors and " if report.shown.scored else ""
        note = f" Of {rows:,} rows, {worst}a random sample of {SHOWN_ROWS:,} are shown; figures are of all."
    if sound:
        note += " Sounds are previews (Opus)."
    sorting = element("span", "Click a column to sort.", class_="on-screen")
    figures_drawn = [_render_figure(name, *vectors) for name, vectors in figures.items()]
    kicker = [*_describe_scope(report), *filter(None, [str(record.get("made", ""))[:10]])]
    hear = (
        join("", [" ", element("a", "Hear them below.", href="#rows", class_="on-screen")]) if sound else None
    )
    lines = join(Html("<br>"), answer.certainty.split("\n"))
    certainty = [element("p", lines, hear, class_="sure", dir="auto")] if answer.certainty else []
    head = join(
        "",
        [
            element("p", join(Html(" · "), [element("strong", report.title), *kicker]), class_="kicker"),
            element("h1", answer.text, dir="auto"),
            *certainty,
            *figures_drawn[:1],
            *above,
            *figures_drawn[1:],
            _render_heading("Rows"),
            element("p", sorting, note),
        ],
    )
    method_findings = [
        element("p", str(finding), dir="auto") for finding in report.findings if finding.shown == "method"
    ]
    sources = (
        element("ol", *(element("li", source) for source in methods.sources)) if methods.sources else None
    )
    written = orjson.dumps(dict(record), option=orjson.OPT_INDENT_2, default=str).decode() if record else ""
    below = join(
        "",
        [
            _render_heading("Method"),
            render_details("How this was found", *method_findings, element("p", methods.text), sources),
            render_details("Record of the run", element("pre", written)) if written else None,
            element(
                "footer", join(Html(" · "), [f"{name}: {value}" for name, value in report.facts.items()])
            ),
        ],
    )
    return Html(replace_direction_marks(head)), Html(replace_direction_marks(below))


def _describe_scope(report: Contents) -> list[str]:
    """What was studied, in numbers: systems, speakers, listeners, texts and languages."""
    table, role = report.table, report.columns
    table = table[table["role"] != "check"] if "role" in table.columns else table
    study = report.record.get("now", {}).get("study", report.study)  # of changes, that of both reports
    nouns = {"listener": "listener", "item": "item", "system": "system"}
    nouns["voice"] = "speaker" if study == "recognition" else "voice"
    nouns |= {"condition": "condition", role.get("text", "text"): "text"}
    counts = {
        noun: len({*map(str, table[name].dropna())} - {NO_SPEAKER})
        for name, noun in nouns.items()
        if name in table.columns
    }
    if study == "listening" and "other" in table.columns:  # pairs have two systems each
        counts["system"] = pd.concat([table["system"], table["other"].dropna()]).map(str).nunique()
    codes = [
        table[role[name]] for name in ("source_lang", "target_lang", "language") if role.get(name) in table
    ]
    names = dict.fromkeys(
        format_language(str(code)) for column in codes for code in column.dropna().map(str).unique()
    )
    counted = [format_count(count, noun) for noun, count in counts.items() if count > 1 or noun == "text"]
    return [*counted, *([join_with_and([*names])] if 0 < len(names) <= _MAX_LANGUAGES else [])]


def build_row_finder(shown: Collection[str], roles: Mapping[str, str]) -> RowFinder:
    """Return a function that returns the filter of rows, as JSON, if the columns that a page shows allow it.

    Columns of systems that stand side by side end with the name of the system. Categories have a text, several or a
    tick, ranges two numbers, the second of which may be missing.
    """

    def find_rows(behind: Mapping[str, Any]) -> str:
        known = {roles.get(name, name): value for name, value in behind.items() if value != NO_SPEAKER}
        ends: dict[str, str] = {}
        if "system" not in shown and f"hypothesis_{known.get('system')}" in shown:
            system = known.pop("system")
            ends = {name: f"{name}_{system}" for name in known if f"{name}_{system}" in shown}
        names = {name: ends.get(name, name) for name in known}
        if not set(names.values()) <= set(shown):
            return ""
        values = {names[name]: value for name, value in known.items()}
        ranges = [[name, value] for name, value in values.items() if isinstance(value, list)]
        categories = [
            [name, list(value) if isinstance(value, tuple) else ["✓" if value is True else value]]
            for name, value in values.items()
            if not isinstance(value, list)
        ]
        return orjson.dumps({"categories": categories, "ranges": ranges}).decode()

    return find_rows


def render_failures(report: Contents, find_rows: RowFinder | None) -> Html | None:
    """Return a sentence on the rows of each system that failed, with a link to them; None if none failed."""
    if "error" not in report.table:
        return None
    tables = {"": report.table}
    if report.systems:
        tables = {name: report.table[report.table["system"].astype(str) == name] for name in report.systems}
    parts: list[Any] = []
    for name, table in tables.items():
        parts += filter(None, [describe_failures(table["error"].dropna(), len(table), name)])
        failed = table["status"][table["error"].notna()] if "status" in table.columns else table.index[:0]
        common: dict[str, Any] = {"status": tuple(map(str, failed.unique()))}
        common |= {"system": name} if name else {}
        if len(failed) and find_rows is not None and (rows := find_rows(common)):
            parts.append(element("a", "Show them.", href="#rows", data_rows=rows))
    return element("p", join(" ", parts), dir="auto") if parts else None


def replace_direction_marks(text: str) -> str:
    """Return a text without characters that change the writing direction of all following text."""
    return _DIRECTION_MARKS.sub("\N{REPLACEMENT CHARACTER}", text)


def _render_heading(name: str) -> Html:
    return element("h2", name, id=name.lower())


def _render_figure(name: str, vectors: bytes, phone: bytes) -> Html:
    """Return a figure as an image, with an alternative text."""
    wide, narrow = (
        f"data:image/svg+xml;base64,{base64.b64encode(drawing).decode('ascii')}"
        for drawing in (vectors, phone)
    )
    alternative = f"Figure: {name}. Its numbers are in the tables above."
    # An image runs no scripts and loads nothing, whatever its content.
    image = Html(
        f'<picture><source media="(max-width: 640px)" srcset="{narrow}">'
        f'<img src="{wide}" alt="{escape(alternative)}"></picture>'
    )
    return element("figure", image, element("figcaption", name), aria_label=name)


_FORMAT = 1
# Placeholder of the hash of a page while that is computed.
SEAL = "0" * 64
# Placeholder in rows for a sound of the page.
_SOUND = "sound.opus"
_TYPE = re.compile(r"[A-Za-z]{2,}\d{0,2}(?:\[[\w, /+-]{1,40}\])?")
_SEAL_VALUE = re.compile(r'(?<="seal":")[0-9a-f]{64}(?=")')
# Further tables that a report is made of.
_TABLES = (
    "now",
    "earlier",
    "speechless",
    "measures",
    "speed_now",
    "speed_earlier",
    "values",
    "corrections",
    "uncorrected",
)


def to_embedded_json(report: Contents, figures: Mapping[str, tuple[bytes, bytes]], *, sound: bool) -> str:
    """Return the data as JSON that ends neither its HTML element nor, with U+2028 or U+2029, a line."""
    by_study = {"listening": frozenset[str](), "round_trip": SCORING, "voices": SCORING, "speech": SCORING}
    follows = by_study.get(report.study, RECOMPUTABLE)
    sounds = [
        *list_sound_columns(report.table),
        *list_sound_columns(report.tables.get("sounds", pd.DataFrame())),
        *filter(None, [report.columns.get("audio")]),
    ]
    left_out = follows.union(sounds)  # the page has its own sounds
    rows = {"now", "earlier"} if report.study == "changes" else {"table"}
    frames = {"table": report.table} if "table" in rows else {}
    names = (*_TABLES, *(["sounds"] if report.study == "listening" else []))
    frames |= {name: report.tables[name] for name in names if name in report.tables}
    for name in (rows | {"sounds"}) & set(frames):
        frames[name] = frames[name][[column for column in frames[name].columns if column not in left_out]]
    frames["speed"] = report.speed
    data = {
        "format": _FORMAT,
        "seal": SEAL,
        "study": report.study,
        "title": report.title,
        "columns": dict(report.columns),
        "notes": list(report.notes),
        "findings": [vars(column) for column in report.findings] if report.study == "listening" else [],
        "sound": sound,
        "sounds": sounds,
        "figures": {name: hash_figure(*forms) for name, forms in figures.items()},
        "frames": _pack_tables({name: frame for name, frame in frames.items() if len(frame)}),
    }
    text = orjson.dumps(data, default=str).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def find_and_compute_seal(page: str) -> tuple[str, str]:
    """Return the hash that a page says it has, and the one it has; how its lines end makes no difference."""
    seal = _SEAL_VALUE.search(page)
    words = "\n".join(_SEAL_VALUE.sub(SEAL, page, count=1).split())
    return seal[0] if seal else "", sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


def hash_figure(vectors: bytes, phone: bytes) -> str:
    """Return the hash of a figure and of its form for a phone."""
    return sha256(vectors + phone).hexdigest()


def parse_report(data: Mapping[str, Any], record: Mapping[str, Any]) -> Contents:
    """Return the report that a page holds, without what follows from its rows; the page shows its record.

    Raises:
        ValueError, KeyError, TypeError: The data are damaged.
    """
    packed = base64.b64decode(data["frames"])
    tables = load_json(unpack_lzma(packed), len(packed))
    frames = {
        table: pd.DataFrame(
            {name: pd.Series(values, dtype=_check_type(kind)) for name, (kind, values) in columns.items()}
        )
        for table, columns in tables.items()
    }
    for name in {"sounds"} & set(frames) or {"table", "now"} & set(frames):
        sounds = dict.fromkeys(data["sounds"], _SOUND if data["sound"] else None)
        frames[name] = frames[name].assign(**sounds)
    return Contents(
        str(data["title"]),
        frames.pop("table", pd.DataFrame()),
        pd.DataFrame(),
        study=str(data["study"]),
        findings=to_findings(data["findings"]),
        notes=tuple(data["notes"]),
        speed=frames.pop("speed", pd.DataFrame()),
        tables=frames,
        columns=dict(data["columns"]),
        shown=ShownRows(),
        record=record,
    )


def _check_type(name: str) -> str:
    """Return the type of a column; a ValueError for one whose cells have a width, such as S300000000."""
    if not _TYPE.fullmatch(name):
        raise ValueError(f"a column has the type {name!r:.40}")
    return "object" if name == "category" else name


def _pack_tables(frames: Mapping[str, pd.DataFrame]) -> str:
    """Return the columns with their types as compressed JSON; a column of values that JSON lacks is left out."""
    tables = {
        table: {
            name: (str(cells.dtype), values)
            for name, cells in frame.items()
            if isinstance(name, str) and (values := _to_json_cells(cells)) is not None
        }
        for table, frame in frames.items()
    }
    return base64.b64encode(lzma.compress(orjson.dumps(tables))).decode()


def _to_json_value(cell: Any) -> Any:
    if is_missing(cell):
        return None
    if isinstance(cell, date | timedelta):
        return str(cell)
    return cell.item() if hasattr(cell, "item") else cell


def _to_json_cells(cells: pd.Series[Any]) -> list[Any] | None:
    """The cells as JSON has them, dates and durations as texts; None if it has none for them, as for sounds."""
    values = [_to_json_value(cell) for cell in cells.tolist()]
    try:
        orjson.dumps(values)
    except TypeError:
        return None
    return values
