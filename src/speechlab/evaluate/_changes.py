"""What changed since an earlier report: paired by row, tested, in words, a table and a figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from math import comb
from typing import TYPE_CHECKING, Any

from speechlab._platform import package_version
from speechlab.display import Html, element, percent, table
from speechlab.errors import InvalidRequestError, MissingDependencyError
from speechlab.evaluate._report import Report
from speechlab.evaluate._speech.summary import ENOUGH, NO_SPEAKER
from speechlab.evaluate._writing.record import service_of
from speechlab.metrics import compare, holm, score
from speechlab.text import language_name

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Mapping, Sequence

    import pandas as pd
    from matplotlib.figure import Figure

_LEVEL = 0.95
_KEYS = ("id", "file", "voice_name", "language", "text")
_HOW = {"unit": "unit", "norm": "normaliser", "counts": "way of counting"}
_FAILED = "rows that failed"
_VERDICTS = ("worse", "better", "no difference shown", "not paired")
_SCORED = (
    *("unit", "reference_normalized", "hypothesis_normalized", "error_rate", "errors", "reference_length"),
    *("hits", "substitutions", "deletions", "insertions"),
)
"""What :func:`speechlab.metrics.compare` needs of a scored table, beside its signature."""
_NEEDED = ("hypothesis", "status", "signature", "unit", "errors", "reference_length")


@dataclass(frozen=True, eq=False, repr=False)
class Changes(Report):
    """What changed between two reports of one study.

    Attributes:
        title: Title of the page.
        table: One row for each row that both have, those first that changed most: that of the later report, with
            ``hypothesis_earlier``, ``errors_earlier``, ``error_difference`` and ``status_earlier``.
        summary: One row for each voice and language, and one for rows that failed if there are any: ``group``,
            ``language``, ``unit``, ``utterances`` (pairs), ``error_rate_earlier``, ``error_rate``, ``difference``,
            ``difference_low`` and ``difference_high`` (95 %, from 20 pairs on), ``p`` (exact, paired), ``p_holm``,
            ``tested`` (what was swapped), ``significant`` (by ``p_holm``), ``paired``, ``verdict`` (worse, better, no
            difference shown, not paired), ``only_now`` and ``only_earlier`` (rows), ``a`` and ``b``.
        record: The records of both.
    """

    title: str
    table: pd.DataFrame
    summary: pd.DataFrame
    record: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def between(cls, now: Report, earlier: Report | str | os.PathLike[str]) -> Changes:
        """Compare a report with an earlier one of the same study: see :meth:`Report.compare`."""
        before = earlier if isinstance(earlier, Report) else Report.load(earlier)
        later, former = (_tidy(report) for report in (now, before))
        _check_alike(later, former)
        pairs, new, gone = _paired(later, former)
        rows = [_group(str(name), *parts) for name, parts in _by_group(pairs, new, gone)]
        rows += _failed(pairs)
        if not rows:
            message = "the two reports have no scored row; look at report.failed()"
            raise InvalidRequestError(message, parameter="earlier")
        record = {"now": dict(now.record), "earlier": dict(before.record)}
        return cls(f"Changes: {now.title}", _rows(pairs), _corrected(rows), record)

    @property
    def worse(self) -> bool:
        """Whether a voice and language, or the number of rows that failed, is significantly worse."""
        return bool((self.summary["verdict"] == _VERDICTS[0]).any())

    @property
    def better(self) -> bool:
        """Whether one is significantly better."""
        return bool((self.summary["verdict"] == _VERDICTS[1]).any())

    @property
    def paired(self) -> bool:
        """Whether any row is in both reports, so that something could be tested."""
        return bool(self.summary["paired"].any())

    @property
    def words(self) -> str:
        """The changes in sentences that a person can quote."""
        said = []
        rows = self.summary.to_dict("records")
        for verdict in _VERDICTS:
            found = [_words(row) for row in rows if row["verdict"] == verdict]
            if found:
                said.append(f"{verdict.capitalize()}: {'; '.join(found)}.")
        for name, what in (
            ("only_now", "in this report alone"),
            ("only_earlier", "in the earlier one alone"),
        ):
            if count := int(self.summary[name].sum()):
                said.append(f"{count:,} {'row is' if count == 1 else 'rows are'} {what} and not compared.")
        return " ".join(said)

    def sections(self, *, clips: int | None = None) -> Sequence[Html]:
        """Return the words, the table of groups, and the rows that changed most."""
        lines = [
            [
                element("strong", row["group"]),
                str(row["utterances"]),
                percent(row["error_rate_earlier"]),
                percent(row["error_rate"]),
                element("strong", _points(row["difference"])),
                _interval(row) or "–",
                _chance(row) or "–",
                row["verdict"],
            ]
            for row in self.summary.to_dict("records")
        ]
        heads = ("group", "pairs", "earlier", "now", "difference", "95% interval", "p", "verdict")
        caption = "Error rates of the rows that both reports have; p is exact and corrected by Holm's method."
        found = [element("p", self.words), table(heads, lines, caption=caption, right=(1, 2, 3, 4, 5, 6))]
        shown = self.table if clips is None else self.table.head(clips)
        if clips != 0:
            changed = [
                [
                    str(row["voice_name"]),
                    element("span", row["text"], lang=str(row["language"])),
                    *(
                        element("span", row[name], lang=str(row["language"]))
                        if isinstance(row[name], str)
                        else None
                        for name in ("hypothesis_earlier", "hypothesis")
                    ),
                    row["error_difference"] if row["error_difference"] == row["error_difference"] else None,
                ]
                for row in shown.astype({"error_difference": "float64"}).to_dict("records")
            ]
            names = ("voice", "reference", "earlier", "now", "more errors")
            found.append(table(names, changed, caption="Rows, those first that changed most"))
        return found

    def rows(self, **options: Any) -> Any:
        """Hear, search and sort the rows; what was recognised earlier and now is compared with the reference."""
        columns = ["text", "hypothesis_earlier", "hypothesis", "error_difference", "language", "voice_name"]
        usual = {
            "reference": "text",
            "hypotheses": ["hypothesis_earlier", "hypothesis"],
            "language": "language",
        }
        return super().rows(**{**usual, "columns": columns, **options})

    def headline(self) -> pd.DataFrame:
        """Return the groups with their rates, differences and verdicts."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "Group": row["group"],
                    "Pairs": row["utterances"],
                    "Earlier": percent(row["error_rate_earlier"]),
                    "Now": percent(row["error_rate"]),
                    "Difference": _points(row["difference"]),
                    "95 % interval": _interval(row),
                    "p (Holm)": _chance(row),
                    "Verdict": row["verdict"],
                }
                for row in self.summary.to_dict("records")
            ]
        )

    def plot(self, **options: Any) -> Figure:
        """Draw the differences with their intervals: :func:`speechlab.plots.differences`.

        Args:
            **options: As for that function.

        Raises:
            InvalidRequestError: Nothing is paired.
        """
        tested = self.summary[self.summary["paired"]]
        # By name: figures stand a floor above this room, and load when one is drawn.
        figure: Figure = import_module("speechlab.plots").differences(tested, **options)
        return figure

    def figures(self) -> Mapping[str, Figure]:
        """Return the figure of the differences, if anything is paired."""
        return {"Differences, with 95 % intervals": self.plot()} if self.paired else {}

    def facts(self) -> Mapping[str, str]:
        """Return when both reports were made, and of which services."""
        found = {"speechlab": package_version()}
        for name in ("earlier", "now"):
            record = self.record.get(name, {})
            told = [
                str(record.get("made", "")),
                f"speechlab {record.get('speechlab', '?')}",
                service_of(record),
            ]
            if record:
                found[name] = ", ".join(part for part in told if part)
        return found

    def _repr_html_(self) -> str:
        return "".join(self.sections(clips=0))


