"""The formats of models that users name: which files of a folder or repository are needed, and what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from speechlab.errors import ModelError

# Repositories of the usual sizes, as faster-whisper names them.
WHISPER_SIZES = {
    **{
        size: f"Systran/faster-whisper-{size}"
        for size in (
            "tiny", "tiny.en", "base", "base.en", "small", "small.en", "medium", "medium.en",
            "large-v1", "large-v2", "large-v3",
        )
    },
    "large": "Systran/faster-whisper-large-v3",
    "large-v3-turbo": "mobiuslabsgmbh/faster-whisper-large-v3-turbo",
    "turbo": "mobiuslabsgmbh/faster-whisper-large-v3-turbo",
    "distil-small.en": "Systran/faster-distil-whisper-small.en",
    "distil-medium.en": "Systran/faster-distil-whisper-medium.en",
    "distil-large-v2": "Systran/faster-distil-whisper-large-v2",
    "distil-large-v3": "Systran/faster-distil-whisper-large-v3",
    "distil-large-v3.5": "distil-whisper/distil-large-v3.5-ct2",
}  # fmt: skip
_WHISPER_FILES = ("config.json", "model.bin", "tokenizer.json")
_WHISPER_VOCABULARIES = ("vocabulary.json", "vocabulary.txt")
# Found in the config.json of CTranslate2's Whisper models only.
_WHISPER_KEYS = {"alignment_heads", "lang_ids", "suppress_ids", "suppress_ids_begin"}

KOKORO_REPOSITORY = "onnx-community/Kokoro-82M-v1.0-ONNX"
# Endings of the names of Kokoro's models, by their precision.
KOKORO_PRECISIONS = {
    "fp32": ("model.onnx", "kokoro-v1.0.onnx"),
    "fp16": ("model_fp16.onnx", "kokoro-v1.0.fp16.onnx"),
    "int8": ("model_quantized.onnx", "kokoro-v1.0.int8.onnx"),
    "q8f16": ("model_q8f16.onnx",),
    "uint8": ("model_uint8.onnx",),
    "uint8f16": ("model_uint8f16.onnx",),
    "q4": ("model_q4.onnx",),
    "q4f16": ("model_q4f16.onnx",),
}

_GGUF_PREFERRED = "Q4_K_M"
_GGUF_SHARD = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)", re.IGNORECASE)
# Other formats of weights, by the endings of their files; the first that is found is named.
_FOREIGN = (
    ("PyTorch or safetensors weights", (".safetensors", ".pt", ".pth", "pytorch_model.bin")),
    ("GGUF weights", (".gguf",)),
    ("weights of whisper.cpp", ("ggml-*.bin",)),
    ("ONNX weights", (".onnx",)),
    ("weights of CTranslate2", ("model.bin",)),
)


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """A format of weights.

    Attributes:
        title: Its name in messages.
        choose: Chooses the needed files among the names in a folder or repository, the main one first. The second
            argument is what the user's name says of the file. Raises a ModelError that says what is wrong.
        usual: Repositories by their usual short names.
        check: Checks a small file before the larger ones are fetched.
    """

    title: str
    choose: Callable[[Sequence[str], str], tuple[str, ...]]
    usual: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Path], None] = lambda _: None


def _choose_whisper_files(names: Sequence[str], wanted: str) -> tuple[str, ...]:
    if wanted:
        raise ModelError(f"a Whisper model is a whole folder, of which {wanted!r} is a part; name the folder")
    vocabularies = [name for name in _WHISPER_VOCABULARIES if name in names]
    absent = [name for name in _WHISPER_FILES if name not in names]
    if not vocabularies:
        absent.append(" or ".join(_WHISPER_VOCABULARIES))
    if absent:
        raise ModelError(
            f"it is not a CTranslate2 Whisper model: it lacks {', '.join(absent)}{_describe_foreign(names)}; "
            f"take a usual size ('small', 'large-v3-turbo'), a repository such as {WHISPER_SIZES['small']}, or a "
            f"folder made by ct2-transformers-converter with --copy_files tokenizer.json preprocessor_config.json"
        )
    further = [name for name in ("preprocessor_config.json",) if name in names]
    return ("model.bin", "config.json", "tokenizer.json", *vocabularies, *further)


def _check_whisper_config(path: Path) -> None:
    if path.name != "config.json":
        return
    try:
        fields = json.loads(path.read_bytes())
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or not _WHISPER_KEYS & set(fields):
        raise ModelError(
            "its config.json is not that of a Whisper model of CTranslate2; take a usual size ('small', "
            "'large-v3-turbo') or a repository such as " + WHISPER_SIZES["small"]
        )


def _choose_gguf_files(names: Sequence[str], wanted: str) -> tuple[str, ...]:
    if wanted in names and not _GGUF_SHARD.search(wanted):
        return (wanted,)
    models: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.lower().endswith(".gguf") and "mmproj" not in name.lower():
            models.setdefault(_GGUF_SHARD.sub("", name), []).append(name)
    if not models:
        raise ModelError(
            f"it has no .gguf file{_describe_foreign(names)}; take a repository whose name ends in -GGUF"
        )
    matching = [name for name in models if _has_gguf_name(name, wanted or _GGUF_PREFERRED)]
    if not wanted and len(models) == 1:
        matching = list(models)
    if len(matching) != 1:
        what = (
            f"{len(matching) or 'no'} .gguf files named {wanted!r}"
            if wanted
            else f"{len(models)} .gguf files"
        )
        raise ModelError(f"it has {what}; name one of them after a colon: {', '.join(models)}")
    return tuple(models[matching[0]])


def _has_gguf_name(name: str, wanted: str) -> bool:
    stem, wanted = name.lower().removesuffix(".gguf"), wanted.lower().removesuffix(".gguf")
    return stem == _GGUF_SHARD.sub("", wanted + ".gguf").removesuffix(".gguf") or bool(
        re.search(rf"(?:^|[-._/]){re.escape(wanted)}$", stem)
    )


def _check_gguf(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path.name} is not a GGUF file; take one whose name ends in .gguf")


def build_kokoro_format(precision: str) -> ModelFormat:
    """Return the format of Kokoro's models with a precision."""
    if precision not in KOKORO_PRECISIONS:
        raise ModelError(
            f"Kokoro has no precision {precision!r}; choose one of: {', '.join(KOKORO_PRECISIONS)}"
        )

    def choose_files(names: Sequence[str], wanted: str) -> tuple[str, ...]:
        endings = (wanted,) if wanted else KOKORO_PRECISIONS[precision]
        models = [name for name in names if PurePosixPath(name).name in endings or name in endings]
        voices = [name for name in names if re.fullmatch(r"(?:.*/)?voices/[a-z]{2}_\w+\.bin", name)]
        voices += [name for name in names if re.fullmatch(r"voices[\w.-]*\.(?:bin|npz)", name)]
        if not models or not voices:
            lack = "voices (voices/*.bin)" if models else f"a model of precision {precision} ({endings[0]})"
            has = ", ".join(name for name in names if name.endswith(".onnx")) or "no .onnx file"
            raise ModelError(
                f"it is not a Kokoro model in ONNX: it lacks {lack}; it has {has}; take {KOKORO_REPOSITORY}, or "
                f"another precision: {', '.join(KOKORO_PRECISIONS)}"
            )
        return (models[0], *(name for name in ("tokenizer.json",) if name in names), *sorted(voices))

    return ModelFormat("Kokoro in ONNX", choose_files, {"kokoro": KOKORO_REPOSITORY})


def _describe_foreign(names: Sequence[str]) -> str:
    for title, endings in _FOREIGN:
        for name in names:
            last = PurePosixPath(name)
            if any(name.endswith(ending) or last.match(ending) for ending in endings):
                return f" (it has {title}: {name})"
    return ""


WHISPER_FORMAT = ModelFormat(
    "CTranslate2 Whisper", _choose_whisper_files, WHISPER_SIZES, _check_whisper_config
)
GGUF_FORMAT = ModelFormat("GGUF", _choose_gguf_files, {}, _check_gguf)
