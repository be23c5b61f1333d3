"""The table of formats, and reading and writing by it."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from speechlab._brief import shorten_tracebacks
from speechlab._files import expand_user_path, report_write_errors, write_atomically
from speechlab._pandas import pd
from speechlab._untrusted import check_packed_text, open_maybe_gzip
from speechlab.errors import SegmentFileError
from speechlab.segments._changes.captions import LINE_WIDTH, LINES, PACE, fits_in_caption, measure_width
from speechlab.segments._changes.captions import captions as divide
from speechlab.segments._files import annotators, nist, substation, subtitles, tables, ttml
from speechlab.segments._files.source import Row, Sink, SourceFile
from speechlab.segments._frame.schema import COLUMNS, frame

MILLISECOND, CENTISECOND, MICROSECOND = 1e-3, 1e-2, 1e-6


@dataclass(frozen=True)
class Format:
    """A format of files, with the functions that read and write it."""

    name: str
    suffixes: tuple[str, ...]
    about: str
    precision_s: float
    holds: frozenset[str]  # columns that the format keeps
    rows: Callable[[SourceFile], Iterable[Row] | pd.DataFrame]
    write: Callable[[pd.DataFrame, Sink], str | bytes]
    own: frozenset[str] | None = frozenset()  # the user's own columns that it keeps; None for all
    extra: str | None = None
    joins: bool = False  # whether the pieces of a table, one after the other, are the file of the table
    exact: bool = False  # whether texts are kept as they are, whatever characters they have
    shown: bool = False  # whether texts are shown as captions
    tolerant: bool = False  # whether a malformed segment costs itself, not the file
    end: Callable[[Sink], str] | None = None  # end of the file

    @property
    def many(self) -> bool:
        """Whether one file holds many recordings."""
        return "file" in self.holds

    def read(self, source: SourceFile) -> pd.DataFrame:
        """Read a file as a segment frame."""
        rows = self.rows(source)
        if isinstance(rows, pd.DataFrame):
            return source.drop_rows_with_multirow_text(rows)
        return source.build_frame(rows, exact=self.exact, tolerant=self.tolerant)


def _add_time_columns(names: str) -> frozenset[str]:
    return frozenset({"start", "end", *names.split()})


def _build_subtitle_format(
    name: str, suffix: str, about: str, precision: float, holds: str = "text"
) -> Format:
    return Format(
        name,
        (suffix,),
        about,
        precision,
        _add_time_columns(holds),
        ttml.read_ttml if name == "ttml" else substation.read_substation,
        partial(annotators.encode_subtitles, kind=name, step=round(precision * 1000)),
        extra="formats",
        shown=True,
        tolerant=True,
    )


_ALL_COLUMNS = frozenset(COLUMNS)
_FORMATS = (
    Format("srt", (".srt",), "SubRip subtitles", MILLISECOND, _add_time_columns("text"),
           subtitles.read_srt, subtitles.encode_srt, shown=True, tolerant=True),
    Format("vtt", (".vtt",), "WebVTT subtitles", MILLISECOND, _add_time_columns("text speaker"),
           subtitles.read_vtt, subtitles.encode_vtt, shown=True, tolerant=True),
    Format("rttm", (".rttm",), "NIST: who speaks when", MICROSECOND,
           _add_time_columns("file channel speaker confidence"), nist.read_rttm, nist.encode_rttm, joins=True,
           tolerant=True),
    Format("ctm", (".ctm",), "NIST: timed words", MICROSECOND, _add_time_columns("file channel text confidence"),
           nist.read_ctm, nist.encode_ctm, joins=True, tolerant=True),
    Format("stm", (".stm",), "NIST: timed references", MICROSECOND, _add_time_columns("file channel speaker text"),
           nist.read_stm, nist.encode_stm, own=frozenset({"labels"}), joins=True,
           tolerant=True),
    Format("uem", (".uem",), "NIST: what counts", MICROSECOND, _add_time_columns("file channel"),
           nist.read_uem, nist.encode_uem, joins=True, tolerant=True),
    Format("audacity", (".txt",), "Audacity's labels", MICROSECOND, _add_time_columns("text"),
           tables.read_labels, tables.encode_labels, joins=True, tolerant=True),
    Format("nemo", (), "NeMo's manifest, JSON Lines", MICROSECOND, _add_time_columns("file text speaker confidence"),
           partial(tables.read_manifest, names=tables.NEMO, begin="offset"), tables.encode_nemo,
           joins=True, exact=True, tolerant=True),
    Format("lhotse", (), "Lhotse's supervisions, JSON Lines", MICROSECOND,
           _add_time_columns("file text speaker channel"),
           partial(tables.read_manifest, names=tables.LHOTSE, begin="start"), tables.encode_lhotse,
           joins=True, exact=True, tolerant=True),
    Format("seglst", (".json",), "SegLST, a JSON list", MICROSECOND, _add_time_columns("file text speaker"),
           tables.read_seglst, tables.encode_seglst, joins=True, exact=True, end=tables.encode_seglst_end,
           tolerant=True),
    Format("csv", (".csv", ".tsv"), "a table as text", MICROSECOND, _ALL_COLUMNS,
           tables.read_csv, tables.encode_csv, own=None, joins=True, exact=True, tolerant=True),
    Format("parquet", (".parquet",), "a table, exactly", 0.0, _ALL_COLUMNS,
           tables.read_parquet, tables.write_parquet_group, own=None, joins=True, exact=True),
    Format("textgrid", (".textgrid",), "Praat's TextGrid", 1e-4, _add_time_columns("text speaker"),
           annotators.read_textgrid, annotators.encode_textgrid, extra="formats", tolerant=True),
    Format("elan", (".eaf",), "ELAN's annotations", MILLISECOND, _add_time_columns("text speaker"),
           annotators.read_elan, annotators.encode_elan, extra="formats", tolerant=True),
    _build_subtitle_format("ass", ".ass", "Advanced SubStation Alpha", CENTISECOND, "text speaker"),
    _build_subtitle_format("ssa", ".ssa", "SubStation Alpha", CENTISECOND, "text speaker"),
    _build_subtitle_format("ttml", ".ttml", "TTML subtitles", MILLISECOND),
)  # fmt: skip
_BY_NAME = {form.name: form for form in _FORMATS}
_BY_SUFFIX = {suffix: form for form in _FORMATS for suffix in form.suffixes}
_MANIFESTS = (".jsonl", ".jsonlines", ".ndjson")


@dataclass(frozen=True)
class WriteResult:
    """The result of writing a segment frame to a file.

    Attributes:
        path: The file.
        format: Format of the file.
        rows: Number of segments in the file.
        precision_s: Precision of the written times in seconds; 0 if they are exact.
        dropped: Columns with values that the format does not keep.
        notes: Messages about other changes.

    Example:
        >>> write(frame([(0.0, 2.0, "hello")], file="a").assign(mood="calm"), "talk.srt").dropped
        ('file', 'mood')
    """

    path: Path
    format: str
    rows: int
    precision_s: float
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def formats() -> pd.DataFrame:
    """Return the formats that :func:`read` and :func:`write` support.

    Each has one row: ``format``, ``suffixes``, ``about``, ``precision_s``, ``columns`` (columns that it keeps),
    ``recordings`` (``one`` or ``many`` in a file) and ``extra`` (the extra of speechlab for a required library).

    Example:
        >>> formats().query("format == 'rttm'")["recordings"].tolist()
        ['many']
    """
    return pd.DataFrame(
        [
            {
                "format": form.name,
                "suffixes": " ".join(form.suffixes) or " ".join(_MANIFESTS),
                "about": form.about,
                "precision_s": form.precision_s,
                "columns": " ".join(name for name in COLUMNS if name in form.holds),
                "recordings": "many" if form.many else "one",
                "extra": form.extra or "",
            }
            for form in _FORMATS
        ]
    )


@shorten_tracebacks
def read(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - as everywhere
    *,
    file: str | None = None,
    unit: str | None = None,
) -> pd.DataFrame:
    """Read segments from a file.

    Args:
        path: The file; with the suffix ``.gz`` a compressed file.
        format: Format of the file, by default that of its suffix; :func:`formats` lists them. For JSON Lines, the
            first line decides between NeMo and Lhotse.
        file: The recording, for formats without it; by default the file's name without its suffix.
        unit: Unit of the times in CSV and TSV: ``"s"``, the default, or ``"ms"``. It is required for TSV in the form
            of Whisper's command, which has milliseconds: ``start``, ``end`` and ``text``, with whole numbers.

    Returns:
        A segment frame, in the order of the file, without the tags of subtitles. A malformed caption, annotation or
        line is left out, with a warning that names its line; so is a text that holds times of captions, or a tab and
        a line end, since it is several.

    Raises:
        SegmentFileError: The format is not known, or nothing of the file can be read: the error has the line.
        OSError: The file cannot be read.

    Example:
        >>> written = write(frame([(0.5, 2.0, "hello")], file="talk"), "talk.srt")
        >>> read("talk.srt")[["file", "start", "end", "text"]]
           file  start  end   text
        0  talk    0.5  2.0  hello
    """
    place = expand_user_path(path)
    name = place.name
    with open_maybe_gzip(place) as stream:
        if stream_is_packed := name.lower().endswith(".gz"):
            name = name[:-3]
        try:
            data = stream.read()
            if stream_is_packed:
                check_packed_text(place.name, data, place.stat().st_size)
        except ValueError as error:
            raise SegmentFileError(f"{place}: {error}", path=str(place)) from None
        except (OSError, EOFError, zlib.error) as error:
            if not stream_is_packed:
                raise
            raise SegmentFileError(f"{place}: this is not a gzip file: {error}", path=str(place)) from error
    if unit is not None and str(unit) not in {"s", "ms"}:
        raise SegmentFileError(f"unit={unit!r:.40} is not 's' or 'ms'", path=str(place))
    source = SourceFile(str(place), Path(name).stem if file is None else file, data, unit)
    form = _resolve_format(format, Path(name), "read", source)
    try:
        table = form.read(source)
    except SegmentFileError:
        raise
    except (ValueError, OverflowError, RecursionError) as error:  # numbers of 5,000 digits, 1e999
        message = (
            f"{place}: a number is too large, or the file is nested too deeply ({error!s:.80}); correct it"
        )
        raise SegmentFileError(message, path=str(place)) from error
    source.warn_of_omissions(stacklevel=3)
    return table


def choose_format_name(path: str | os.PathLike[str], format: str | None = None) -> str:  # noqa: A002 - as everywhere
    """Return the name of the format that :func:`write` uses for a path, as listed by :func:`formats`."""
    return _resolve_format(format, _strip_gz_suffix(Path(path)), "write").name


@shorten_tracebacks
def write(
    table: pd.DataFrame | Iterable[pd.DataFrame],
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - as everywhere
    *,
    captions: bool = True,
) -> WriteResult:
    """Write segments to a file atomically: the file appears under its name only when it is complete.

    Args:
        table: A segment frame; or an iterable of segment frames, the pieces of a table that need not fit in memory.
            Formats for many recordings are then written piece by piece.
        path: The file; an existing file is replaced. With the suffix ``.gz`` it is compressed.
        format: Format of the file, by default that of its suffix. For JSON Lines it is required: ``"nemo"`` or
            ``"lhotse"``.
        captions: Whether segments become captions in a format of subtitles, as :func:`captions` makes them by
            default: at most two lines of 42 characters, for at most seven seconds. False for a caption for each
            segment as it is, such as for a table that :func:`captions` has made with other options.

    Returns:
        A record of the rounded, dropped and changed values.

    Raises:
        SegmentFileError: The format is unknown or does not support the table, for example several recordings in a
            format for one, or a name with a space where spaces separate the fields; or it cannot be written.
        SegmentError: The table is not a segment frame.
        MissingDependencyError: The format needs a library that is not installed.

    Example:
        >>> written = write(frame([(0.0, 2.0004, "hello")], file="talk"), "talk.srt")
        >>> written.rows, written.precision_s
        (1, 0.001)
    """
    place = expand_user_path(path)
    form = _resolve_format(format, _strip_gz_suffix(place), "write")
    pieces_or_table: object = table  # type hints are not enforced at run time
    if not isinstance(pieces_or_table, Iterable) or isinstance(pieces_or_table, (str, bytes, Mapping)):
        kind = type(table).__name__
        message = f"{place}: expected a segment frame or an iterable of its pieces, not {kind}"
        raise SegmentFileError(message, path=str(place))
    pieces = _check_pieces([table] if isinstance(table, pd.DataFrame) else table, form, place)
    report = report_write_errors(place, partial(SegmentFileError, path=str(place)))
    with report, write_atomically(place) as draft, draft.open("wb") as raw, ExitStack() as stack:
        out: Any = raw
        if place.suffix.lower() == ".gz":
            out = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
        sink = Sink(str(place), out, stack)
        for piece in pieces if form.joins else [_concatenate_pieces(pieces)]:
            _write_piece(piece, form, sink, captions)
        if form.end is not None:
            out.write(form.end(sink).encode("utf-8"))
    notes = tuple(f"{count} {what}" for what, count in sink.notes.items())
    return WriteResult(place, form.name, sink.rows, form.precision_s, tuple(sink.dropped), notes)


def _strip_gz_suffix(place: Path) -> Path:
    return place.with_suffix("") if place.suffix.lower() == ".gz" else place


def _check_pieces(pieces: Iterable[pd.DataFrame], form: Format, place: Path) -> Iterator[pd.DataFrame]:
    """Check the pieces of a table, as they come."""
    files: set[str] = set()
    some = False
    for piece in pieces:
        checked = frame(piece)
        if not form.many:
            files |= set(checked["file"])
            if len(files) > 1:
                message = (
                    f"{place}: a file of the format {form.name} has one recording, and the table has "
                    f"{len(files)}; write one for each: for file, part in frame.groupby('file')"
                )
                raise SegmentFileError(message, path=str(place), column="file")
        some = True
        yield checked
    if not some:
        yield frame([])


def _write_piece(piece: pd.DataFrame, form: Format, sink: Sink, captions: bool) -> None:
    if "text" in form.holds:
        sink.refuse_multirow_texts(piece)
    prepared = (
        piece if form.exact else sink.clean_table_texts(piece, form.holds - {"start", "end", "confidence"})
    )
    if form.shown and captions:
        prepared = _divide_and_note_captions(prepared, sink)
    content = form.write(prepared, sink)
    try:
        sink.out.write(content.encode("utf-8") if isinstance(content, str) else content)
    except UnicodeEncodeError as error:
        sink.raise_fault(f"a text has {error.object[error.start]!r}, half of a character; repair it first")
    sink.rows += len(prepared)
    sink.dropped |= dict.fromkeys(_list_dropped_columns(prepared, form))
    sink.before += len(piece)


def _divide_and_note_captions(table: pd.DataFrame, sink: Sink) -> pd.DataFrame:
    """Return the captions of a table, with notes of what was done and of what could not be done."""
    divided, before = divide(table), set(table["text"])
    texts, shown_s = divided["text"].tolist(), (divided["end"] - divided["start"]).tolist()
    fast = sum(measure_width(text) > PACE * seconds for text, seconds in zip(texts, shown_s, strict=True))
    for count, what in (
        (len(divided) - len(table), "were added, because long segments are split"),
        (
            sum(text not in before for text in texts),
            f"have other line breaks, in lines of at most {LINE_WIDTH} characters",
        ),
        (sum(not fits_in_caption(text) for text in texts), f"have a longer line, or more than {LINES}"),
        (fast, f"show more than {PACE:.0f} characters a second; captions(table, pace={PACE:.0f}) helps"),
    ):
        sink.add_note(count, f"captions {what}")
    return divided


def _concatenate_pieces(pieces: Iterable[pd.DataFrame]) -> pd.DataFrame:
    frames = list(pieces)
    return frames[0] if len(frames) == 1 else frame(pd.concat(frames) if frames else [])


def _resolve_format(name: str | None, place: Path, verb: str, source: SourceFile | None = None) -> Format:
    if name is not None:
        if str(name) in _BY_NAME:
            return _BY_NAME[str(name)]
        message = f"the format {name!r:.60} is not known; choose one of: {', '.join(_BY_NAME)}"
        raise SegmentFileError(message, path=str(place))
    suffix = place.suffix.lower()
    if suffix in _MANIFESTS:
        if source is None:
            message = f"{place}: JSON Lines can be NeMo's or Lhotse's; give format='nemo' or format='lhotse'"
            raise SegmentFileError(message, path=str(place))
        return _BY_NAME["lhotse" if tables.is_lhotse(source) else "nemo"]
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    suffixes = ", ".join([*_BY_SUFFIX, *_MANIFESTS])
    message = (
        f"{place}: the suffix {suffix!r} sets no format to {verb}; give format=, or use one of: {suffixes}"
    )
    raise SegmentFileError(message, path=str(place))


def _list_dropped_columns(table: pd.DataFrame, form: Format) -> tuple[str, ...]:
    extra = [name for name in table.columns if name not in COLUMNS and (form.own is None or name in form.own)]
    return tuple(
        str(name)
        for name in table.columns
        if name not in form.holds
        and name not in extra
        and (name not in COLUMNS or not table[name].isin(["", None]).all())
        and not table[name].isna().all()
    )
