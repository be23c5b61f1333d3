"""The notebooks of ``notebooks/``: executed in one kernel, and saved without what is of one run alone.

Run by ``poe notebooks``, which executes them on the embedded service, saves their outputs, and keeps what they asked
as their records, from which the tests replay them. ``poe notebooks 03`` does so for those that begin with 03, and
``poe notebooks --replayed 03`` saves what they show in a replay: where words have changed, and not what is asked.
"""

import copy
import json
import os
import re
import sys
import tempfile
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
VARIES = "varies"
"""Tag of a cell whose outputs each execution has of its own: measured times, and how far something had come."""
ASKED = "asked"
"""Tag of a cell that shows what the service was asked for: in a replay, nothing."""
AGAIN = "execute it anew, and look at what has changed: poe notebooks"
_BEFORE = """
get_ipython().reset()
import os, sys, warnings
warnings.filterwarnings("ignore", "Couldn't detect a suitable IP address")  # of Dask, where there is no network
warnings.filterwarnings("ignore", "Port 8787 is already in use")  # of Dask, beside other tests of it
os.chdir({folder!r})
os.environ.update({environment!r})
if os.environ.get("SPEECHLAB_MODE") == "replay":
    def _refuse(event, arguments):
        if event == "socket.connect" or (event == "socket.getaddrinfo" and arguments[0] is not None):
            raise OSError(f"no network in a replay: {{event}} {{arguments}}")
    sys.addaudithook(_refuse)
    del _refuse
"""
_AFTER = """
for _report in [one for one in list(globals().values()) if hasattr(type(one), "failures")]:
    if len(_rows := _report.failures()):
        raise RuntimeError("rows of a study failed:\\n" + _rows[["status", "error"]].to_string())
"""
_BAR = re.compile(r"^(\w+: +\d+%\||estimate: )")
_OF_ONE_RUN = (
    (re.compile(r"timing=Timing\([^()]*\)"), "timing=Timing(...)"),
    (re.compile(r"\btrans_[0-9a-f]{32}"), "trans_..."),
    (re.compile(r"\bcreated=\d+"), "created=..."),
)
_VERSION = re.compile(r"\b(speechlab|rapidfuzz|pyopenjtalk-plus|Sudachi) \d[\w.]*\w")
_WARNED_AT = re.compile(r"^\S*/ipykernel_\d+/\d+\.py:\d+: ", re.MULTILINE)
_PLACE = re.compile(r"speechlab-place-[0-9a-f]{32}")
_MARKUP = re.compile(r"<style.*?</style>|<[^>]*>", re.DOTALL)


def round_as_recorded():
    """Have OpenBLAS use its code for AVX2, by a variable that this process and those below it read at their start.

    What is kept was made with it. The code for AVX-512 rounds differently, and a recognizer then hears another word.
    """
    processor = Path("/proc/cpuinfo")
    if processor.exists() and " avx512f" in processor.read_text(encoding="utf-8"):
        os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")


class Kernel:
    """One kernel, in which each notebook begins with no names and in a folder of its own."""

    def __init__(self, manager):
        self._manager = manager

    def run(self, path, folder, **environment):
        """Execute a notebook from top to bottom, and return it with all that it has shown.

        Args:
            path: The notebook.
            folder: The folder to work in, which is made.
            **environment: Variables of the environment; from the first mode ``replay`` on no socket is connected.

        Raises:
            CellExecutionError: A cell fails, or rows of a study do; the errors of those rows are told.
        """
        import nbformat  # their import takes seconds, and every worker collects the tests
        from nbclient import NotebookClient

        folder.mkdir(parents=True)
        notebook = nbformat.read(path, as_version=4)
        before = nbformat.v4.new_code_cell(_BEFORE.format(folder=str(folder), environment=environment))
        notebook.cells = [before, *notebook.cells, nbformat.v4.new_code_cell(_AFTER)]
        client = NotebookClient(notebook, km=self._manager, timeout=600, store_widget_state=False)
        try:
            client.execute()
        finally:
            if client.kc is not None:
                client.kc.stop_channels()
        notebook.cells = notebook.cells[1:-1]
        return notebook

    def replay(self, path, folder):
        """Execute a notebook from its record alone, without a service, a key or a network; scrubbed.

        Raises:
            AssertionError: It asks something that was not recorded, or fails; with the command that records it anew.
        """
        from nbclient.exceptions import CellExecutionError

        from support.notebook_records import restore_record  # it imports numpy

        restore_record(path.stem, folder / "store")
        where = {
            "SPEECHLAB_BASE_URL": "",
            "SPEECHLAB_API_KEY": "",
            "SPEECHLAB_STATE_DIR": str(folder / "state"),
        }
        where |= {"SPEECHLAB_MODE": "replay", "SPEECHLAB_STORE": str(folder / "store")}
        try:
            done = scrubbed(self.run(path, folder / "work", **where))
        except CellExecutionError as failed:
            raise AssertionError(
                f"{path.name} fails in a replay; {AGAIN} {path.stem[:2]}\n{failed}"
            ) from None
        assert not (folder / "state").exists()
        return done


