"""Recognizers in folders: which kind of model the files are, which of them are missing, and their languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speechlab.engines._sherpa.formats import RECOGNIZER_LAYOUTS, check_precision, list_models, select_model
from speechlab.engines._weights.onnx_header import OnnxHeader, read_onnx_header
from speechlab.errors import ConfigurationError, ModelError

# Factories of models of one file, by their model_type; the first parameter is the file.
_SINGLE_FACTORIES = {
    "sense_voice_ctc": ("from_sense_voice", "model"),
    "paraformer": ("from_paraformer", "paraformer"),
    "EncDecCTCModelBPE": ("from_nemo_ctc", "model"),
    "EncDecCTCModel": ("from_nemo_ctc", "model"),
    "EncDecHybridRNNTCTCBPEModel": ("from_nemo_ctc", "model"),
    "zipformer2_ctc": ("from_zipformer_ctc", "model"),
    "wenet_ctc": ("from_wenet_ctc", "model"),
    "telespeech_ctc": ("from_telespeech_ctc", "model"),
}
_KINDS = (
    "Parakeet and other NeMo models, Zipformer, SenseVoice, Paraformer, Whisper, Moonshine, WeNet, TeleSpeech"
)
# Properties without which sherpa-onnx ends its process.
_METADATA = {
    "from_transducer": ("model_type",),
    "nemo_transducer": ("vocab_size", "subsampling_factor", "pred_rnn_layers", "pred_hidden"),
    "from_nemo_ctc": ("vocab_size", "subsampling_factor"),
    "from_sense_voice": ("vocab_size", "lfr_window_size", "lfr_window_shift", "normalize_samples", "neg_mean",
                         "inv_stddev"),
    "from_paraformer": ("vocab_size", "lfr_window_size", "lfr_window_shift", "neg_mean", "inv_stddev"),
    "from_wenet_ctc": ("vocab_size", "subsampling_factor"),
    "from_whisper": ("n_mels", "n_text_layer", "n_text_ctx", "n_text_state", "n_vocab", "sot", "eot", "blank_id",
                     "translate", "transcribe", "no_timestamps", "no_speech", "sot_sequence"),
}  # fmt: skip
# The languages of Parakeet TDT 0.6B v3, whose folder names none.
_PARAKEET_V3 = "bg hr cs da nl en et fi fr de el hu it lv lt mt pl pt ro sk sl es sv ru uk"
_KNOWN_NAMES = {
    "parakeet-tdt-0.6b-v2": "en",
    "parakeet-tdt-0.6b-v3": _PARAKEET_V3,
    "parakeet-tdt_ctc-110m": "en",
}
# Codes that stand for themselves as parts of names: "sherpa-onnx-zipformer-en-2023-06-26".
_CODES_IN_NAMES = """
ar be bg bn ca cs da de el en es et fa fi fr he hi hr hu it ja ka kk ko lt lv ml nl pl pt ro ru sk sl sv ta te th tr
uk ur uz vi yue zh
"""


@dataclass(frozen=True, slots=True)
class RecognizerModel:
    """A recognizer that can be loaded.

    Attributes:
        folder: The folder.
        factory: Function of ``sherpa_onnx.OfflineRecognizer`` that makes it.
        options: Its arguments, apart from threads and language.
        languages: Codes of its languages.
        identifies: Whether it says in which language a recording is.
        header: Head of its first file.
    """

    folder: Path
    factory: str
    options: dict[str, Any]
    languages: tuple[str, ...]
    identifies: bool
    header: OnnxHeader


def find_recognizer(folder: Path, name: str, languages: Sequence[str], precision: str) -> RecognizerModel:
    """Find the model in a folder, and check its files without loading it.

    Args:
        folder: The folder.
        name: Its name, or that of its repository, which may name the languages.
        languages: Codes of the languages; empty for those that are stated.
        precision: One of ``PRECISIONS``, if the folder has both.

    Raises:
        ConfigurationError: The languages are unknown, or the precision does not exist.
        ModelError: Files are missing, incomplete, or of a model that sherpa-onnx does not recognize with.
    """
    check_precision(precision)
    models = list_model_files(folder)
    tokens = find_one_file(folder, "tokens.txt")
    layout = next(
        (each for each in RECOGNIZER_LAYOUTS if _select_file(models, each.files[0][1], precision)), None
    )
    if layout is None:
        factory, options, header = _find_single_model(folder, models, precision)
    else:
        found = {parameter: _select_file(models, part, precision) for parameter, part in layout.files}
        absent = [part for parameter, part in layout.files if found[parameter] is None]
        if absent or tokens is None:
            names = [*(f"…{part}….onnx" for part in absent), *(["tokens.txt"] if tokens is None else [])]
            raise ModelError(
                f"{folder} has the files of a {layout.name} model, but lacks {', '.join(names)}; "
                f"it has {describe_files(folder)}"
            )
        headers = {parameter: _read_any_header(path) for parameter, path in found.items() if path}
        factory, header = layout.factory, headers.get("encoder", headers[layout.files[0][0]])
        options = {parameter: str(path) for parameter, path in found.items()}
    if tokens is None:
        raise ModelError(
            f"{folder} lacks tokens.txt, the symbols of the model; it has {describe_files(folder)}"
        )
    options["tokens"] = str(tokens)
    _check_header(factory, header, options)
    known = tuple(languages) or _find_languages(name, header)
    if not known:
        raise ConfigurationError(
            f"the languages of the model in {folder} are stated neither by it nor by the folder's name; "
            "give the option languages, such as languages=['de']"
        )
    identifies = factory == "from_sense_voice" or header.get_number("is_multilingual") == 1
    return RecognizerModel(folder, factory, options, known, identifies, header)


def list_model_files(folder: Path) -> list[Path]:
    """Return the models of a folder, in alphabetical order."""
    if not folder.is_dir():
        raise ModelError(f"there is no folder {folder}; give the folder of a model for sherpa-onnx")
    models = [
        folder / name for name in list_models([path.name for path in folder.iterdir() if path.is_file()])
    ]
    if not models:
        raise ModelError(
            f"{folder} has no .onnx file; it has {describe_files(folder)}. sherpa-onnx reads {_KINDS}, "
            "exported for it (its documentation: pretrained models)"
        )
    return models


def find_one_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name, with any prefix (``base-tokens.txt``); None if there is none."""
    exact = folder / name
    if exact.is_file():
        return exact
    return next((path for path in sorted(folder.glob(f"*{name}")) if path.is_file()), None)


