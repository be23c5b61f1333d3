"""The names that users give to models: a folder, a file, a usual size, or a repository of a model hub."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from speechlab._arguments import propose_name
from speechlab.errors import ModelError

_HUB_NAME = re.compile(
    r"(?P<repository>\w[\w.-]*/\w[\w.-]*)(?:@(?P<revision>\w[\w./-]*))?(?::(?P<file>[^:\\]+))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class HubName:
    """A repository of a model hub: ``owner/name[@revision][:file]``.

    Attributes:
        repository: Owner and name.
        revision: Branch, tag or commit; empty for the main branch.
        file: A file, or a part of its name such as ``Q4_K_M``; empty for the engine's choice.
    """

    repository: str
    revision: str = ""
    file: str = ""

    def __str__(self) -> str:
        revision, file = f"@{self.revision}" if self.revision else "", f":{self.file}" if self.file else ""
        return f"{self.repository}{revision}{file}"


def parse_model_name(name: str | Path, usual: Mapping[str, str]) -> Path | HubName:
    """Read the name of a model; what exists on this machine comes first.

    Args:
        name: A path, ``owner/name[@revision][:file]``, or one of ``usual``.
        usual: Repositories by their usual short names.
    """
    text = str(name)
    path = Path(text).expanduser()
    if path.exists():
        return path
    short, at, revision = text.partition("@")
    if short in usual:
        return HubName(usual[short], revision if at else "")
    match = _HUB_NAME.fullmatch(text)
    if match is None or isinstance(name, Path) or match["repository"].endswith((".gguf", ".onnx", ".bin")):
        meant = propose_name(usual, re.sub(r"^(?:faster-)?whisper-", "", short))
        listed = f" ({', '.join(usual)})" if not meant else ""
        sizes = f"a usual size{listed}, " if usual else ""
        raise ModelError(
            f"there is no model {text!r}: no such folder or file exists{meant or '; '}"
            f"{' Else give' if meant else 'give'} an existing path, {sizes}"
            f"or a repository of the hub, of the form owner/name[@revision][:file]"
        )
    return HubName(match["repository"], match["revision"] or "", match["file"] or "")
