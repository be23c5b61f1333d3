"""Change random lines of a room one at a time, run the tests of the room, and count the changes that they find.

``python tools/mutate.py metrics --lines 40 --seed 1`` changes 40 lines of ``src/speechlab/metrics`` in a copy of
the sources, never here. Lines are drawn from those that the tests execute: no test finds a change elsewhere. With
``--executed FILE`` these lines are written, or read where the file exists, so that two states of the tests are tried
on the same changes.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OPPOSITES: dict[type[ast.cmpop | ast.operator], type[ast.cmpop | ast.operator]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
QUICK = "not engines and not browser and not slow"


class Mutation(NamedTuple):
    """A piece of a file, by its bytes, and what stands there instead."""

    path: Path
    line: int
    begin: int
    end: int
    new: str


def change_node(node: ast.AST) -> ast.AST | None:
    """Return another node for a node, or None where none of the kinds of changes fits."""
    match node:
        case ast.Compare(left, [operator], comparators) if type(operator) in OPPOSITES:
            return ast.Compare(left, [OPPOSITES[type(operator)]()], comparators)  # type: ignore[list-item]
        case ast.BinOp(left, operator, right) if type(operator) in OPPOSITES:
            return ast.BinOp(left, OPPOSITES[type(operator)](), right)  # type: ignore[arg-type]
        case ast.Constant(bool(value)):
            return ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            return ast.Constant(value + 1)
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            return operand
        case ast.Return(ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            return ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call()) | ast.Assign() | ast.AugAssign() | ast.Raise():
            return ast.Pass()
    return None


def list_mutations(path: Path) -> Iterator[Mutation]:
    """List the changes that the functions of a file allow: one node each, on one line or more."""
    data = path.read_bytes()
    starts = [0]
    for row in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    functions = (
        n for n in ast.walk(ast.parse(data)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    nodes = {id(node): node for function in functions for part in function.body for node in ast.walk(part)}
    in_texts = {
        id(inner) for node in nodes.values() if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)
    }
    for key, node in nodes.items():
        new = None if key in in_texts else change_node(node)
        if new is None or not isinstance(node, ast.stmt | ast.expr):
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        begin, end = starts[first - 1] + node.col_offset, starts[last - 1] + (node.end_col_offset or 0)
        text = ast.unparse(ast.fix_missing_locations(new))
        yield Mutation(path, first, begin, end, f"({text})" if isinstance(new, ast.expr) else text)


def draw_mutations(folder: Path, executed: dict[str, list[int]], count: int, seed: int) -> list[Mutation]:
    """Draw one change for each of so many random lines that are executed."""
    by_line: dict[tuple[Path, int], list[Mutation]] = {}
    for name, numbers in sorted(executed.items()):
        for mutation in list_mutations(folder / name):
            if mutation.line in numbers:
                by_line.setdefault((mutation.path, mutation.line), []).append(mutation)
    draw = random.Random(seed)  # noqa: S311 - no secret
    lines = draw.sample(sorted(by_line), min(count, len(by_line)))
    return [draw.choice(sorted(by_line[line])) for line in lines]


class Trial:
    """A copy of the sources, in which the tests of one room run."""

    def __init__(self, folder: Path, tests: list[str], marks: str, limit_s: float | None) -> None:
        self.folder, self.limit_s = folder, limit_s
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("datasets", "notebooks"):  # sources find them beside src
            (folder / name).symlink_to(ROOT / name)
        options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-m", marks]
        self.command = [sys.executable, "-m", "pytest", *options, *tests]
        self.written = time.time()

    def write(self, path: Path, data: bytes) -> None:
        """Write a file with a time of its own: Python compiles again what has another time."""
        self.written += 10
        path.write_bytes(data)
        os.utime(path, (self.written, self.written))

    def list_executed(self, room: str) -> dict[str, list[int]]:
        """Return the lines of a room that the tests execute, by file; they must pass."""
        data, report = self.folder / "coverage", self.folder / "coverage.json"
        coverage = [sys.executable, "-m", "coverage"]
        command, self.command = self.command, [*coverage, "run", "--rcfile=", f"--data-file={data}"]
        self.command += [f"--include={self.folder}/src/speechlab/{room}/*", *command[1:]]
        passed = self.run_tests()
        self.command = command
        if not passed:
            raise SystemExit(f"the tests fail without a change:\n{self.output}")
        options = [f"--data-file={data}", "--rcfile=", "-q", "-o", str(report)]
        subprocess.run([*coverage, "json", *options], cwd=self.folder, check=True)
        files = json.loads(report.read_text("utf-8"))["files"]
        return {name: file["executed_lines"] for name, file in files.items()}

    def run_tests(self) -> bool | None:
        """Return whether the tests pass; None if they take too long."""
        paths = [str(self.folder / "src"), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        process = subprocess.Popen(
            self.command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            self.output = process.communicate(timeout=self.limit_s)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return None
        return process.returncode == 0

    def try_mutation(self, mutation: Mutation) -> bool | None:
        """Return whether the tests pass with a change, which is undone."""
        data = mutation.path.read_bytes()
        self.write(mutation.path, data[: mutation.begin] + mutation.new.encode() + data[mutation.end :])
        try:
            return self.run_tests()
        finally:
            self.write(mutation.path, data)


def main() -> None:
    """Try the changes and print each with its result, then how many were found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("room", help="a folder of src/speechlab, such as metrics or client/_api")
    parser.add_argument("--tests", nargs="*", help="where its tests are; tests/<room> if not given")
    parser.add_argument("--executed", type=Path, help="a file for the lines that the tests execute")
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--marks", default=QUICK, help=f"which tests, as for pytest -m; {QUICK!r} if not given"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), given.tests or [f"tests/{given.room}"], given.marks, None)
        begin = time.monotonic()
        if given.executed and given.executed.exists():
            executed = json.loads(given.executed.read_text("utf-8"))
            if not trial.run_tests():
                raise SystemExit(f"the tests fail without a change:\n{trial.output}")
        else:
            executed = trial.list_executed(given.room)
            if given.executed:
                given.executed.write_text(json.dumps(executed), "utf-8")
        took_s = time.monotonic() - begin
        trial.limit_s = 3 * took_s + 30
        print(f"{took_s:.0f} s without a change", flush=True)
        mutations = draw_mutations(Path(folder), executed, given.lines, given.seed)
        found = 0
        for mutation in mutations:
            passed = trial.try_mutation(mutation)
            found += not passed
            old = mutation.path.read_bytes()[mutation.begin : mutation.end].decode()
            where = f"{mutation.path.relative_to(folder)}:{mutation.line}"
            result = "survives" if passed else "too slow" if passed is None else "found"
            print(f"{result:8}  {where}  {' '.join(old.split())} -> {mutation.new}", flush=True)
    print(f"{found} of {len(mutations)} found in {given.room}")


if __name__ == "__main__":
    main()