def describe_files(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(names[:8]) or "no files") + more


def _select_file(models: Sequence[Path], part: str, precision: str) -> Path | None:
    name = select_model([path.name for path in models], part, precision)
    return next((path for path in models if path.name == name), None)


def _read_any_header(path: Path) -> OnnxHeader:
    return OnnxHeader(path) if path.suffix == ".ort" else read_onnx_header(path)


def _find_single_model(
    folder: Path, models: Sequence[Path], precision: str
) -> tuple[str, dict[str, Any], OnnxHeader]:
    path = _select_file(models, "", precision)
    assert path is not None  # there is a model
    header = _read_any_header(path)
    if header.model_type not in _SINGLE_FACTORIES:
        kind = (
            f"its model_type is {header.model_type!r:.40}" if header.model_type else "it states no model_type"
        )
        raise ModelError(
            f"{path} is no recognizer that is known here: {kind}, and the folder has {describe_files(folder)}. "
            f"There are {_KINDS}, exported for sherpa-onnx"
        )
    factory, parameter = _SINGLE_FACTORIES[header.model_type]
    return factory, {parameter: str(path)}, header


def _check_header(factory: str, header: OnnxHeader, options: dict[str, Any]) -> None:
    if any(name.lower().startswith(("cache", "len_cache", "avg_cache")) for name in header.inputs):
        raise ModelError(
            f"{header.path} is a streaming model, which takes sound piece by piece; "
            "give the folder of the non-streaming export of the model"
        )
    if factory == "from_whisper" and not header.model_type.startswith("whisper"):
        raise ModelError(
            f"{header.path} is no recognizer that is known here: its model_type is {header.model_type!r:.40}. "
            f"There are {_KINDS}, exported for sherpa-onnx"
        )
    header.require_metadata(*_METADATA.get(factory, ()))
    if factory == "from_transducer" and header.model_type.startswith("EncDec"):
        header.require_metadata(*_METADATA["nemo_transducer"])
        options["model_type"] = "nemo_transducer"


def _find_languages(name: str, header: OnnxHeader) -> tuple[str, ...]:
    codes = header.metadata.get("all_language_codes", "")
    if codes and header.get_number("is_multilingual") == 1:
        return tuple(code for code in codes.split(",") if code)
    if "n_text_layer" in header.metadata:  # Whisper without other languages
        return ("en",)
    of_sense_voice = [
        name[5:] for name in header.metadata if name.startswith("lang_") and name != "lang_auto"
    ]
    if of_sense_voice:
        return tuple(of_sense_voice)
    for known, listed in _KNOWN_NAMES.items():
        if known in name:
            return tuple(listed.split())
    return tuple(dict.fromkeys(part for part in re.split(r"[-_.]", name) if part in _CODES_IN_NAMES.split()))
