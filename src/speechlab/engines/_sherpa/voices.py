"""Voices in folders: the kind of model, missing files, speakers and their languages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speechlab.engines._protocols import EngineVoice
from speechlab.engines._sherpa.formats import find_vocoder
from speechlab.engines._sherpa.layouts import describe_files, find_one_file, list_model_files
from speechlab.engines._weights.onnx_header import OnnxHeader, read_onnx_header
from speechlab.errors import ConfigurationError, InvalidRequestError, ModelError
from speechlab.text import language_code

_KINDS = "Piper and other VITS voices, Matcha, Kokoro and Kitten"
# Kokoro's names begin with a language and a gender: "af_heart".
_KOKORO_LANGUAGES = dict(
    zip("abefhijpz", ("en", "en", "es", "fr", "hi", "it", "ja", "pt", "zh"), strict=True)
)
_GENDERS = {"f": "Female", "m": "Male"}
_NAMED = re.compile(r"([a-z])([fm])_\w+")
_MAX_SPEAKERS = 10_000


@dataclass(frozen=True, slots=True)
class VoiceModel:
    """A voice, or several, that can be loaded.

    Attributes:
        folder: The folder.
        kind: ``"Vits"``, ``"Kokoro"``, ``"Matcha"`` or ``"Kitten"``: the part of the name of sherpa-onnx's settings.
        options: The settings.
        rules: Files with rules for numbers and dates.
        voices: The speakers, in the order of their numbers.
        sample_rate: Rate in Hz, as stated by the model.
        phonemes: Alphabet of the phonemes that the model takes: ``"kokoro"`` or ``"espeak"``; empty if it takes text.
        espeak_voice: espeak-ng's name of the language, such as ``"de"``; empty for that of each voice.
        piper: Configuration of a voice as Piper publishes it, without metadata and tokens; empty for others.
    """

    folder: Path
    kind: str
    options: dict[str, Any]
    rules: dict[str, str]
    voices: tuple[EngineVoice, ...]
    sample_rate: int
    phonemes: str
    espeak_voice: str
    piper: Mapping[str, Any]


def find_voices(path: Path, name: str, languages: Sequence[str]) -> VoiceModel:
    """Find the voices in a folder (or of one ``.onnx`` file in it), and check the files without loading them.

    ``name`` is that of the folder or of its repository, for descriptions.

    Raises:
        ConfigurationError: The languages are unknown.
        ModelError: Files are missing, incomplete, or of a model that sherpa-onnx does not speak with.
    """
    folder = path.parent if path.is_file() else path
    models = [path] if path.is_file() else list_model_files(folder)
    tokens = find_one_file(folder, "tokens.txt")
    vocoder_name = find_vocoder([each.name for each in models])
    vocoder = next((each for each in models if each.name == vocoder_name), None)
    main = next((each for each in models if each != vocoder), models[0])
    configuration = main.with_name(f"{main.name}.json")
    if configuration.is_file():
        return _find_piper_voice(main, configuration, languages)
    if others := [each.name for each in models if each not in (main, vocoder)]:
        raise ModelError(
            f"{folder} has several voices: {main.name}, {', '.join(others[:8])}; give the path of one of these files"
        )
    header = read_onnx_header(main)
    kind = _find_kind(folder, header)
    needed = {"tokens.txt": tokens}
    if kind in {"Kokoro", "Kitten"}:
        needed["voices.bin"] = _find_voices_file(folder)
    if kind == "Matcha":
        needed["a vocoder (vocos….onnx or hifigan….onnx)"] = vocoder
    if absent := [name for name, found in needed.items() if found is None]:
        raise ModelError(
            f"{folder} has the files of a {kind} voice, but lacks {', '.join(absent)}; "
            f"it has {describe_files(folder)}"
        )
    header.require_metadata("sample_rate", "n_speakers", *_REQUIRED[kind])
    lexicons = sorted(folder.glob("lexicon*.txt"))
    options = {"tokens": str(tokens), "lexicon": ",".join(map(str, lexicons))}
    options["acoustic_model" if kind == "Matcha" else "model"] = str(main)
    if kind == "Matcha":
        options["vocoder"] = str(vocoder)
    elif kind != "Vits":
        options["voices"] = str(needed["voices.bin"])
    return VoiceModel(
        folder,
        kind,
        options,
        _find_rules(folder),
        _build_voices(name, kind, header, languages),
        header.get_number("sample_rate"),
        _choose_alphabet(kind, header, bool(lexicons)),
        header.metadata.get("voice", "") if kind != "Kokoro" else "",
        {},
    )


_REQUIRED = {
    "Vits": ("language", "comment"),
    "Kokoro": ("has_espeak", "speaker_names", "style_dim"),
    "Kitten": ("has_espeak", "speaker_names", "style_dim"),
    "Matcha": ("use_eos_bos", "pad_id"),
}


def _find_kind(folder: Path, header: OnnxHeader) -> str:
    kinds = {
        "kokoro": "Kokoro",
        "kitten-tts": "Kitten",
        "matcha-tts": "Matcha",
        "vits": "Vits",
        "melo-vits": "Vits",
    }
    if header.model_type in kinds:
        return kinds[header.model_type]
    if not header.model_type and "n_speakers" in header.metadata:  # older exports
        if "style_dim" in header.metadata:
            return "Kokoro"
        return "Matcha" if "pad_id" in header.metadata and "comment" not in header.metadata else "Vits"
    stated = (
        f"its model_type is {header.model_type!r:.40}" if header.model_type else "it states no model_type"
    )
    raise ModelError(
        f"{header.path} is no voice that is known here: {stated}, and the folder has {describe_files(folder)}. "
        f"There are {_KINDS}, exported for sherpa-onnx; a voice as Piper publishes it needs its "
        f"{header.path.name}.json"
    )


def _find_voices_file(folder: Path) -> Path | None:
    path = folder / "voices.bin"
    return path if path.is_file() else None


def _find_rules(folder: Path) -> dict[str, str]:
    return {
        "rule_fsts": ",".join(str(path) for path in sorted(folder.glob("*.fst"))),
        "rule_fars": ",".join(str(path) for path in sorted(folder.glob("*.far"))),
    }


def _choose_alphabet(kind: str, header: OnnxHeader, has_lexicon: bool) -> str:
    if kind == "Kokoro":
        return "kokoro"
    if header.metadata.get("frontend") == "characters" or not _needs_espeak(header):
        return ""
    return "" if has_lexicon else "espeak"


def _needs_espeak(header: OnnxHeader) -> bool:
    if "has_espeak" in header.metadata:
        return header.get_number("has_espeak") == 1
    return any(name in header.metadata.get("comment", "") for name in ("piper", "coqui", "icefall"))


def _build_voices(
    folder_name: str, kind: str, header: OnnxHeader, languages: Sequence[str]
) -> tuple[EngineVoice, ...]:
    count = header.get_number("n_speakers", 1) or 1
    if count > _MAX_SPEAKERS:
        raise ModelError(f"{header.path} states {count:,} speakers; at most {_MAX_SPEAKERS:,} are possible")
    names = [name for name in header.metadata.get("speaker_names", "").split(",") if name]
    if len(names) != count:
        names = [f"speaker-{number}" for number in range(count)] if count > 1 else [folder_name]
    stated = tuple(languages) or _read_languages(header.metadata)
    voices = []
    for name in names:
        named = _NAMED.fullmatch(name) if kind == "Kokoro" else None
        spoken = (_KOKORO_LANGUAGES.get(named[1], "en"),) if named and not languages else stated
        if not spoken:
            raise ConfigurationError(
                f"{header.path} does not state its language; give the option languages, such as languages=['de']"
            )
        gender = _GENDERS[named[2]] if named else "Neutral"
        voices.append(EngineVoice(name, spoken, gender, f"{folder_name}, {', '.join(spoken)}"))
    return tuple(voices)


def _read_languages(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Return the languages of a voice: codes of the names in ``language``, or else of espeak-ng's voice."""
    words = re.split(r"[^\w-]+", metadata.get("language", ""))
    codes = [code for word in [*words, metadata.get("voice", "")] if (code := _to_code(word))]
    return tuple(dict.fromkeys(codes))


