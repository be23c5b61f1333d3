"""Ratings of listeners: one row for each listener, with the mean of each system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from speechlab._arguments import build_argument_error, is_whole_number
from speechlab.listening import to_answers_by_system
from speechlab.plots._figure import (
    PaperFigure,
    Style,
    build_panels,
    check_table,
    check_width,
    choose_fonts,
    choose_style,
    choose_tone,
    compute_legend_size,
    draw_legend,
    draw_row_names_and_notes,
    draw_scale,
    shorten_text,
    to_numbers,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ANSWERS_HINT = "Pass the table of a listening report, or speechlab.evaluate.listening_answers(...)"
_ROW_INCHES = 0.26
# Maximum width of a listener's name, of the note next to it, and of a system's name, in letters.
_MAX_NAME, _MAX_NOTE, _MAX_SYSTEM = 24, 34, 60
# Minimum of ``most``; and at most one row in this number is of an excluded listener.
_MIN_ROWS = 4
# Maximum number of systems that can be distinguished in rows of this height.
_MOST_SYSTEMS = 12
_LABELS = {
    "mos": ("mean opinion score", (0.9, 5.1)),
    "mushra": ("MUSHRA score", (-2.0, 102.0)),
    "ab": ("share preferred", (-0.03, 1.03)),
    "abx": ("share right", (-0.03, 1.03)),
}


def listeners(
    answers: pd.DataFrame,
    summary: pd.DataFrame | None = None,
    *,
    notes: Mapping[str, str] | None = None,
    most: int = 40,
    highlight: Sequence[str] | None = None,
    language: str | None = None,
    width: float = 7.0,
    ax: Axes | None = None,
) -> PaperFigure:
    """Draw the mean ratings of systems: of all listeners in the top row, and of each listener in a row below.

    The figure shows listeners who are far from the others, give all systems the same rating, or use the scale in
    reverse. Excluded listeners come last, in gray. If there are more than ``most`` listeners, those farthest from the
    overall means have rows, and the others share one row. If there are more than twelve systems, twelve are drawn:
    those with the highest means if there is a summary, and the first ones otherwise.

    Args:
        answers: The table of :func:`speechlab.evaluate.listening`, or of ``listening_answers``.
        summary: The summary of the same report; its means and intervals are in the top row.
        notes: Short notes on listeners, at the right of their rows.
        most: Maximum number of listeners with their own row, at least 4. At most a quarter of these rows are of
            excluded listeners, unless there are not enough others.
        highlight: The systems that are colored; the others are gray. None colors all.
        language: ISO 639-1 code of the names, which determines the shapes of Chinese and Japanese letters.
        width: Width in inches; the height follows from the rows.
        ax: Axes to draw in, of a figure of yours; None for a new figure.

    Returns:
        A matplotlib ``Figure``, as from :func:`timeline`.

    Raises:
        InvalidRequestError: A column is missing or is not numeric, there are no rows, or ``most`` is too small.
    """
    check_width(width)
    if not is_whole_number(most) or most < _MIN_ROWS:
        raise build_argument_error("most", most, f"a whole number from {_MIN_ROWS} on")
    needed = ("listener", "system", "other", "score", "method", "role")
    check_table(answers, *needed, argument="answers", hint=_ANSWERS_HINT)
    scored = answers[answers["role"] != "check"]
    check_table(scored, "score", argument="answers", hint="All answers are to attention checks")
    scored = scored.assign(score=to_numbers(scored, "score"))
    method = str(scored["method"].iloc[0])
    means = to_answers_by_system(scored, method).groupby(["listener", "system"])["score"].mean().unstack()
    excluded = _collect_exclusion_reasons(answers)
    order, crowd = _split_listeners_by_row(means, excluded, int(most))
    counts = np.array([name not in excluded for name in order])
    all_systems = list(means.columns) if summary is None else _sort_systems(means, summary)
    systems = all_systems[:_MOST_SYSTEMS]
    top = summary is not None
    rows = len(order) + top + bool(crowd)
    labels = [shorten_text(str(system), _MAX_SYSTEM) for system in systems]
    height = 0.8 + compute_legend_size(width, labels)[1] + _ROW_INCHES * max(rows, 2)
    figure, (axes,) = build_panels(width, [height], ax)
    for number, system in enumerate(systems):
        style = _choose_system_style(number, system, highlight)
        offset = (number - (len(systems) - 1) / 2) * min(0.12, 0.5 / len(systems))
        values, places = means.loc[order, system].to_numpy(), np.arange(len(order)) + top + offset
        for chosen, color, edge in (
            (counts, style.color, choose_tone("ink")),
            (~counts, choose_tone("shade"), style.color),
        ):
            drawn = chosen & np.isfinite(values)
            if drawn.any():  # a line without points has no position, which the layout needs
                axes.plot(
                    values[drawn], places[drawn], style.marker, color=color, markeredgecolor=edge,
                    markeredgewidth=0.5, markersize=5,
                )  # fmt: skip
        crowd_means = means.loc[[name for name in crowd if name not in excluded], system].dropna().to_numpy()
        axes.plot(
            crowd_means, np.full(len(crowd_means), rows - 1 + offset), "|", color=style.color, alpha=0.35
        )
        if summary is not None:
            _draw_overall_mean(axes, summary[summary["system"] == system], number, len(systems), style)
    names = [*(["all listeners"] if top else []), *(shorten_text(str(name), _MAX_NAME) for name in order)]
    reasons = {name: shorten_text(f"excluded: {why}", _MAX_NOTE) for name, why in excluded.items()}
    note_of = {**(notes or {}), **reasons}
    right = [*([""] if top else []), *(str(note_of.get(name, "")) for name in order)]
    if crowd:
        names.append(f"{len(crowd):,} others")
        beyond = sum(name in excluded for name in crowd)
        right.append("nearer to the means" + (f"; {beyond:,} excluded" if beyond else ""))
    families = choose_fonts("".join([*names, *map(str, systems)]), language)
    draw_row_names_and_notes(axes, names, right, families)
    if top:
        axes.axhline(0.5, color=choose_tone("ink"), linewidth=0.6)
    label, limits = _describe_scale(method, len(systems), len(all_systems))
    if limits:
        axes.set_xlim(*limits)
    draw_scale(axes, label)
    styles = [_choose_system_style(number, system, highlight) for number, system in enumerate(systems)]
    draw_legend(figure, axes, labels, families, styles)
    return figure


def _describe_scale(method: str, drawn: int, systems: int) -> tuple[str, tuple[float, float] | None]:
    """Return the label of the axis, which says how many systems are drawn, and its limits."""
    label, limits = _LABELS.get(method, ("score", None))
    return (f"{label}, the first {drawn} of {systems} systems" if systems > drawn else label), limits


def _choose_system_style(number: int, system: object, highlight: Sequence[str] | None) -> Style:
    """Return the style of a system: gray, with a marker of its own, where others are highlighted."""
    style = choose_style(number)
    return style if highlight is None or system in highlight else style._replace(color=choose_tone("quiet"))


def _split_listeners_by_row(
    means: pd.DataFrame, excluded: Mapping[Any, str], most: int
) -> tuple[list[Any], list[Any]]:
    """Return the listeners with their own row (by mean, highest first, excluded ones last), and the other ones."""
    far = ((means - means[[name not in excluded for name in means.index]].mean()) ** 2).mean(axis=1)
    far = far.fillna(0.0).sort_values(ascending=False, kind="stable")
    good = [name for name in far.index if name not in excluded]
    bad = [name for name in far.index if name in excluded]
    far_listeners = good[: most - min(len(bad), most // _MIN_ROWS)]
    own_rows = far_listeners + bad[: most - len(far_listeners)]
    order = sorted(own_rows, key=lambda name: (name in excluded, -means.loc[name].mean()))
    chosen = set(order)
    return order, [name for name in far.index if name not in chosen]


def _collect_exclusion_reasons(answers: pd.DataFrame) -> dict[Any, str]:
    """Return the listeners whose answers are all excluded, with the reasons."""
    if "excluded" not in answers.columns:
        return {}
    reasons_of = answers.groupby("listener")["excluded"]
    return {name: str(reasons.iloc[0]).split(":")[0] for name, reasons in reasons_of if (reasons != "").all()}


def _sort_systems(means: pd.DataFrame, summary: pd.DataFrame) -> list[Any]:
    hint = "Pass the summary of the same report"
    check_table(summary, "system", "mean", "low", "high", argument="summary", hint=hint)
    listed = [name for name in summary["system"] if name in means.columns]
    return listed + [name for name in means.columns if name not in listed]


def _draw_overall_mean(axes: Axes, row: pd.DataFrame, number: int, count: int, style: Style) -> None:
    if not len(row):
        return
    place = (number - (count - 1) / 2) * min(0.18, 0.7 / count)
    mean, low, high = (float(to_numbers(row, name)[0]) for name in ("mean", "low", "high"))
    if np.isfinite(low) and np.isfinite(high):
        axes.plot([low, high], [place, place], color=style.color, linewidth=1.4, solid_capstyle="butt")
    axes.plot(
        mean,
        place,
        style.marker,
        color=style.color,
        markeredgecolor=choose_tone("ink"),
        markeredgewidth=0.5,
        markersize=5.5,
    )
