"""The study of a listening test: answers in, report out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speechlab._arguments import build_argument_error, is_number, require_columns
from speechlab._brief import shorten_tracebacks
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._listening.listening_report import build_listening_report
from speechlab.evaluate._listening.summary import (
    describe_simulated_listeners,
    mark_excluded_answers,
    select_counted_answers,
)
from speechlab.evaluate._report import Report
from speechlab.evaluate._study_arguments import check_whole_number
from speechlab.evaluate._writing.contents import Finding
from speechlab.evaluate._writing.record import build_record
from speechlab.listening import METHODS, build_answer_table, to_listening_key

if TYPE_CHECKING:
    import pandas as pd


@shorten_tracebacks
def listening(
    answers: Any,
    key: Any = None,
    *,
    max_failed_checks: int = 0,
    smallest: float | None = None,
    draws: int = 2_000,
    seed: int = 0,
    title: str = "",
    sounds: pd.DataFrame | None = None,
) -> Report:
    """Read the answers of a listening test, check them, and compare the systems.

    Listeners and items are both random samples, and all intervals and tests account for both. Means have intervals by
    a two-way bootstrap (Owen, 2007), shares those of the tests of pairs. Pairs of systems are tested by Student's t
    with the variance of listeners and of items (Cameron, Gelbach and Miller, 2011), ABX by the exact binomial test,
    corrected for the number of pairs by Holm. In simulations at most 6% of such tests find a difference where there
    is none. Fewer than six listeners or six items show no difference, however clear, except in ABX. A/B of three and
    more systems has a scale of them all (Bradley and Terry, 1952) in ``tables["scale"]``.

    Args:
        answers: Files from listeners, a folder of them, the content of such a file, or ``ListeningTest.answers``; or
            a list of several of these.
        key: The key that ``ListeningTest.save`` wrote next to the page: its path, its content, or the test itself.
            Files need it; frames do not.
        max_failed_checks: Maximum number of failed attention checks of a listener who counts.
        smallest: The smallest difference that matters, for the advice on the number of listeners: by default 0.2 of
            MOS, 5 of MUSHRA, 0.2 of preference (60 to 40), 0.15 of ABX (65% right).
        draws: Number of bootstrap draws.
        seed: Seed of the bootstrap.
        title: Title of the report.
        sounds: A table of the recordings with ``item``, ``system`` and ``audio``, which the page then plays beside
            their scores. A test that is the key has its own.

    Returns:
        The report. ``findings`` names the excluded listeners and the reasons: failed checks, a second session,
        MUSHRA's hidden reference below 90 in more than 15% of the items, or its better anchor above 90 (ITU-R
        BS.1534-3). Answers of listeners who did not finish count. Listeners whose session (``started`` in a file)
        begins with ``simulated:`` are named as such in the first finding, with the model that follows.

    Raises:
        InvalidRequestError: A file is missing, unreadable, changed, of another test, or not a file of answers; or no
            answer counts.
    """
    settings = {
        "max_failed_checks": check_whole_number("max_failed_checks", max_failed_checks),
        "draws": check_whole_number("draws", draws, 100, 100_000),
        "seed": check_whole_number("seed", seed),
    }
    plan = to_listening_key(key)
    table = build_answer_table(answers, plan)
    method = _resolve_method(table)
    largest = METHODS[method].largest
    if smallest is not None and (not is_number(smallest) or not 0 < smallest <= largest):
        raise build_argument_error(
            "smallest", smallest, f"a difference above 0, and of this test {largest:g} at most"
        )
    simulated = describe_simulated_listeners(table)
    table, exclusions = mark_excluded_answers(table, max_failed_checks)
    sentences = [*simulated, *exclusions]
    if not len(select_counted_answers(table)):
        reasons = "; ".join(sentences) or "nobody has answered yet"
        if table["excluded"].str.startswith("attention").any():
            reasons += f"; give a max_failed_checks above {max_failed_checks} to count them all the same"
        raise InvalidRequestError(f"no answer counts: {reasons}", parameter="answers")
    heading = plan.title if plan else ""
    test = {  # without the systems of the sounds
        "name": str(table["test"].iloc[0]),
        "title": heading,
        "method": method,
        "question": str(table["question"].iloc[0]),
        "listeners": int(table["listener"].nunique()),
        "sessions": len(table[["listener", "session"]].drop_duplicates()),
        "began": min(table["session"]),
    }
    matters = float(smallest or METHODS[method].smallest)
    record = {**build_record("listening", None, smallest=matters, **settings), "test": test}
    findings = tuple(map(Finding, sentences))
    sounds = getattr(key, "sounds", None) if sounds is None else sounds
    if sounds is not None:
        sounds = require_columns(sounds, "item", "system", "audio", argument="sounds")
    title = title or heading or "Listening test"
    return Report.of(build_listening_report(title, table, findings, record, sounds))


@shorten_tracebacks
def listening_answers(answers: Any, key: Any = None) -> pd.DataFrame:
    """Return answers of a listening test as one tidy table, with nobody excluded; see :func:`listening`.

    Args:
        answers: As for :func:`listening`.
        key: As for :func:`listening`.

    Returns:
        One row for each rated sound or each choice: ``listener``, ``item``, ``system``, ``other`` (the second
        system of a pair), ``question``, ``score`` (a rating; A/B: 1 for ``system``, -1 for ``other``, 0 for neither;
        ABX: 1 if right), ``choice`` (the system), ``order`` (of the question for this listener, from 1), ``position``
        (of the rated or chosen sound on the page, from 1), ``time_s``, ``plays``, ``attention`` (whether a check was
        passed), ``role`` (test, check, reference, anchor), ``method``, ``trial``, ``test``, ``session`` (when it
        began), ``finished``.

    Raises:
        InvalidRequestError: A value is not answers, does not match the key, or cannot be read.
    """
    return build_answer_table(answers, to_listening_key(key))


def _resolve_method(table: pd.DataFrame) -> str:
    if not len(table):
        raise InvalidRequestError("nobody has answered yet", parameter="answers")
    for name, noun in (("method", "methods"), ("test", "tests")):
        cells = table[name].unique()
        if len(cells) > 1:
            message = f"the answers are of {len(cells)} {noun}: {', '.join(map(repr, cells[:5]))}; give those of one"
            raise InvalidRequestError(message, parameter="answers")
    method = str(table["method"].iloc[0])
    if method not in METHODS:
        message = (
            f"the answers are of a test by {method!r}; it must be one of {', '.join(map(repr, METHODS))}"
        )
        raise InvalidRequestError(message, parameter="answers")
    return method
