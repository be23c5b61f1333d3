"""Models of a hub: looked at first, then fetched, checked and remembered.

The hub's own client fetches them into its own cache, which other programs share. What was fetched is remembered in
the model store: the commit, and the SHA-256 of each file. From then on the name means this commit, and no network is
needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speechlab._files import compute_file_sha256, write_atomically
from speechlab._require import require
from speechlab.engines._weights.completeness import check_model_file
from speechlab.engines._weights.progress import show_progress
from speechlab.engines._weights.store import ModelStore, convert_write_errors
from speechlab.errors import ModelError

if TYPE_CHECKING:
    from speechlab.engines._weights.formats import ModelFormat
    from speechlab.engines._weights.names import HubName

_TIMEOUT_S = 15.0
# Bytes that must stay free on the disk.
_RESERVE_BYTES = 100 << 20
_HASH_BYTES = 8 << 20
_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"


class NotFetchedError(ModelError):
    """A model of the hub is not here, and must not be fetched."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository; ``sha256`` is empty for small files, which have the hash of git."""

    name: str
    size: int
    sha256: str
    git_sha1: str


@dataclass(frozen=True, slots=True)
class FetchedModel:
    """A model on this machine.

    Attributes:
        id: Repository, or the name of the folder or file.
        commit: Commit of the hub; empty for a path.
        files: The needed files by their names, the main one first.
    """

    id: str
    commit: str
    files: dict[str, Path]

    @property
    def main(self) -> Path:
        """The main file."""
        return next(iter(self.files.values()))


def find_or_fetch_model(
    source: Path | HubName, model_format: ModelFormat, store: ModelStore, *, allow_download: bool = True
) -> FetchedModel:
    """Find the files of a model, and fetch them if it is of a hub and not here yet.

    Raises:
        ModelError: It has not the format, is not there, may not be read, or does not fit; said before the download.
    """
    if isinstance(source, Path):
        return _find_local_model(source, model_format)
    record = _read_record(source, model_format, store)
    if record is not None and (found := _find_recorded_model(source, record)) is not None:
        return found
    if not allow_download:
        raise NotFetchedError(
            f"the model {str(source)!r} is not on this machine, and allow_download = false forbids its download; "
            f"give a folder, or leave the option out"
        )
    return fetch_model(source, model_format, store, commit=str(record["commit"]) if record else "")


def find_fetched_model(source: HubName, model_format: ModelFormat, store: ModelStore) -> FetchedModel | None:
    """Find a model of the hub that was fetched before; None if it was not, or is no longer here."""
    record = _read_record(source, model_format, store)
    return None if record is None else _find_recorded_model(source, record)


def fetch_model(
    source: HubName, model_format: ModelFormat, store: ModelStore, *, commit: str = ""
) -> FetchedModel:
    """Fetch a model from the hub, or its newest commit if it is here already."""
    hub = _import_hub()
    with store.lock_model(f"hub-{source.repository.replace('/', '--')}"), _convert_hub_errors(hub, source):
        info = hub.HfApi(library_name="speechlab").model_info(
            source.repository,
            revision=commit or source.revision or None,
            files_metadata=True,
            timeout=_TIMEOUT_S,
        )
        files = {file.name: file for file in map(_to_hub_file, info.siblings or ())}
        chosen = [files[name] for name in _choose_files(source, model_format, tuple(files))]
        missing = [file for file in chosen if not _is_cached(hub, source, info.sha, file)]
        if missing and info.gated:
            # The list of a gated repository is public, its files are not.
            url = hub.hf_hub_url(source.repository, missing[0].name, revision=info.sha)
            hub.get_hf_file_metadata(url, timeout=_TIMEOUT_S)
        _check_space(Path(hub.constants.HF_HUB_CACHE), sum(file.size for file in missing), source)
        paths = _fetch_files(hub, source, info.sha, chosen, missing, model_format)
    # Fetched by size, and listed in the format's order, whose first one is the main file.
    found = FetchedModel(source.repository, info.sha, {file.name: paths[file.name] for file in chosen})
    _write_record(source, model_format, store, found, files)
    return found


def format_model_id(source: Path | HubName, found: FetchedModel | None) -> str:
    """Return the id of a model for clients: repository and commit, or the name of the folder or file."""
    if isinstance(source, Path):
        return source.name if source.is_dir() else source.stem
    return f"{source.repository}@{found.commit[:8]}" if found is not None else source.repository


def _import_hub() -> Any:
    hub = require("huggingface_hub")
    for module in ("constants", "errors"):  # which it does not import by itself
        require(f"huggingface_hub.{module}")
    return hub