def _to_code(name: str) -> str:
    try:
        return language_code(name) if name else ""
    except InvalidRequestError:
        return ""


def _find_piper_voice(model: Path, configuration: Path, languages: Sequence[str]) -> VoiceModel:
    try:
        piper = json.loads(configuration.read_text(encoding="utf-8"))
        rate, count = int(piper["audio"]["sample_rate"]), int(piper.get("num_speakers", 1) or 1)
        ids = piper["phoneme_id_map"]
        espeak_voice = str(piper.get("espeak", {}).get("voice", ""))
        names = {int(number): str(name) for name, number in (piper.get("speaker_id_map") or {}).items()}
        _ = [int(ids[mark][0]) for mark in "_^$"]  # without which it cannot be spoken
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{configuration} is no configuration of a Piper voice ({type(error).__name__}: {error}); "
            "download it again"
        ) from error
    if piper.get("phoneme_type", "espeak") not in {"espeak", "text"} or not 1 <= count <= _MAX_SPEAKERS:
        raise ModelError(
            f"{configuration} has phonemes of the type {piper.get('phoneme_type')!r:.40} and {count:,} speakers; "
            "espeak and text, and up to 10,000 speakers are possible"
        )
    read_onnx_header(model)
    stated = tuple(languages) or tuple(
        filter(None, [_to_code(str(piper.get("language", {}).get("code", ""))) or _to_code(espeak_voice)])
    )
    if not stated:
        raise ConfigurationError(
            f"{configuration} does not state the language; give the option languages, such as languages=['de']"
        )
    stem = model.name.removesuffix(".onnx")
    spoken_by = [names.get(number, f"speaker-{number}") for number in range(count)] if count > 1 else [stem]
    inference = piper.get("inference", {})
    return VoiceModel(
        model.parent,
        "Vits",
        {
            "model": str(model),
            "noise_scale": float(inference.get("noise_scale", 0.667)),
            "noise_scale_w": float(inference.get("noise_w", 0.8)),
            "length_scale": float(inference.get("length_scale", 1.0)),
        },
        _find_rules(model.parent),
        tuple(
            EngineVoice(name, stated, "Neutral", f"Piper {stem}, {', '.join(stated)}") for name in spoken_by
        ),
        rate,
        "text" if piper.get("phoneme_type") == "text" else "espeak",
        espeak_voice,
        piper,
    )
