"""Many runs of one set, compared with all before them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from speechlab._arguments import refused
from speechlab._brief import briefly
from speechlab._files import user_path
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._report import Report
from speechlab.evaluate._watch.report import both_ends, watch_report
from speechlab.evaluate._watch.series import rescored_rows, tidy_runs, values_of
from speechlab.evaluate._writing.columns import plural
from speechlab.evaluate._writing.record import service_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

_STUDIES = ("round_trip", "speech", "voices", "recognition", "translation")


@briefly
def watch(
    runs: str | os.PathLike[str] | Sequence[Report | str | os.PathLike[str]], *, title: str = "Watch"
) -> Report:
    """Test whether a service has become worse, from many runs of one study over the same rows.

    Error rates (chrF of translations) of each group, rows that failed, and the median times of each group, where the
    study measured speed, are each tested after each run by :func:`speechlab.metrics.sequential_test`. All series
    together raise a false alarm in at most 5 % of watches, however many runs there will be. The page shows the
    series, and the first run beside the newest, row by row.

    Args:
        runs: The reports in any order, or their folders; or one folder that has the folders of all of them.
        title: Title of the report.

    Returns:
        A report whose ``summary`` has a row for each series: ``first``, ``usual`` (mean before the newest run, or
        before the alarm), ``now``, ``evidence``, ``needed``, ``changed`` and ``alarm`` (the run, from 1).
        ``tables["series"]`` has each series run by run.

    Raises:
        InvalidRequestError: There is no run, the runs are of several studies, or a later one has other rows than the
            first.
        StoreError: A folder is no report.

    Example:
        >>> rows = pd.DataFrame({"id": ["a"], "text": ["ten cats"], "language": "en", "heard": ["ten hats"]})
        >>> nights = [recognition(None, rows, hypotheses="heard") for _ in range(3)]
        >>> watch(nights).conclusion.text
        'Nothing is shown to have become worse in 3 runs.'
    """
    reports = _in_order(runs)
    tables = tidy_runs(reports)
    notes = _same_rows(tables)
    values = values_of(reports, tables)
    rows = both_ends(tables)
    facts_of_runs = [
        {
            "made": report.record.get("made"),
            "speechlab": report.record.get("speechlab"),
            "service": service_of(dict(report.record)),
        }
        for report in reports
    ]
    record = {
        "study": "watch",
        "of": reports[0].study,
        "runs": facts_of_runs,
        "settings": reports[-1].record.get("settings", {}),
    }
    return Report.of(watch_report(title, rescored_rows(rows, record), values, record, notes))


def _in_order(runs: object) -> list[Report]:
    """The reports, the earliest first."""
    if isinstance(runs, str | os.PathLike):
        folder = user_path(runs)
        places = sorted(report.parent for report in folder.glob("*/record.json"))
    elif isinstance(runs, list | tuple):
        places = list(runs)
    else:
        raise refused("runs", runs, "reports, their folders, or one folder that has these")
    reports = [report if isinstance(report, Report) else Report.load(report) for report in places]
    if not reports:
        message = f"there is no run in {runs!r}; give reports, their folders, or one folder that has these"
        raise InvalidRequestError(message, parameter="runs")
    studies = sorted({report.study for report in reports})
    if len(studies) > 1 or studies[0] not in _STUDIES:
        message = f"the runs are of {', '.join(studies)}; give runs of one study, of {', '.join(_STUDIES)}"
        raise InvalidRequestError(message, parameter="runs")
    return sorted(reports, key=lambda report: str(report.record.get("made", "")))


def _same_rows(tables: Sequence[pd.DataFrame]) -> list[str]:
    """Refuse a run with other rows; return notes on groups that came or went."""
    first = tables[0]
    groups, keys = set(first["_group"]), set(first["_key"])
    notes = []
    for number, rows in enumerate(tables[1:], 2):
        of_known_groups = rows[rows["_group"].isin(groups)]
        strange = of_known_groups[~of_known_groups["_key"].isin(keys)]
        if len(strange):
            message = (
                f"run {number} has {plural(len(strange), 'row')} that the first has not, such as "
                f"{str(strange['text'].iloc[0])[:60]!r}; a watched set stays as it is, so begin another watch"
            )
            raise InvalidRequestError(message, parameter="runs")
    lost_groups = [
        str(group) for group in dict.fromkeys(first["_group"]) if group not in set(tables[-1]["_group"])
    ]
    added_groups = [str(group) for group in dict.fromkeys(tables[-1]["_group"]) if group not in groups]
    notes += [f"Not in the newest run: {', '.join(lost_groups)}."] if lost_groups else []
    notes += [f"Not watched, for the first run lacks it: {', '.join(added_groups)}."] if added_groups else []
    return notes