def _find_local_model(path: Path, model_format: ModelFormat) -> FetchedModel:
    try:
        folder, wanted = (path, "") if path.is_dir() else (path.parent, path.name)
        chosen = model_format.choose(_list_folder_files(folder), wanted)
        files = {name: folder / name for name in chosen}
        for file in files.values():
            check_model_file(file)  # of the hub's files the hashes are known
            model_format.check(file)
    except ModelError as error:
        raise ModelError(f"the model {str(path)!r} cannot be used: {error.message}") from None
    except OSError as error:
        raise ModelError(f"the model {str(path)!r} cannot be read: {error.strerror or error}") from error
    return FetchedModel(format_model_id(path, None), "", files)


def _list_folder_files(folder: Path) -> tuple[str, ...]:
    """Names of the files in a folder and its subfolders, relative and with slashes."""
    names = []
    for path in folder.iterdir():
        inside = path.glob("*") if path.is_dir() else [path]
        names += [item.relative_to(folder).as_posix() for item in inside if item.is_file()]
    return tuple(sorted(names))


def _choose_files(source: HubName, model_format: ModelFormat, names: Sequence[str]) -> tuple[str, ...]:
    try:
        return model_format.choose(names, source.file)
    except ModelError as error:
        raise ModelError(
            f"the model {str(source)!r} cannot be used: {error.message}; nothing was downloaded"
        ) from None


def _to_hub_file(sibling: Any) -> HubFile:
    sha256 = str(sibling.lfs.sha256) if sibling.lfs else ""
    return HubFile(sibling.rfilename, int(sibling.size or 0), sha256, str(sibling.blob_id or ""))


def _is_cached(hub: Any, source: HubName, commit: str, file: HubFile) -> bool:
    path = hub.try_to_load_from_cache(source.repository, file.name, revision=commit)
    return isinstance(path, str) and Path(path).stat().st_size == file.size


def _check_space(cache: Path, size: int, source: HubName) -> None:
    place = next(path for path in (cache, *cache.absolute().parents) if path.exists())
    free = shutil.disk_usage(place).free
    if size and free < size + _RESERVE_BYTES:
        raise ModelError(
            f"the model {str(source)!r} needs {size / 1e6:,.0f} MB in {cache}, and {free / 1e6:,.0f} MB are free; "
            f"nothing was downloaded; free some space, or set HF_HOME to a folder on a larger disk"
        )


def _fetch_files(
    hub: Any,
    source: HubName,
    commit: str,
    chosen: list[HubFile],
    missing: list[HubFile],
    model_format: ModelFormat,
) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    with show_progress(source.repository, sum(file.size for file in missing)) as add_bytes:
        counting = _build_counting_bar(add_bytes)
        for file in sorted(chosen, key=lambda file: file.size):
            options = {"revision": commit, "tqdm_class": counting, "library_name": "speechlab"}
            path = Path(hub.hf_hub_download(source.repository, file.name, **options))
            if not _has_hash(path, file, add_bytes):
                # A damaged copy in the cache, or a damaged transfer: once more.
                path = Path(hub.hf_hub_download(source.repository, file.name, force_download=True, **options))
                if not _has_hash(path, file, add_bytes):
                    raise ModelError(
                        f"the file {file.name!r} of {str(source)!r} arrived damaged twice: it has not the "
                        f"hub's hash; try again later, or download it yourself and give its folder"
                    )
            try:
                model_format.check(path)
            except ModelError as error:
                raise ModelError(f"the model {str(source)!r} cannot be used: {error.message}") from None
            paths[file.name] = path
    return paths


def _build_counting_bar(add_bytes: Callable[[int], None]) -> type:
    """Return a class of bars, for the hub's client, that show nothing and pass on what they count."""
    from tqdm import tqdm

    class CountingBar(tqdm):  # type: ignore[misc]  # tqdm has no types
        def __init__(self, *_: Any, **options: Any) -> None:
            super().__init__(disable=True, total=options.get("total"))

        def update(self, n: float | None = 1) -> None:
            add_bytes(int(n or 0))

    return CountingBar


def _has_hash(path: Path, file: HubFile, add_bytes: Callable[[int], None]) -> bool:
    """Compare a file with its hash; the progress goes on meanwhile, since large files take minutes."""
    if path.stat().st_size != file.size:
        return False
    # Small files have the hash that git gives them.
    digest = hashlib.sha256() if file.sha256 else hashlib.sha1(b"blob %d\0" % file.size)  # noqa: S324
    with path.open("rb") as stream:
        while block := stream.read(_HASH_BYTES):
            digest.update(block)
            add_bytes(0)
    return digest.hexdigest() == (file.sha256 or file.git_sha1)