def _tidy(report: Report) -> pd.DataFrame:
    """Rows of a report under the names of studies, with the group that each belongs to."""
    given = report.table
    names = {getattr(report, name, name): name for name in ("text", "language")}
    rows = given.rename(
        columns={old: new for old, new in names.items() if new not in given.columns or old == new}
    )
    if absent := [name for name in (*_NEEDED, "text", "language") if name not in rows.columns]:
        message = (
            f"{report!r} has no column {absent[0]!r}, so it holds no scores of speech that could be compared; "
            "compare reports of round_trip or recognition"
        )
        raise InvalidRequestError(message, parameter="earlier")
    voice = rows["voice"] if "voice" in rows.columns else NO_SPEAKER
    rows = rows.assign(voice=voice)
    if "voice_name" not in rows.columns:
        rows["voice_name"] = rows["voice"]
    speaker = rows["voice_name"].where(rows["voice"] != NO_SPEAKER, NO_SPEAKER).fillna("no voice")
    group = speaker.astype(str) + ", " + rows["language"].astype("string").fillna("no language")
    return rows.assign(group=group).reset_index(drop=True)


def _check_alike(later: pd.DataFrame, former: pd.DataFrame) -> None:
    """Refuse reports whose rows of one language were scored in different ways; versions of tools may differ."""
    ways = [_ways(rows) for rows in (later, former)]
    differ = []
    for code in ways[0].keys() & ways[1].keys():
        differ += [
            f"{language_name(code)}: {word} {' and '.join(sorted(before))} earlier, {' and '.join(sorted(here))} now"
            for part, word in _HOW.items()
            if (here := ways[0][code][part]) != (before := ways[1][code][part])
        ]
    if differ:
        message = (
            f"the two reports were scored in different ways ({'; '.join(sorted(differ))}); score both alike: run the "
            "earlier study again, which takes what was recognised from its store"
        )
        raise InvalidRequestError(message, parameter="earlier")


