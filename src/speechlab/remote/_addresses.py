"""Addresses of files: what is one, its parts, what a table may name, and credentials, which stay in memory."""

from __future__ import annotations

import hmac
import posixpath
import re
import secrets
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

_ADDRESS = re.compile(r"(?!(?:file|local|data)://)[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_PARTS = re.compile(r"([a-z][a-z0-9+.-]+)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.IGNORECASE | re.DOTALL)
# Parameters of signed addresses of S3, Google, CloudFront and Azure, which name no other file, and what tells each.
_SIGNATURES = (
    (re.compile(r"x-(?:amz|goog)-.*", re.IGNORECASE), {"x-amz-signature"}, {"x-goog-signature"}),
    (
        re.compile(r"awsaccesskeyid|googleaccessid|key-pair-id|signature|policy|expires", re.IGNORECASE),
        {"signature", "key-pair-id"},
        {"signature", "awsaccesskeyid"},
        {"signature", "googleaccessid"},
    ),
    (
        re.compile(r"sig|s[eiprtv]|spr|sip|ske|skoid|sks|skt|sktid|skv|sdd|saoid|suoid|scid"),
        {"sig", "sv", "se"},
    ),
)
# Parameters whose names say that they are secrets, of any server: another value may be another file.
_SECRET = re.compile(
    r".*(?:token|secret|passw|passphrase|api_?-?key|credential|auth|signature).*|key|pwd|pw|jwt|sign|sig",
    re.IGNORECASE,
)
# Others, as abfs://container@account and github://owner:repository@branch, have no credentials there.
_WITH_LOGIN = frozenset({"http", "https", "ftp", "ftps", "sftp", "ssh", "smb", "webdav", "webdavs", "hdfs"})
_PUBLIC = ("https", "http")
_HIDDEN = "hidden-"


class _Link(NamedTuple):
    """The parts of an address, or of one in a chain."""

    scheme: str
    authority: str  # the server, with a login before it, or the bucket
    path: str
    query: str
    fragment: str


class _Secrets:
    """Credentials of addresses that were met in this process, by the address without them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._key = secrets.token_bytes(32)
        self._logins: dict[tuple[str, str], str] = {}
        self._queries: dict[str, str] = {}

    def hide(self, link: _Link, *, logins: bool) -> str:
        scheme, authority, path, query, fragment = link
        login, _, host = authority.rpartition("@") if scheme.lower() in _WITH_LOGIN else ("", "", authority)
        pairs = query[1:].split("&") if query else []
        names = {unquote(pair.partition("=")[0]).lower() for pair in pairs}
        signing = [kind for kind, *tells in _SIGNATURES if any(tell <= names for tell in tells)]
        kept = [
            self._hide_parameter(pair)
            for pair in pairs
            if not any(kind.fullmatch(unquote(pair.partition("=")[0])) for kind in signing)
        ]
        shown = "?" + "&".join(kept) if kept else ""
        address = f"{scheme}://{host}{path}{shown}{fragment}"
        with self._lock:
            if login and logins:
                self._logins[scheme.lower(), host.lower()] = login
            if shown != query:
                self._queries[address] = query
        return address

    def _hide_parameter(self, pair: str) -> str:
        name, equals, value = pair.partition("=")
        if not _SECRET.fullmatch(unquote(name)) or not equals or value.startswith(_HIDDEN):
            return pair
        return f"{name}={_HIDDEN}{hmac.new(self._key, value.encode(), 'sha256').hexdigest()[:16]}"

    def reveal(self, address: str) -> str:
        scheme, host, path, query, fragment = _split_link(address)
        if not scheme:
            return address
        with self._lock:
            login = self._logins.get((scheme.lower(), host.lower()), "")
            query = self._queries.get(address, query)
        return f"{scheme}://{login}{'@' if login else ''}{host}{path}{query}{fragment}"

    def knows(self, scheme: str, host: str) -> bool:
        return (scheme.lower(), host.lower()) in self._logins

    def scrub(self, text: str) -> str:
        """Return a text without the credentials that are known."""
        with self._lock:
            known = {*self._logins.values(), *self._queries.values()}
        known |= {unquote(login) for login in self._logins.values()}
        known |= {password for login in known if (password := login.partition(":")[2]) and login[0] != "?"}
        for secret in sorted(known, key=len, reverse=True):
            text = text.replace(secret, "…")
        return text


_SECRETS = _Secrets()


def is_remote(path: object) -> bool:
    """Return whether a text is the address of a file that is not a path: ``https://…``, ``zip://…::…``."""
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def is_web(address: str) -> bool:
    """Return whether an address, and no link of a chain, is that of a web server."""
    return _split_link(address).scheme.lower() in _PUBLIC


