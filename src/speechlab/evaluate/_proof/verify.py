"""Whether the numbers of a report follow from its rows, sounds and store: each is computed again, offline."""

from __future__ import annotations

import json
import lzma
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab import batch
from speechlab._brief import shorten_tracebacks
from speechlab._files import expand_user_path
from speechlab._pandas import pd
from speechlab._platform import get_package_version
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError, StoreError
from speechlab.evaluate._proof.anew import recompute_report
from speechlab.evaluate._proof.compared import NumberCheck, parse_page_json
from speechlab.evaluate._proof.compared_page import compare_page, read_page
from speechlab.evaluate._report import Report
from speechlab.evaluate._voices.voices_report import list_voice_key_columns
from speechlab.evaluate._voices.voices_study import measure_sounds
from speechlab.evaluate._writing.folder import compare_file_hashes
from speechlab.evaluate._writing.page import find_and_compute_seal, parse_report

if TYPE_CHECKING:
    from speechlab.evaluate._writing.contents import Contents


_RECORD = re.compile(r"<pre>(\{[^<]*\})</pre>")
_ELEMENT_IDS = ("report", "data")
_MAX_DIFFERENCES = 3


@dataclass(frozen=True, eq=False, repr=False)
class Proof:
    """Whether the numbers of a report follow from its rows.

    Attributes:
        title: Title of the report.
        numbers: How many numbers were computed again and compared.
        unequal: One row for each place that differs: ``place``, ``reported`` (in the report) and
            ``recomputed`` (from its rows).
        notes: What was not compared, and why places may differ.
        digest: The SHA-256 that covers the whole page, or the record of a folder, which has those of all its files.
            Whoever signs it signs the report.

    Example:
        >>> Proof("Voices", 1_204, pd.DataFrame(columns=["place", "reported", "recomputed"])).answer
        '1,204 numbers recomputed, all equal.'
    """

    title: str
    numbers: int
    unequal: pd.DataFrame
    notes: tuple[str, ...] = ()
    digest: str = ""

    @property
    def answer(self) -> str:
        """Whether all numbers are equal, and else which differ first."""
        if not len(self.unequal):
            return f"{self.numbers:,} numbers recomputed, all equal."
        first = self.unequal.head(_MAX_DIFFERENCES).itertuples(index=False)
        lines = "; ".join(
            f"{row.place}: {row.reported:.60} reported, {row.recomputed:.60} recomputed" for row in first
        )
        more = "; …" if len(self.unequal) > _MAX_DIFFERENCES else ""
        places = format_count(len(self.unequal), "place differs", "places differ")
        return f"{places} among {self.numbers:,} numbers recomputed: {lines}{more}."

    def __bool__(self) -> bool:
        return not len(self.unequal)

    def __repr__(self) -> str:
        return "\n".join([f"{self.title}: {self.answer}", *self.notes])


@shorten_tracebacks
def verify(path: str | os.PathLike[str], *, store: str | os.PathLike[str] | None = None) -> Proof:
    """Compute every number of a saved report again from the rows in it, without a network, and compare.

    Texts are scored and classed again; rates, intervals, tests, rankings, attribution, findings and the answer follow
    from them as in the study. Of a folder the tables, the record and the page are compared, and the sounds of voices
    measured again; of a page its words, its rows, its figures,
    styles and scripts, and its hash. Times of calls are taken as
    they are, and so are the measures of sound of a page and those of the user.

    Args:
        path: A folder or a page that ``report.save`` wrote.
        store: Folder of the store of its batches, to go further back: the replies in it are compared with their
            digests, and the texts of the rows with the replies. None for the report alone.

    Raises:
        InvalidRequestError: The report is of a study that cannot be computed from its rows, or the page lacks them.
        StoreError: There is no report, or it is damaged.

    Example:
        >>> rows = pd.DataFrame({"text": ["ten cats"], "language": ["en"], "recognized": ["ten hats"]})
        >>> verify(recognition(None, rows, hypotheses="recognized").save("page.html")).answer[-30:]
        'numbers recomputed, all equal.'
    """
    if isinstance(path, Report):
        message = "path is a Report in memory; verify what report.save('report') wrote"
        raise InvalidRequestError(message, parameter="path")
    where = expand_user_path(path)
    compared = NumberCheck()
    further: list[str] = []
    if where.is_dir():
        reported: Contents = Report.load(where)
        anew = recompute_report(reported)
        compared.compare_contents(reported, anew)
        if reported.study == "voices":
            further.append(remeasure_and_compare_sounds(compared, reported))
        page = where / "report.html"
        if page.is_file():
            text = read_page(page)
            further += compare_page(compared, text, parse_page_json(text, *_ELEMENT_IDS), Report.of(anew))
        digest, changed = compare_file_hashes(where)
        for name, *digests in changed:
            compared.compare_digests(f"file {name}", *digests)
    else:
        text = read_page(where)
        held = parse_page_json(text, *_ELEMENT_IDS)
        reported = _parse_page_report(text, held, where)
        anew = recompute_report(reported)
        further += compare_page(compared, text, held, Report.of(anew))
        seal, digest = find_and_compute_seal(text)
        compared.compare_digests("page, sha256", seal, digest)
        if reported.study == "voices":
            further.append("Measures of sound were taken as they are; a folder has the sounds.")
    if store is not None:
        further.append(compare_with_store(compared, reported, store))
    unequal = pd.DataFrame(compared.unequal, columns=["place", "reported", "recomputed"], dtype="string")
    notes = (
        *further,
        *(_list_version_notes(reported) if len(unequal) else ()),
        *_list_unverified_parts(reported),
    )
    return Proof(reported.title, compared.numbers, unequal, notes, digest)