def _ways(rows: pd.DataFrame) -> dict[str, dict[str, set[str]]]:
    found: dict[str, dict[str, set[str]]] = {}
    for signature in rows["signature"].dropna().astype(str).unique():
        parts = dict(part.split(":", 1) for part in signature.split("|") if ":" in part)
        here = found.setdefault(parts.get("lang", "any"), {name: set() for name in _HOW})
        for name, values in here.items():
            values.add(parts.get(name, "none"))
    return found


def _paired(later: pd.DataFrame, former: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Rows of both side by side, and those of each alone."""
    import pandas as pd

    keys = [name for name in _KEYS if name in later.columns and name in former.columns]
    tables = []
    for rows in (later, former):
        texts = rows[keys].astype("string").fillna("")
        which = texts.groupby(keys).cumcount()  # rows that are the same twice have partners in order
        parts: list[Any] = [*(texts[name] for name in keys), which]
        keyed = pd.Series(list(zip(*parts, strict=True)), index=rows.index, dtype="object")
        block = ["\x1f".join(cells) for cells in texts.itertuples(index=False, name=None)]
        tables.append(rows.assign(_key=keyed, _block=block))
    here, there = tables
    both = here.merge(there, on="_key", suffixes=("", "_earlier"), how="inner", sort=False)
    return both, here[~here["_key"].isin(both["_key"])], there[~there["_key"].isin(both["_key"])]


def _by_group(
    pairs: pd.DataFrame, new: pd.DataFrame, gone: pd.DataFrame
) -> list[tuple[Hashable, tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]]]:
    names = dict.fromkeys([*pairs["group"], *new["group"], *gone["group"]])
    found = []
    for name in names:
        parts = tuple(rows[rows["group"] == name] for rows in (pairs, new, gone))
        if any(len(part) and part["errors"].notna().any() for part in parts):
            found.append((name, parts))
    return found


def _group(name: str, pairs: pd.DataFrame, new: pd.DataFrame, gone: pd.DataFrame) -> dict[str, Any]:
    """One row of the summary: tested if rows are paired, else told as what it is."""
    counts = {"only_now": len(new), "only_earlier": len(gone), "a": "earlier", "b": f"{name}: now"}
    scored = pairs[pairs["errors"].notna() & pairs["errors_earlier"].notna()]
    first = next(part for part in (scored, pairs, new, gone) if len(part))
    facts = {"group": name, "language": str(first["language"].iloc[0])}
    nan = float("nan")
    if scored.empty:
        return {
            **facts,
            "unit": str(first["unit"].iloc[0]),
            "utterances": 0,
            "error_rate_earlier": _pooled(gone),
            "error_rate": _pooled(new),
            **dict.fromkeys(("difference_low", "difference_high", "p"), nan),
            "difference": _pooled(new) - _pooled(gone),
            "tested": None,
            "paired": False,
            **counts,
        }
    # Takes of one sentence are no new sentences: they are swapped and drawn together.
    groups = None if scored["_block"].is_unique else scored["_block"].tolist()
    found = compare(*_sides(scored), names=("earlier", "now"), level=_LEVEL, groups=groups)
    low, high = found.interval if found.blocks >= ENOUGH else (nan, nan)
    return {
        **facts,
        "unit": found.unit,
        "utterances": found.utterances,
        "error_rate_earlier": found.error_rate_a,
        "error_rate": found.error_rate_b,
        "difference": found.difference,
        "difference_low": low,
        "difference_high": high,
        "p": found.p,
        "tested": found.tested,
        "paired": True,
        **counts,
    }


def _sides(scored: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The scores of both, as :func:`speechlab.metrics.compare` takes them; Japanese by how it sounds."""
    texts = scored[["text", "language"]]
    sides = [texts.assign(hypothesis=scored[name]) for name in ("hypothesis_earlier", "hypothesis")]
    read = [name for name in ("reading_errors", "reading_errors_earlier") if name in scored.columns]
    if len(read) == 2 and scored[read].notna().all(axis=None):
        try:
            return score(sides[0], unit="reading"), score(sides[1], unit="reading")
        except MissingDependencyError:
            pass
    names = _SCORED
    now = scored[[*names, "signature"]]
    before = scored[[f"{name}_earlier" for name in names]].set_axis(list(names), axis="columns")
    # What matters in the signatures was compared; versions of tools may differ.
    return before.assign(signature=now["signature"]), now


def _pooled(rows: pd.DataFrame) -> float:
    length = rows["reference_length"].sum()
    return float(rows["errors"].sum() / length) if length else float("nan")


def _failed(pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows that failed in one report and not in the other, by the exact test of McNemar (1947)."""
    now, before = (pairs[name].isin(["error", "skipped"]) for name in ("status", "status_earlier"))
    if not (now | before).any():
        return []
    broken, mended = int((now & ~before).sum()), int((before & ~now).sum())
    count = broken + mended
    tail = sum(comb(count, k) for k in range(min(broken, mended) + 1)) / 2**count
    return [
        {
            "group": _FAILED,
            "language": "",
            "unit": "row",
            "utterances": len(pairs),
            "error_rate_earlier": float(before.mean()),
            "error_rate": float(now.mean()),
            "difference": float(now.mean() - before.mean()),
            "difference_low": float("nan"),
            "difference_high": float("nan"),
            "p": min(1.0, 2 * tail),
            "tested": "row",
            "paired": True,
            "only_now": 0,
            "only_earlier": 0,
            "a": "earlier",
            "b": f"{_FAILED}: now",
        }
    ]


def _corrected(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The summary, with p-values corrected for their number, and verdicts."""
    import numpy as np
    import pandas as pd

    out = pd.DataFrame(rows)
    out.insert(list(out.columns).index("p") + 1, "p_holm", holm(out["p"].to_numpy(dtype=np.float64)))
    out["significant"] = out["p_holm"] < 1 - _LEVEL
    verdicts = np.select(
        [~out["paired"], out["significant"] & (out["difference"] > 0), out["significant"]],
        [_VERDICTS[3], _VERDICTS[0], _VERDICTS[1]],
        _VERDICTS[2],
    )
    return out.assign(verdict=verdicts)


def _rows(pairs: pd.DataFrame) -> pd.DataFrame:
    """Rows that both reports have, those first that changed most."""
    old = ("hypothesis_earlier", "errors_earlier", "status_earlier")
    kept = [
        name for name in pairs.columns if not name.endswith("_earlier") and name not in {"_key", "_block"}
    ]
    found = pairs[[*kept, *old]].assign(error_difference=pairs["errors"] - pairs["errors_earlier"])
    order = found["error_difference"].abs().fillna(-1).sort_values(ascending=False, kind="stable").index
    return found.loc[order].reset_index(drop=True)


def _points(value: float) -> str:
    return f"{100 * value:+.1f}" if value == value else "–"


def _interval(row: Mapping[Hashable, Any]) -> str | None:
    low, high = row["difference_low"], row["difference_high"]
    return f"{100 * low:+.1f} to {100 * high:+.1f}" if low == low else None


def _chance(row: Mapping[Hashable, Any]) -> str | None:
    p = row["p_holm"]
    return None if p != p else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _words(row: Mapping[Hashable, Any]) -> str:
    rates = f"{percent(row['error_rate_earlier'])} to {percent(row['error_rate'])}"
    if not row["paired"]:
        return f"{row['group']} ({rates}, of other rows)"
    told = [rates, f"{_points(row['difference'])} points"]
    told += [f"95 % interval {interval}" for interval in [_interval(row)] if interval]
    p = _chance(row) or ""
    told.append(f"p {p}" if p.startswith("<") else f"p = {p}")
    told.append(f"{row['utterances']:,} {'pair' if row['utterances'] == 1 else 'pairs'}")
    return f"{row['group']} ({', '.join(told)})"