def split_chain(address: str) -> tuple[str, str, str]:
    """Return the archive's kind, the member, and the address of the archive, of ``zip://…::…``; else empty texts."""
    kind, colons, rest = address.partition("://")
    member, between, target = rest.partition("::")
    if kind.lower() not in {"zip", "tar"} or not colons or not between or not target:
        return "", "", address
    return kind.lower(), member.lstrip("/"), target


def hide_secrets(cell: object, *, logins: bool = True) -> object:
    """Return an address without its credentials, which the process remembers; any other value as it is.

    Of a stranger's addresses ``logins`` are not remembered: they would count for the whole server.
    """
    if not isinstance(cell, str) or not is_remote(cell):
        return cell
    return "::".join(_hide_link(link, logins=logins) for link in cell.strip().split("::"))


def _hide_link(link: str, *, logins: bool) -> str:
    parts = _split_link(link)
    return _SECRETS.hide(parts, logins=logins) if parts.scheme else link


def _split_link(link: str) -> _Link:
    """Return the parts of an address; of stores but web servers, a path may have any characters."""
    parts = _PARTS.match(link)
    if parts is None:
        return _Link("", "", link, "", "")
    scheme, authority, path, query, fragment = (part or "" for part in parts.groups())
    if scheme.lower() not in _WITH_LOGIN:
        return _Link(scheme, authority, path + query + fragment, "", "")
    return _Link(scheme, authority, path, query, fragment)


def reveal_secrets(address: str) -> str:
    """Return an address with the credentials that the process remembers."""
    return "::".join(_SECRETS.reveal(link) for link in address.split("::"))


def scrub(text: str) -> str:
    """Return a message of a library without credentials."""
    scrubbed = _SECRETS.scrub(text)
    return re.sub(r"[a-z][a-z0-9+.-]+://[^\s'\"<>)]+", lambda found: str(hide_secrets(found[0])), scrubbed)


def find_file_name(path: object) -> str:
    """Return the name of a file without its folders, of a path or an address."""
    text = str(path)
    if not is_remote(text):
        return Path(text).name
    scheme, host, inside, *_ = _split_link(text.partition("::")[0])
    name = posixpath.basename((host + inside).rstrip("/"))
    return unquote(name) if scheme.lower() in _PUBLIC else name


def join_address(folder: str, name: str) -> str:
    """Return the address of a name as a manifest in a folder has it."""
    link, between, target = folder.partition("::")
    scheme, host, path, *_ = _split_link(link)
    if scheme.lower() in {"zip", "tar"}:  # without a host: all of it is a path
        inner = posixpath.normpath(posixpath.join("/", host + path, name)).lstrip("/")
        return f"{scheme}://{inner}{between}{target}"
    if scheme.lower() in _PUBLIC:
        name = name.replace("#", "%23")
    inner = posixpath.normpath(posixpath.join("/", path, name)).lstrip("/")
    return f"{scheme}://{host}/{inner}{between}{target}"


def find_folder(address: str) -> str:
    """Return the address of the folder of a file."""
    link, between, target = address.partition("::")
    scheme, host, path, *_ = _split_link(link)
    inner = (host + path).rpartition("/")[0]
    return f"{scheme}://{inner or (host if path else '')}{between}{target}"


def may_name(base: str, cell: str) -> bool:
    """Return whether a manifest from an address may name a file: of its own store, or of a public server.

    Never a local path; not another bucket, which would be read with the credentials of its reader; not a server of
    this machine or of a private network, unless the manifest comes from there.
    """
    target = split_chain(cell)[2]
    while split_chain(target)[0]:
        target = split_chain(target)[2]
    own = base
    while split_chain(own)[0]:
        own = split_chain(own)[2]
    if "::" in target or not is_remote(target):
        return target == own
    there, here = urlsplit(target), urlsplit(own)
    if (there.scheme, there.netloc.lower()) == (here.scheme, here.netloc.lower()):
        # Of Hugging Face, the repository: its reader may have private ones.
        return there.scheme != "hf" or there.path.split("/")[:3] == here.path.split("/")[:3]
    return (
        there.scheme in _PUBLIC
        and not _SECRETS.knows(there.scheme, there.netloc)
        and is_public_host(there.hostname)
    )


def is_public_host(host: str | None) -> bool:
    """Return whether a name or number may be that of a public server."""
    if not host or not {".", ":"} & set(host) or host.endswith((".local", ".internal", ".localhost")):
        return False
    try:
        return ip_address(host).is_global
    except ValueError:
        return not re.fullmatch(r"[\d.]+|0x[\da-f.x]+", host, re.IGNORECASE)