@contextmanager
def kernel():
    """Run a kernel that notebooks share."""
    from jupyter_client.manager import KernelManager

    with tempfile.TemporaryDirectory() as folder:
        manager = KernelManager(transport="ipc", connection_file=f"{folder}/kernel.json", ip=f"{folder}/ipc")
        manager.start_kernel(extra_arguments=["--Application.log_level=ERROR"])
        try:
            yield Kernel(manager)
        finally:
            manager.shutdown_kernel(now=True)


def scrubbed(notebook):
    """A copy without bars and previews of progress, live widgets, and ids and times of calls."""
    notebook = copy.deepcopy(notebook)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    numbers, places = count(1), {}
    for cell in notebook.cells:
        cell.metadata = {"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {}
        if cell.cell_type == "code":
            cell.execution_count = next(numbers)
            cell.outputs = [
                _plain(output, cell.execution_count, places)
                for output in _join_streams(cell.outputs)
                if _stays(output)
            ]
    return notebook


def _join_streams(outputs):
    """Outputs with what was printed in one piece: a busy kernel sends the end of a line by itself."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else output
        if output.output_type == "stream" and last is not output and last.get("name") == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _stays(output):
    shown = output.get("data", {}).get("text/plain", "")
    return not _BAR.match(shown) and not shown.startswith("BatchPreview(")


def _plain(output, number, places):
    """An output without what is of one run alone; places of widgets are numbered."""
    import nbformat

    if "data" in output:
        output.data.pop("application/vnd.jupyter.widget-view+json", None)
        output.metadata = {}
    if "execution_count" in output:
        output.execution_count = number
    if output.output_type == "stream":
        output.text = _WARNED_AT.sub("", output.text)
    text = json.dumps(output)
    for pattern, instead in _OF_ONE_RUN:
        text = pattern.sub(instead, text)
    text = _PLACE.sub(lambda found: f"speechlab-place-{places.setdefault(found[0], len(places) + 1)}", text)
    return nbformat.from_dict(json.loads(text))


def told(notebook, *, replayed=False):
    """What a scrubbed notebook tells, cell by cell: texts and tables, without markup, sounds, pictures and versions.

    Of cells whose outputs are measured times, and in a replay of those that show what was asked, the kinds alone.
    """
    apart = {VARIES, ASKED} if replayed else {VARIES}
    cells = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if apart & set(cell.metadata.get("tags", ())):
            cells.append((cell.source, [sorted(one.get("data", ())) for one in cell.outputs]))
            continue
        cells.append((cell.source, [_told(output) for output in cell.outputs]))
    return cells


def _told(output):
    shown = output.get("data", {"text/plain": output.get("text")})
    html = " ".join(_MARKUP.sub(" ", shown.get("text/html", "")).split())
    text = shown.get("text/plain")
    return sorted(shown), text and _VERSION.sub(r"\1", text), html


def main(arguments):
    """Execute the notebooks whose names begin as given, or all; save their outputs, and their records."""
    names = [name for name in arguments if name != "--replayed"]
    chosen = [path for path in NOTEBOOKS if not names or path.name.startswith(tuple(names))]
    (_save_replayed if "--replayed" in arguments else _save_and_record)(chosen)


def _save_replayed(chosen):
    """Save what notebooks show in a replay where it is something else; cells that show the same keep their sounds."""
    import nbformat

    with tempfile.TemporaryDirectory() as folder, kernel() as shared:
        for path in chosen:
            done, kept = shared.replay(path, Path(folder) / path.stem), nbformat.read(path, as_version=4)
            shown, before = (told(notebook, replayed=True) for notebook in (done, kept))
            code = [
                [cell for cell in notebook.cells if cell.cell_type == "code"] for notebook in (done, kept)
            ]
            changed = 0
            for new, old, now, then in zip(*code, shown, before, strict=True):
                if now == then:
                    new.outputs = old.outputs
                changed += now != then
            if changed:
                nbformat.write(done, path)
            print(f"{path.name}: {changed} cells show something else")


def _save_and_record(chosen):
    """Execute notebooks on the embedded service, and save their outputs and records."""
    import nbformat

    from speechlab.service import ServiceConfig, run_service
    from support.clients import KEY

    with (
        run_service(ServiceConfig(port=0, api_keys=(KEY,)), process=True) as service,
        tempfile.TemporaryDirectory() as folder,
        kernel() as shared,
        kernel() as replaying,
    ):
        for path in chosen:
            own = Path(folder) / path.stem
            where = {"SPEECHLAB_BASE_URL": service.base_url, "SPEECHLAB_API_KEY": KEY}
            where |= {"SPEECHLAB_MODE": "auto", "SPEECHLAB_STORE": f"{own}/store"}
            own.mkdir()
            done = scrubbed(shared.run(path, own / "work", **where))
            nbformat.write(done, path)
            _record(path, done, own, replaying)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def _record(path, done, folder, replaying):
    """Keep what a notebook asked, with sounds as small as it shows the same with."""
    from support.notebook_records import STEPS, keep_record

    for step in STEPS:
        keep_record(path.stem, folder / "store", step)
        with suppress(AssertionError):
            again = replaying.replay(path, folder / f"again-{step}")
            if told(again, replayed=True) == told(done, replayed=True):
                return
    raise SystemExit(
        f"{path.name} does not show the same in a replay; mark the cell with {VARIES!r} or {ASKED!r}"
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    os.environ.pop("SPEECHLAB_WS_BASE_URL", None)
    round_as_recorded()
    main(sys.argv[1:])