def open_report(path: str | os.PathLike[str]) -> Report:
    """Return the report of a folder; or of a page, made anew from its rows, without recordings."""
    where = expand_user_path(path)
    if where.is_dir():
        return Report.load(where)
    text = read_page(where)
    held = parse_page_json(text, *_ELEMENT_IDS)
    anew = recompute_report(_parse_page_report(text, held, where))
    sounds = [name for name in held["report"]["sounds"] if name in anew.table.columns]
    return Report.of(replace(anew, table=anew.table.assign(**dict.fromkeys(sounds))))


def _parse_page_report(text: str, held: Mapping[str, Any], page: Path) -> Contents:
    """Return the report that a page holds."""
    data = held.get("report")
    if data is None:
        message = (
            f"{page.name} lacks its rows as data, so it is no page that this version of speechlab saved; save the "
            "report again, or give its folder"
        )
        raise InvalidRequestError(message, parameter="path")
    try:
        record = _RECORD.search(text)
        return parse_report(data, json.loads(unescape(record[1])) if record else {})
    except (ValueError, KeyError, TypeError, OSError, lzma.LZMAError) as error:
        cause = f"({type(error).__name__}: {error})"
        message = f"the rows in {page} are damaged, or of another version of speechlab {cause}; save the report again"
        raise StoreError(message) from error


def _list_version_notes(report: Contents) -> list[str]:
    """Return what makes an honest report differ: another version made it."""
    made_by, version = str(report.record.get("speechlab", "")), get_package_version()
    if not made_by or made_by == version:
        return []
    return [f"The report was made by speechlab {made_by}; this is {version}, whose rules may differ."]


def _list_unverified_parts(report: Contents) -> tuple[str, ...]:
    notes = []
    if len(report.speed):
        notes.append(f"The times of {len(report.speed):,} calls were taken as they are.")
    if report.study == "watch":
        notes.append("Of runs between the first and the newest, errors and times were taken as they are.")
    if len(report.tables.get("measures", ())):
        notes.append("Measures other than the error rates were not recomputed.")
    return tuple(notes)


# Columns of a report that have what a batch of an operation returned.
_SERVICE_TEXTS = {"transcribe": ("hypothesis",), "translate": ("translation", "back_translation")}


def compare_with_store(compared: NumberCheck, report: Contents, store: str | os.PathLike[str]) -> str:
    """Compare a report with the store of its batches; return what was compared, in a sentence."""
    texts: dict[str, Counter[str]] = {}
    results, runs = 0, report.record.get("runs", ())
    for number, recorded in enumerate(runs):
        place = f"store, batch {number}"
        try:
            run = batch.load(str(recorded["id"]), str(store))
            verified = run.verify()
            compared.compare_digests(
                place, str(recorded.get("output_sha256")), str(run.manifest.get("output_sha256"))
            )
            compared.compare_digests(place, "as recorded", "; ".join(verified.problems) or "as recorded")
            results += verified.results
            for column in _SERVICE_TEXTS.get(run.record.operation, ())[:1]:
                cells = run.table()[f"{run.manifest.get('prefix', '')}{column}"].dropna().astype(str)
                texts.setdefault(run.record.operation, Counter()).update(cells)
        except (StoreError, InvalidRequestError) as error:
            compared.compare_digests(place, "a batch", f"not in this store ({error})")
    for operation, replies in texts.items():
        reported: Counter[str] = Counter()
        for column in _SERVICE_TEXTS[operation]:
            reported.update(_list_service_texts(report, column))
        for text, count in (reported - replies).items():
            compared.compare_digests(f"store, {operation}, {count} rows", text, "no such reply")
    return f"{results:,} replies of {len(runs):,} batches were compared with the store."


def _list_service_texts(report: Contents, column: str) -> list[str]:
    """Return the texts of a column that a service was asked for; those that existed before are in no store."""
    rows = report.table
    had = report.record.get("asked", {}).get("arguments", {}).get("hypotheses") or ()
    if column not in rows.columns:
        return []
    if had and "system" in rows.columns:
        rows = rows[~rows["system"].isin([had] if isinstance(had, str) else list(had))]
    return rows[column].dropna().astype(str).tolist()


def remeasure_and_compare_sounds(compared: NumberCheck, report: Contents) -> str:
    """Measure the recordings of a study of voices again, and compare; return what was compared, in a sentence."""
    text, language = (report.columns.get(role, role) for role in ("text", "language"))
    reported = report.table.reset_index(drop=True)
    keys = [name for name in list_voice_key_columns(reported, language) if name != language]
    rows = reported[[*keys, "audio", "duration_s", text, language]]
    rated = int(report.record.get("settings", {}).get("dnsmos") or 0)
    without = rated > 0 and find_spec("speechmos") is None
    sounds = measure_sounds(
        rows, text, language, 0 if without else rated, progress=False, measures={}, store=None
    )
    new = [name for name in sounds.columns if name not in rows.columns]
    new = [name for name in new if not (without and name.startswith("dnsmos_"))]
    compared.compare_frames("sounds", reported, sounds[new])
    sentence = f"The sounds of {format_count(int(rows['audio'].notna().sum()), 'clip')} were measured again."
    return f"{sentence} Their DNSMOS was taken as it is: speechmos is not installed." if without else sentence
