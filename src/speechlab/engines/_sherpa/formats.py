"""The files that sherpa-onnx needs, by their names in a folder or in a repository of the hub."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from speechlab.engines._weights.formats import ModelFormat
from speechlab.errors import ConfigurationError, ModelError

PRECISIONS = ("int8", "float32")
_VOCODER = re.compile("vocos|hifigan|vocoder")
# Files beside the models of a voice: symbols, readings, rules, and tables of speakers.
_BESIDE_VOICES = re.compile(r".*tokens\.txt|lexicon[^/]*\.txt|[^/]*\.(fst|far)|voices\.bin")


@dataclass(frozen=True, slots=True)
class RecognizerLayout:
    """A kind of model: its files by parameter of sherpa-onnx, and the parts of their names."""

    name: str
    factory: str
    files: tuple[tuple[str, str], ...]


# In this order: a folder has the first layout whose first file it has.
RECOGNIZER_LAYOUTS = (
    RecognizerLayout(
        "Moonshine", "from_moonshine",
        (("preprocessor", "preprocess"), ("encoder", "encode"), ("uncached_decoder", "uncached_decode"),
         ("cached_decoder", "cached_decode")),
    ),
    RecognizerLayout(
        "Moonshine", "from_moonshine_v2", (("decoder", "decoder_model_merged"), ("encoder", "encoder_model"))
    ),
    RecognizerLayout(
        "transducer", "from_transducer", (("joiner", "joiner"), ("encoder", "encoder"), ("decoder", "decoder"))
    ),
    RecognizerLayout("Whisper", "from_whisper", (("encoder", "encoder"), ("decoder", "decoder"))),
)  # fmt: skip


def list_models(names: Sequence[str]) -> list[str]:
    """Return the names of models outside subfolders, in alphabetical order."""
    return sorted(name for name in names if name.endswith((".onnx", ".ort")) and "/" not in name)


def select_model(names: Sequence[str], part: str, precision: str) -> str | None:
    """Return the model with this part in its name, if possible of the precision."""
    # "cached_decode" is in "uncached_decode" too, and "decoder" in no other part.
    fitting = [name for name in names if re.search(rf"(?<![a-z]){part}", name.lower())]
    preferred = [name for name in fitting if (".int8." in name) == (precision == "int8")]
    return next(iter(preferred or fitting), None)


def find_vocoder(names: Sequence[str]) -> str | None:
    return next((name for name in names if _VOCODER.search(name)), None)


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise ConfigurationError(
            f"precision={precision!r} is not known; choose one of: {', '.join(PRECISIONS)}"
        )


def build_recognizer_format(precision: str) -> ModelFormat:
    """Return the format of recognizers: models of one precision, and their symbols."""
    check_precision(precision)

    def choose_files(names: Sequence[str], wanted: str) -> tuple[str, ...]:
        models = list_models(names)
        symbols = [name for name in names if name.endswith("tokens.txt") and "/" not in name]
        if wanted or not models or not symbols:
            lack = "an .onnx file in its main folder" if not models else "tokens.txt"
            what = f"{wanted!r} is a part of it" if wanted else f"it lacks {lack}"
            raise ModelError(
                f"a recognizer for sherpa-onnx is a whole folder, and {what}; name a repository such as "
                "csukuangfj/sherpa-onnx-nemo-parakeet-tdt-0.6b-v3-int8"
            )
        layout = next(
            (each for each in RECOGNIZER_LAYOUTS if select_model(models, each.files[0][1], precision)), None
        )
        parts = [part for _, part in layout.files] if layout else [""]
        chosen = [name for part in parts if (name := select_model(models, part, precision))]
        # Weights outside the model, for those of more than two gigabytes.
        weights = [name for name in names if name.endswith((".weights", ".onnx.data")) and "/" not in name]
        return (*chosen, *(weights if precision == "float32" else ()), *symbols)

    return ModelFormat(f"sherpa-onnx recognizer {precision}", choose_files)


def _choose_voice_files(names: Sequence[str], wanted: str) -> tuple[str, ...]:
    if wanted:
        if wanted not in names or not wanted.endswith(".onnx"):
            raise ModelError(f"it has no voice {wanted!r}; name an .onnx file with its folder")
        folder = wanted.rpartition("/")[0]
        beside = [name for name in names if name.rpartition("/")[0] == folder]
    else:
        beside = [name for name in names if "/" not in name]
    models = list_models([name.rpartition("/")[2] for name in beside])
    if not models:
        raise ModelError(
            "it has no .onnx file in its main folder; name the file of a voice after a colon, such as "
            "rhasspy/piper-voices:de/de_DE/thorsten/medium/de_DE-thorsten-medium.onnx"
        )
    main = wanted or next(name for name in models if name != find_vocoder(models) or len(models) == 1)
    kept = [main, *(name for name in beside if name == f"{main}.json")]
    if len(kept) == 1:  # not as Piper publishes it
        kept += [name for name in beside if name.rpartition("/")[2] == find_vocoder(models) and name != main]
        kept += [name for name in beside if _BESIDE_VOICES.fullmatch(name.rpartition("/")[2])]
    return tuple(kept)


VOICE_FORMAT = ModelFormat("sherpa-onnx voice", _choose_voice_files)
