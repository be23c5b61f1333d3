"""Web servers of strangers: where they may redirect to, and the files that the page of a folder links to."""

from __future__ import annotations

import asyncio
import html
import re
import socket
from typing import Any
from urllib.parse import urljoin, urlsplit

from speechlab._require import require
from speechlab.errors import InvalidRequestError
from speechlab.remote._addresses import hide_secrets, is_public_host

# A list of 100,000 files has about 10 MB.
_MAX_PAGE_BYTES = 32 << 20
_LINK = re.compile(r"""\shref\s{0,9}=\s{0,9}["']([^"'<>\s]{1,2000})["']""", re.IGNORECASE)


async def open_session(**options: Any) -> Any:
    """Open a session of aiohttp for the file system of web addresses."""
    aiohttp = require("aiohttp")
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_check_redirect)

    class Response(aiohttp.ClientResponse):  # type: ignore[misc, name-defined]  # of a package that may be missing
        """A reply; whoever reads it as a whole gets an error if it is large."""

        _body: bytes | None = None

        async def read(self) -> bytes:
            if self._body is None:
                body = bytearray()
                async for piece in self.content.iter_any():
                    body += piece
                    if len(body) > _MAX_PAGE_BYTES:
                        self.close()
                        raise InvalidRequestError(
                            f"the page has more than {_MAX_PAGE_BYTES / 1e6:.0f} MB; give the address of a manifest"
                        )
                self._body = bytes(body)
            return await super().read()  # type: ignore[no-any-return]

    return aiohttp.ClientSession(**options, trace_configs=[trace], response_class=Response)


def list_links(system: Any, folder: str) -> list[str]:
    """Return the names of the files that the page of a folder links to; ``folder`` ends with a slash."""
    page = system.cat_file(folder)
    if b"<" not in page[:1000]:
        return []
    own = urlsplit(folder)
    names = set()
    for link in _LINK.findall(page.decode("utf-8", "replace")):
        try:
            found = urlsplit(urljoin(folder, html.unescape(link)))
        except ValueError:  # [ as in an address of IPv6
            continue
        inside, _, name = found.path.rpartition("/")
        if name and (found.scheme, found.netloc, inside + "/") == (own.scheme, own.netloc, own.path):
            names.add(name)
    return sorted(names)


async def _check_redirect(_session: Any, _context: Any, found: Any) -> None:
    """Refuse the way from a public server to one of this machine or a private network, and from HTTPS to HTTP."""
    reply, source = found.response, found.url
    target = source.join(require("yarl").URL(reply.headers.get("Location") or reply.headers.get("URI") or ""))
    if not target.host or (target.scheme, target.host) == (source.scheme, source.host):
        return
    if (source.scheme, target.scheme) == ("https", "http"):
        why = "without encryption"
    elif await _find_kinds(target.host) <= {True} or await _find_kinds(source.host) == {False}:
        return
    else:
        why = "in a private network"
    reply.close()
    message = f"{source.host} sends its readers on to a server {why}, {hide_secrets(str(target))!s:.100}"
    raise InvalidRequestError(f"{message}; give that address if you trust it")


async def _find_kinds(host: str) -> set[bool]:
    """Return whether the addresses of a server are public; nothing if it has none."""
    if not is_public_host(host):
        return {False}
    try:
        places = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    return {is_public_host(str(place[4][0]).partition("%")[0]) for place in places}
