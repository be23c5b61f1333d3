"""A model hub on loopback, with the routes of Hugging Face's that its client uses: a repository, its files."""

import hashlib
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "536b0662742c02347bc0e980a01041f333bce120"
LFS_BYTES = 1_000


@dataclass
class Repository:
    files: dict[str, bytes | Path]
    gated: bool = False
    commit: str = COMMIT
    revisions: tuple[str, ...] = ("main",)


@dataclass
class ModelHub:
    """Repositories by name, and the requests that arrived as "METHOD path"."""

    url: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    damaged: set[str] = field(default_factory=set)
    """Names of files that are sent with a wrong byte."""
    failing: dict[str, int] = field(default_factory=dict)
    """Statuses with which files are refused, by their names."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Sizes that are claimed of files."""

    def add(self, name, files, **facts):
        self.repositories[name] = Repository(files, **facts)

    @property
    def fetched(self):
        """Names of the files that were sent."""
        return [
            line.rpartition("/")[2]
            for line in self.requests
            if line.startswith("GET") and "/resolve/" in line
        ]


@cache
def read_and_hash(content):
    """The bytes of a file, and their hashes: git's, and SHA-256."""
    data = content.read_bytes() if isinstance(content, Path) else content
    git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    return data, git, hashlib.sha256(data).hexdigest()


def describe(name, content, sizes):
    data, git, sha256 = read_and_hash(content)
    size = sizes.get(name, len(data))
    sibling = {"rfilename": name, "size": size, "blobId": git}
    if len(data) >= LFS_BYTES:
        sibling["lfs"] = {"sha256": sha256, "size": size, "pointerSize": 134}
    return sibling


class Refusal(Exception):  # noqa: N818 - a reply
    """Status, code and message of a reply."""


def answer(hub, path):
    """Return the body and the headers of a reply."""
    parts = path.strip("/").split("/")
    is_api = parts[:2] == ["api", "models"]
    owner, name, *rest = parts[2:] if is_api else parts
    repository = hub.repositories.get(f"{owner}/{name}")
    if repository is None:
        raise Refusal(401, "RepoNotFound", "Invalid username or password.")
    revision = rest[1] if len(rest) > 1 else "main"
    if revision not in {*repository.revisions, repository.commit}:
        raise Refusal(404, "RevisionNotFound", "Invalid rev id")
    commit = revision if len(revision) == len(COMMIT) else repository.commit
    if is_api:
        siblings = [describe(name, content, hub.sizes) for name, content in repository.files.items()]
        info = {"id": f"{owner}/{name}", "sha": commit, "siblings": siblings, "private": False}
        info["gated"] = "auto" if repository.gated else False
        return json.dumps(info).encode(), {"Content-Type": "application/json"}
    if repository.gated:
        raise Refusal(403, "GatedRepo", "Access to this model is restricted.")
    file = "/".join(rest[2:])
    if file in hub.failing:
        raise Refusal(hub.failing[file], "", "")
    if file not in repository.files:
        raise Refusal(404, "EntryNotFound", "Entry not found")
    data, git, sha256 = read_and_hash(repository.files[file])
    tag = sha256 if len(data) >= LFS_BYTES else git
    if file in hub.damaged:
        data = data[:-1] + bytes([data[-1] ^ 1])
    return data, {"X-Repo-Commit": commit, "ETag": f'"{tag}"', "X-Linked-Size": str(len(data))}


def build_handler(hub):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(f"{self.command} {path}")
            try:
                status, (data, headers) = 200, answer(hub, path)
            except Refusal as refusal:
                status, code, message = refusal.args
                data, headers = b"", {"X-Error-Code": code, "X-Error-Message": message}
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        def log_message(self, *_):
            pass

    return Handler


@contextmanager
def run_model_hub():
    hub = ModelHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), build_handler(hub))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def use_model_hub(monkeypatch, cache):
    """A hub to which the client here, and that of processes started here, goes; it keeps files in a folder."""
    constants = import_module("huggingface_hub.constants")
    with run_model_hub() as hub:
        for name, value in {
            "ENDPOINT": hub.url,
            "HF_HUB_CACHE": str(cache / "hub"),
            "HF_HUB_OFFLINE": False,
            "HUGGINGFACE_CO_URL_TEMPLATE": hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        }.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(cache))
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        yield hub
