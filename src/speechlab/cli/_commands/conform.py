"""``speechlab conform``: the conformance of a deployment with the statements of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from speechlab._traces import to_printable
from speechlab.cli._console import build_empty_table, console, errors
from speechlab.cli._options import check_writable, option, wrap_with_parameters
from speechlab.errors import APIConnectionError, ConfigurationError, ReplayMiss, ServiceStartError

if TYPE_CHECKING:
    from speechlab.conform import Check, CheckOutcome, ConformReport, ProbeOptions

_VERDICT_MARKS = {
    "holds": "[green]✓[/]",
    "fails": "[red]✗[/]",
    "advisory": "[yellow]![/]",
    "not tried": "[dim]–[/]",
}
_MAX_CHARACTERS = 600
_MAX_FINDINGS = 4

_OPTIONS = [
    option("base_url", str, "", metavar="URL", envvar="SPEECHLAB_BASE_URL", help="Base of the HTTP paths."),
    option("api_key", str, "", metavar="KEY", envvar="SPEECHLAB_API_KEY", show_envvar=True, help="A key that may use "
    "everything; better given in the variable, which other users cannot read."),
    option("ws_base_url", str | None, None, metavar="URL", envvar="SPEECHLAB_WS_BASE_URL", help="Base of the "
    "WebSocket path, if different."),
    option("report", Path | None, None, metavar="FILE", help="Write a report: JUnit XML if it ends in .xml, else "
    "JSON."),
    option("only", str | None, None, metavar="WHICH", help="Statements and checks to run, such as "
    "20-46,115,43-chunked."),
    option("quick", bool, False, "--quick", help="Leave out checks that are slow or need many calls."),
    option("strict", bool, False, "--strict", help="Count advisory outcomes as failures."),
    option("listed", bool, False, "--list", help="List the checks and make no call."),
    option("voice", str | None, None, metavar="ID", help="Id of the voice for the checks."),
    option("q_voice", str | None, None, metavar="ID", help='Id of a voice of "provider Q".'),
    option("restricted_key", str | None, None, metavar="KEY", help="A key that may not use that voice."),
    option("no_asr_key", str | None, None, metavar="KEY", help="A key that may not use recognition."),
    option("expired_key", str | None, None, metavar="KEY", help="A key that has expired."),
    option("legacy_key", str | None, None, metavar="KEY", help="A key of a form that is not accepted any more."),
    option("text_limit", int, 5_000, metavar="N", min=100, help="Maximum characters of a text to speak, at least "
    "100."),
    option("timeout", float, 120.0, metavar="SECONDS", min=1, help="Timeout of a reply, at least 1."),
]  # fmt: skip


def _check_deployment(
    base_url: str,
    api_key: str,
    ws_base_url: str | None,
    *,
    report: Path | None,
    only: str | None,
    quick: bool,
    strict: bool,
    listed: bool,
    timeout: float,
    **facts: Any,
) -> None:
    """Check a deployment from outside, without harm, and report which statements of the contract hold.

    Without an address and a key, it checks the embedded service of this machine.

    Status 0: all binding statements hold; 1: a statement fails; 2: the checks could not run.
    """
    from speechlab.conform import ProbeOptions, select_checks, write_report

    check_writable(report, "report")
    try:
        selected = select_checks(only, quick=quick)
        if listed:
            _print_checks(selected)
            return
        if not selected:
            raise ConfigurationError(f"no check is about {only}; `speechlab conform --list` shows them")
        with _open_deployment(base_url, ws_base_url, api_key) as (http_url, socket_url, key):
            options = ProbeOptions(http_url, key, ws_base_url=socket_url, timeout_s=timeout, **facts)
            results = _run_checks(options, selected)
        if report is not None:
            write_report(results, report, strict=strict)
    except (ValueError, OSError, APIConnectionError, ReplayMiss, ServiceStartError) as error:
        raise ConfigurationError(str(error)) from error
    _print_results(results, report)
    raise typer.Exit(0 if results.has_passed(strict=strict) else 1)


conform = wrap_with_parameters(_check_deployment, _OPTIONS)


@contextmanager
def _open_deployment(
    base_url: str, ws_base_url: str | None, api_key: str
) -> Iterator[tuple[str, str | None, str]]:
    """The given addresses and key, or those of the embedded service, which runs until the end."""
    if base_url or api_key:
        if not base_url or not api_key:
            raise ConfigurationError(
                "conform needs --base-url and --api-key, or neither for the embedded service"
            )
        yield base_url, ws_base_url, api_key
        return
    from speechlab.client import connect, reveal_credentials

    with connect() as lab:
        yield reveal_credentials(lab)


def _run_checks(options: ProbeOptions, selected: tuple[Check, ...]) -> ConformReport:
    from speechlab.conform import run

    errors.print(f"{len(selected)} checks, at most {sum(c.metered for c in selected)} metered calls")
    with errors.status("trying …") as status:

        def show_check(check: Check, number: int, count: int) -> None:
            line = f"{number + 1}/{count}  {check.id}  {check.title}"
            # a wrapped line would stay on the screen
            status.update(Text(line[: max(errors.width - 4, 20)]))

        return run(options, selected, on_check=show_check)


def _print_checks(selected: tuple[Check, ...]) -> None:
    table = build_empty_table("Checks", "check", "what must hold", "calls", right=("calls",))
    table.columns[0].no_wrap = True
    for check in selected:
        needs = f" [dim](needs {escape(check.needs)})[/]" if check.needs else ""
        kind = "" if check.binding else " [yellow](advisory)[/]"
        table.add_row(check.id, escape(check.title) + kind + needs, str(check.metered or ""))
    console.print(table)


def _print_results(report: ConformReport, written: Path | None) -> None:
    table = build_empty_table(f"Conformance of {escape(report.base_url)}", "", "check", "what must hold")
    table.columns[1].no_wrap = True
    for outcome in report.outcomes:
        note = f" [dim]({escape(outcome.reason)})[/]" if outcome.reason else ""
        table.add_row(_VERDICT_MARKS[outcome.verdict], outcome.check.id, escape(outcome.check.title) + note)
    console.print(table)
    for outcome in report.outcomes:
        if outcome.findings:
            _print_evidence(outcome)
    verdicts = [str(verdict) for verdict in report.summarize_statements().values()]
    console.print()
    console.print(
        f"{len(verdicts)} statements: [green]{verdicts.count('holds')} hold[/], "
        f"[red]{verdicts.count('fails')} fail[/], [yellow]{verdicts.count('advisory')} advisory[/], "
        f"{verdicts.count('not tried')} not tried"
    )
    console.print(f"{report.metered} metered calls, {report.seconds:.0f} s")
    if written is not None:
        console.print(f"report: {written}", soft_wrap=True)


def _print_evidence(outcome: CheckOutcome) -> None:
    from speechlab.conform import read_statements

    check = outcome.check
    console.print(f"\n{_VERDICT_MARKS[outcome.verdict]} [bold]{check.id}[/] {escape(check.title)}")
    for number in check.statements:
        statement = read_statements()[number]
        _print_indented(f"statement {number} (§{statement.section}): {statement.text}", style="dim")
    for finding in outcome.findings[:_MAX_FINDINGS]:
        for name, text in (("expected", finding.expected), ("sent", finding.sent), ("came", finding.came)):
            if text:
                _print_indented(f"{name}: {text[:_MAX_CHARACTERS]}")
    more = len(outcome.findings) - _MAX_FINDINGS
    if more > 0:
        _print_indented(f"… and {more} more; --report has them all", style="dim")


def _print_indented(text: str, style: str = "") -> None:
    # As plain text: a service's reply must not be read as markup, nor move the cursor.
    console.print(Padding(Text(to_printable(text), style=style), (0, 0, 0, 2)))
