"""A batch of speech whose lines are checked: recognized, measured, and spoken again where something is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from speechlab._arguments import require_columns
from speechlab._pandas import pd
from speechlab._traces import warn_user
from speechlab.batch._caller import plan_table, process_table
from speechlab.batch._options import CallingOptions, CheckingOptions, check_and_sort_options
from speechlab.batch._outcome import find_user_stacklevel
from speechlab.batch._plan.columns import build_column, collect_result_columns
from speechlab.batch._plan.parameters import Column, SynthesisParameters, Value, split_columns_and_values
from speechlab.batch._plan.source import Partitions, Table, open_source
from speechlab.batch._plan.steps import SynthesisStep
from speechlab.batch._store_options import CHUNK_ROWS, KeepingOptions, use_store
from speechlab.batch._table.assemble import RUN_ATTRIBUTE, join_frames, to_requested_form
from speechlab.batch._table.failures import suppress_failure_warnings
from speechlab.batch._takes.judge import Judge, SpokenTake
from speechlab.batch._takes.lines import LineTake, ScriptLine, iter_other_cuts
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError
from speechlab.text import language_code, list_language_codes

if TYPE_CHECKING:
    from speechlab.client import Client
    from speechlab.store import Store

# Columns that a check adds, and their types.
_COLUMNS = {"transcript": "string", "take": "Int64", "takes": "Int64", "check": "category", "why": "string"}
_TEXT = "speechlab: text of the take"
_SPENT = ("attempts", "usage_characters", "usage_audio_s", "usage_tokens")
# Options of the calls that make speech, and of those that recognize it. The budget is for the speech.
_SHARED = (
    "concurrency",
    "rate",
    "give_up_after_s",
    "progress",
    "executor",
    "max_error_share",
    "retry_failed",
)
# A temperature at which a voice that has one reads otherwise.
_WARM = 1.0
_MADE = ("ok", "cached")
_NOT_TAKEN = "not taken again"


def synthesize_with_check(lab: Client, frame: Table, given: Mapping[str, Any]) -> pd.DataFrame:
    """Synthesize each row, check it, and make other takes of what is wrong; see ``speechlab.batch.synthesize``."""
    lists = SynthesisParameters, KeepingOptions, CallingOptions, CheckingOptions
    parameters, keeping, calling, checking = check_and_sort_options("synthesize", given, *lists)
    source = open_source(frame, "text")
    if isinstance(source.frames, Partitions):
        message = "check= compares all lines of a voice, and no table of Dask is whole; give frame.compute()"
        raise InvalidRequestError(message, parameter="check")
    if source.series and parameters["text"] == "text":
        parameters = {**parameters, "text": source.columns[0]}
    pieces = list(source.iter_pieces(CHUNK_ROWS))
    whole = pieces[0] if len(pieces) == 1 else pd.concat(pieces) if pieces else pd.DataFrame()
    with use_store(keeping["store"]) as store:
        speaking = {**parameters, **keeping, **calling, "store": store, "columns": "all"}
        table = CheckedTakes(lab, whole, speaking, checking, store).make_table()
    return to_requested_form(table, source, keeping["prefix"], keeping["columns"])


class CheckedTakes:
    """The takes of a table: made in rounds, each of the lines that still need one."""

    def __init__(
        self,
        lab: Client,
        whole: pd.DataFrame,
        speaking: Mapping[str, Any],
        checking: CheckingOptions,
        store: Store,
    ) -> None:
        self._lab, self._whole, self._speaking, self._store = lab, whole, speaking, store
        self._most, self._fallback = checking["takes"], checking["fallback_voice"]
        self._prefix, self._budget = speaking["prefix"], speaking["budget"]
        _check_new_columns(whole, self._prefix)
        self._lines = _read_lines(whole, speaking["text"], checking["language"])
        recognizer: Any = checking["check"]
        self._judge = Judge(recognizer, {name: speaking[name] for name in _SHARED} | {"store": store})
        if self._fallback is not None:  # a voice that is not there is refused before anything is paid
            planning = {
                name: speaking[name] for name in speaking if name not in CallingOptions.__annotations__
            }
            plan_table(lab, SynthesisStep, whole.iloc[:0], {**planning, "voice": self._fallback})
        self._pieces: list[pd.DataFrame] = []
        self._owners: list[int] = []
        self._variations: dict[str, dict[str, Any] | None] = {}
        self._stopped = ""

    def make_table(self) -> pd.DataFrame:
        """Make all takes, and return the table with the best of each line."""
        self._take(self._lines, {})
        for number in range(1, self._most):
            pending = [line for line in self._lines if line.needs_take]
            self._probe_voices(pending)
            pending = [line for line in pending if line.needs_take and line.spoken <= number]
            rounds: dict[str, tuple[dict[str, Any], list[ScriptLine]]] = {}
            for line in pending:
                if (changes := self._choose_changes(line, number)) is not None:
                    rounds.setdefault(repr(changes), (changes, []))[1].append(line)
            for changes, lines in rounds.values():
                self._take(lines, changes)
        if left := sum(line.ended.startswith(_NOT_TAKEN) for line in self._lines):
            text = f"{format_count(left, 'line')} {_NOT_TAKEN}: {self._stopped}"
            warn_user(text, stacklevel=find_user_stacklevel())
        return self._join_best_takes()

    def _choose_changes(self, line: ScriptLine, number: int) -> dict[str, Any] | None:
        """Return what is changed for the next take of a line; None for no other take."""
        if self._stopped:
            line.ended = f"{_NOT_TAKEN}: {self._stopped}"
            return None
        alike = line.is_alike_in_every_take
        can_fall_back = self._fallback is not None and not line.fell_back
        if can_fall_back and (alike or number == self._most - 1):
            return {"voice": self._fallback}
        varies = self._variations.get(line.takes[0].voice)
        if varies is not None and not alike:
            return {"repeat": self._speaking["repeat"] + line.spoken, **varies}
        if not alike and next((cut for cut in iter_other_cuts(line.text) if cut not in line.sent), None):
            return {"text": Column(_TEXT)}
        if can_fall_back:
            return {"voice": self._fallback}
        line.ended = "its voice reads it in one way only"
        return None

    def _probe_voices(self, pending: Sequence[ScriptLine]) -> None:
        """Take one line of each voice again, to know whether another take is another reading, or a warmer one."""
        first = {line.takes[0].voice: line for line in reversed(pending)}
        most = self._most - (self._fallback is not None)  # the last take is that of the other voice
        for voice, line in first.items():
            if voice in self._variations:
                continue
            self._variations[voice] = None
            for varies in ({}, {"temperature": Value(_WARM)}):
                made = len(line.takes)
                if self._stopped or line.spoken >= most or self._variations[voice] is not None:
                    break
                with suppress(InvalidRequestError):  # the service has no temperature
                    self._take([line], {"repeat": self._speaking["repeat"] + line.spoken, **varies})
                if any(take.audio != line.takes[0].audio for take in line.takes[made:]):
                    self._variations[voice] = varies

    def _take(self, lines: Sequence[ScriptLine], changes: dict[str, Any]) -> None:
        """Have lines spoken in one way, and judge what comes."""
        if not lines and self._pieces:
            return
        place = len(self._owners)
        table = self._speak(lines, changes)
        cells = zip(*(table[self._prefix + name].tolist() for name in ("status", "audio")), strict=True)
        requests = self._find_requests(table[self._prefix + "key"].tolist())
        voices = [str(request.get("voice_id") or request.get("voice") or "") for request in requests]
        if not place:
            self._fill_languages(voices)
        spoken: list[SpokenTake] = []
        for at, (line, (status, audio)) in enumerate(zip(lines, cells, strict=True)):
            number = line.spoken
            if status == "cancelled" and changes:
                line.ended = f"{_NOT_TAKEN}: {self._stopped}"
                continue
            line.spoken += 1
            if "voice" in changes:
                line.fell_back.add(number)
            if status in _MADE:
                sent = str(requests[at].get("text") or "")
                spoken.append(SpokenTake(line, LineTake(place + at, number, audio, voices[at], sent)))
        for each, take in zip(spoken, self._judge.judge_takes(spoken), strict=True):
            each.line.takes.append(take)

    def _speak(self, lines: Sequence[ScriptLine], changes: dict[str, Any]) -> pd.DataFrame:
        rows = self._whole
        options = {**self._speaking, **changes, "budget": self._budget}
        if self._pieces:
            rows = rows.iloc[[line.position for line in lines]]
            options["on_error"] = "row"
        if isinstance(changes.get("text"), Column):
            cuts = [next(cut for cut in iter_other_cuts(line.text) if cut not in line.sent) for line in lines]
            for line, cut in zip(lines, cuts, strict=True):
                line.sent.add(cut)
            rows = rows.assign(**{_TEXT: cuts})
        with ExitStack() as stack:
            if self._pieces:  # rows that failed are in the table with their first take
                stack.enter_context(suppress_failure_warnings())
            table = process_table(self._lab, SynthesisStep, rows, options)
        self._pieces.append(table)
        self._owners += [line.position for line in lines]
        self._count_spending(table.attrs.get(RUN_ATTRIBUTE))
        return table

    def _find_requests(self, keys: Sequence[Any]) -> list[Mapping[str, Any]]:
        """Return what was asked for each row."""
        stored = self._store.get_many([key for key in keys if isinstance(key, str)])
        return [stored[key].request if key in stored else {} for key in keys]

    def _fill_languages(self, voices: Sequence[str]) -> None:
        """Give lines without a language that of their voice, if it has one only."""
        unknown = [line for line in self._lines if line.language is None and not line.problem]
        catalogue = {voice.id: voice for voice in self._lab.voices()} if unknown else {}
        for line in unknown:
            voice = catalogue.get(voices[line.position])
            codes = sorted(list_language_codes(voice.language)) if voice is not None else []
            line.language = codes[0] if len(codes) == 1 else None
            if line.language is None:
                line.problem = "its language is not known; give language='en', or a column of languages"

    def _count_spending(self, run: object) -> None:
        """Note whether a run stopped, and what is left of the budget."""
        if not isinstance(run, str):
            return
        manifest = self._store.run(run).manifest
        self._stopped = self._stopped or str(manifest.get("reason") or "")
        if self._budget is not None:
            left = {
                name: max(limit - spent, 0)
                for name, spent in manifest["usage"].items()
                if (limit := getattr(self._budget, name)) is not None
            }
            self._budget = replace(self._budget, **left)
            used_up = any(manifest["usage"][name] and not amount for name, amount in left.items())
            self._stopped = self._stopped or ("the budget is used up" if used_up else "")

    def _join_best_takes(self) -> pd.DataFrame:
        """Return the rows with the best take of each, and what all of its takes cost."""
        prefix, table = self._prefix, self._pieces[0].copy()
        joined = join_frames(self._pieces, SynthesisStep, prefix)
        places = [line.best.place if line.takes else line.position for line in self._lines]
        spent = joined[[prefix + name for name in _SPENT]].groupby(self._owners).sum()
        for name in collect_result_columns(SynthesisStep):
            column = spent if name in _SPENT else joined.iloc[places]
            table[prefix + name] = column[prefix + name].array
        cells = [line.to_cells() for line in self._lines]
        for name, kind in _COLUMNS.items():
            table[prefix + name] = build_column([row.get(name) for row in cells], kind, table.index)
        table.attrs.pop(RUN_ATTRIBUTE, None)
        return table


def _check_new_columns(whole: pd.DataFrame, prefix: str) -> None:
    """Refuse a table that has columns of a check already."""
    if taken := [prefix + name for name in _COLUMNS if prefix + name in whole.columns]:
        message = f"the table already has {', '.join(map(repr, taken))}; give this step a prefix"
        raise InvalidRequestError(message, parameter="prefix")


def _read_lines(whole: pd.DataFrame, text: Any, language: Any) -> list[ScriptLine]:
    """Return the rows as lines, each with the code of its language, if the table or the call says it."""
    labels, name = whole.columns.tolist(), getattr(text, "name", text)
    language = Column("language") if language is None and "language" in labels else language
    codes = split_columns_and_values({"language": language}, labels, ())
    if codes.same.get("language") is not None:
        language_code(codes.same["language"])
    lines = []
    cells: list[dict[Any, Any]] = whole[list(codes.columns.values())].to_dict("records")
    for position, (words, row) in enumerate(
        zip(require_columns(whole, name)[name].tolist(), cells, strict=True)
    ):
        code, problem = None, ""
        try:
            given = codes.collect_row_values(row).get("language")
            code = None if given is None else language_code(given)
        except InvalidRequestError as error:
            problem = str(error)
        lines.append(ScriptLine(position, words if isinstance(words, str) else "", code, problem))
    return lines