@contextmanager
def _convert_hub_errors(hub: Any, source: HubName) -> Iterator[None]:
    """Convert the errors of the hub's client to one sentence each: what is wrong, and what to do."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        reason = _explain_hub_error(hub, source, error)
        if reason is None:
            raise
        raise ModelError(f"the model {str(source)!r} cannot be fetched: {reason}") from error


def _explain_hub_error(hub: Any, source: HubName, error: Exception) -> str | None:
    address = re.sub(r"//[^/@]*@", "//", hub.constants.ENDPOINT)
    cache, errors = hub.constants.HF_HUB_CACHE, hub.errors
    if isinstance(error, errors.LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # a file that the client could not ask for; the cause says why
    page = f"{address}/{source.repository}"
    unreachable = (
        f"{address} cannot be reached ({type(error).__name__}); check the network or its proxy, or give a "
        "folder"
    )
    match error:
        case errors.GatedRepoError():
            return f"its owner asks each user to accept terms first: accept them at {page}, then {_LOG_IN}"
        case errors.RepositoryNotFoundError():
            return f"{page} does not exist, or is private; check the name, or for a private model {_LOG_IN}"
        case errors.RevisionNotFoundError():
            return f"it has no revision {source.revision!r}; {page}/tree/main lists branches and tags"
        case errors.OfflineModeIsEnabled():
            return "HF_HUB_OFFLINE forbids the network; unset it, or give a folder"
        case errors.HFValidationError():
            return f"it is no valid name of a repository: {error}"
        case errors.HfHubHTTPError():
            status = getattr(getattr(error, "response", None), "status_code", "no status")
            remedies: dict[Any, str] = {401: _LOG_IN, 403: _LOG_IN, 429: "wait some minutes"}
            return f"{address} answered HTTP {status}; {remedies.get(status, 'try again later')}"
        case errors.LocalEntryNotFoundError():
            return unreachable
    if _is_network_error(error):
        return unreachable
    if isinstance(error, OSError):
        why = error.strerror or type(error).__name__
        return f"{cache} cannot be written ({why}); free space there, or set HF_HOME to another folder"
    return None


def _is_network_error(error: Exception) -> bool:
    """Return whether an error is of a connection; the hub's client passes on those of its HTTP library."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"TransportError", "ConnectionError", "TimeoutError", "InvalidURL"})


def _build_record_path(source: HubName, model_format: ModelFormat, store: ModelStore) -> Path:
    name = re.sub(r"[^\w.@-]", "--", f"{source} {model_format.title}")
    digest = hashlib.sha256(f"{source} {model_format.title}".encode()).hexdigest()[:8]
    return store.root / "hub" / f"{name[:120]}-{digest}.json"


def _read_record(source: HubName, model_format: ModelFormat, store: ModelStore) -> dict[str, Any] | None:
    try:
        record = json.loads(_build_record_path(source, model_format, store).read_bytes())
        if record["name"] == str(source) and all("sha256" in file for file in record["files"].values()):
            return dict(record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def _find_recorded_model(source: HubName, record: dict[str, Any]) -> FetchedModel | None:
    """Return a remembered model; None if a file is missing or no longer the remembered one."""
    files = {}
    for name, noted in record["files"].items():
        path = Path(noted["path"])
        try:
            status = path.stat()
            is_unchanged = (status.st_size, status.st_mtime_ns) == (noted["size"], noted["mtime_ns"])
            if not is_unchanged and compute_file_sha256(path) != noted["sha256"]:
                return None
        except OSError:
            return None
        files[name] = path
    return FetchedModel(source.repository, record["commit"], files)


def _write_record(
    source: HubName,
    model_format: ModelFormat,
    store: ModelStore,
    found: FetchedModel,
    files: dict[str, HubFile],
) -> None:
    record = {
        "name": str(source),
        "repository": source.repository,
        "commit": found.commit,
        "endpoint": os.environ.get("HF_ENDPOINT", ""),
        "files": {
            name: {
                "path": str(path.absolute()),
                "sha256": files[name].sha256 or compute_file_sha256(path),
                "size": path.stat().st_size,
                "mtime_ns": path.stat().st_mtime_ns,
            }
            for name, path in found.files.items()
        },
    }
    path = _build_record_path(source, model_format, store)
    with convert_write_errors(path.parent, 0, "the record of fetched models"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as draft:
            draft.write_text(json.dumps(record, indent=1), encoding="utf-8")
