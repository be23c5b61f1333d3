"""The engines of one service that are switched on, their lanes and their voices."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from speechlab._arguments import propose_name
from speechlab.engines import NAMING_OPTIONS, Reader, catalogue, create, status
from speechlab.errors import ConfigurationError, SpeechLabError
from speechlab.service._engines.backend import REMOTE_NAME, Backend
from speechlab.service._engines.lanes import EngineLane
from speechlab.service._engines.sharing import FairTurns
from speechlab.service._engines.threads import Threads
from speechlab.service._engines.voices import Catalogue
from speechlab.service._logs import log
from speechlab.service._providers import ServedEngine
from speechlab.service._workers.pool import Decoders, Readers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speechlab.engines import EngineEntry
    from speechlab.service._config import ServiceConfig

# Maximum of recordings of a key that are at another deployment at the same time.
_REMOTE_RECORDINGS = 8


class Engines:
    """All engines of a service. Engines are loaded on first use."""

    def __init__(self, config: ServiceConfig) -> None:
        self.decoders = Decoders(config)
        self.readers = Readers(config) if config.read_workers else None
        self.workers: list[Decoders | Readers] = [self.decoders, *([self.readers] if self.readers else [])]
        entries = list_served_engines(config, self.readers)
        self.backend = Backend(config) if config.recognizer_url else None
        if self.backend is not None:
            entries.append(ServedEngine(REMOTE_NAME, "recognizer", lambda: self.backend, heavy=False))
        self.threads = Threads()
        heavy = FairTurns()

        def build_lane(entry: ServedEngine) -> EngineLane:
            # One recording more than can be decoded at a time: the next is decoded while this one is recognized.
            recordings = config.decode_workers + 1 if self.backend is None else _REMOTE_RECORDINGS
            concurrency = {"synthesizer": config.tts_concurrency, "recognizer": recordings}.get(entry.kind, 1)
            turns, limit = heavy if entry.is_heavy else FairTurns(), config.queue_limit
            return EngineLane(entry, self.threads, turns, concurrency=concurrency, queue_limit=limit)

        self.synthesizers = {
            entry.name: build_lane(entry) for entry in entries if entry.kind == "synthesizer"
        }
        extra, table = {engine.name for engine in config.extra_engines}, catalogue()
        self._read_for = [name for name in self.synthesizers if name not in extra and table[name].reads]
        recognizers = {entry.name: build_lane(entry) for entry in entries if entry.kind == "recognizer"}
        self.recognizer = next(iter(recognizers.values()), None)
        self.translators = {entry.name: build_lane(entry) for entry in entries if entry.kind == "translator"}
        self.lanes = [*self.synthesizers.values(), *recognizers.values(), *self.translators.values()]
        speaking = list(self.synthesizers.values())
        self.catalogue = Catalogue(speaking, single_rate_override=config.single_rate_override)
        widths = {
            "tts": config.tts_concurrency if self.synthesizers else 0,
            "asr": 0 if self.recognizer is None else self.recognizer.concurrency,
            "translate": len(self.translators),
        }
        self.concurrency = ", ".join(f"{service}={number}" for service, number in widths.items() if number)
        """How many calls are worked on at once, in the words of ``CONCURRENCY_HEADER``."""

    def list_recognizer_languages(self) -> tuple[str, ...]:
        """Codes of the languages of the recognizer here. Empty if they are unknown: it is remote, or cannot be made.

        Makes the recognizer; for worker threads.
        """
        if self.recognizer is None or self.backend is not None:
            return ()
        with suppress(Exception):  # an engine that cannot be made says why when it is asked for a transcript
            return tuple(self.recognizer.get_or_create_engine().languages)
        return ()

    def list_translator_languages(self) -> list[str]:
        """Codes of the languages that one translator or another has. Makes the translators; for worker threads."""
        codes: dict[str, None] = {}
        for lane in self.translators.values():
            with suppress(Exception):  # an engine that cannot be made says why at its first translation
                codes |= dict.fromkeys(lane.get_or_create_engine().languages)
        return list(codes)

    def start_workers(self) -> None:
        """Start one process that decodes, if needed, and one for each language that is read in one. Blocks."""
        if self.recognizer is not None and self.backend is None:
            self.decoders.start_one()
        if self.readers is None:
            return
        lanes = [self.synthesizers[name] for name in self._read_for]
        self.readers.start_for_languages(
            {
                code
                for lane in lanes
                for voice in lane.get_or_create_engine().voices
                for code in voice.languages
            }
        )

    def describe_recognizer(self) -> str:
        if self.backend is not None:
            return f"{REMOTE_NAME}: {self.backend.url}"
        return "none" if self.recognizer is None else self.recognizer.entry.name


def list_served_engines(config: ServiceConfig, reader: Reader | None = None) -> list[ServedEngine]:
    """List the engines that are switched on: those given as objects, then those of the table.

    A synthesizer is on if it can run here or has options. Of recognizers and translators the chosen one is on, and
    each that has options. The chosen ones come first. With a remote recognizer, none is on here.
    """
    table = catalogue()
    chosen_names = _choose_engine(config, "recognizer", table), _choose_engine(config, "translator", table)
    names = [*config.engines, *(name for name in chosen_names if name)]
    extra = {engine.name for engine in config.extra_engines}
    for name in names:
        if name not in table and name not in extra:
            raise ConfigurationError(
                f"the settings name the engine {name!r}, which does not exist; there are "
                f"{', '.join(table)}{propose_name(table, name)}"
            )
    engines = list(config.extra_engines)
    for name, entry in table.items():
        options = dict(config.engines.get(name, {}))
        enabled = options.pop("enabled", None)
        is_on = name in chosen_names or bool(options) if enabled is None else bool(enabled)
        if enabled is None and not is_on and entry.kind == "synthesizer" and not entry.wants:
            is_on = status(name).ready
            if not is_on:
                log("engine not offered", engine=name, remedy=status(name).remedy)
        if is_on and name not in extra:
            if options or entry.is_named:
                is_named = entry.is_named or bool(NAMING_OPTIONS & set(options))
                _check_options_by_making_engine(name, options, is_named=is_named)
            if entry.reads and reader is not None:
                options.setdefault("reader", reader)
            engines.append(ServedEngine(name, entry.kind, partial(create, name, **options)))
    if config.recognizer_url:
        engines = [engine for engine in engines if engine.kind != "recognizer"]
    return sorted(engines, key=lambda engine: engine.name not in chosen_names)


def _choose_engine(
    config: ServiceConfig, kind: Literal["recognizer", "translator"], table: Mapping[str, EngineEntry]
) -> str:
    """Return the engine that recognizes, or translates by default.

    It is the one of the settings. If they name none, it is the only one of its kind whose model they name.
    """
    named = [
        name
        for name, options in config.engines.items()
        if name in table
        and table[name].kind == kind
        and options.get("model")
        and options.get("enabled", True)
    ]
    if kind not in config.model_fields_set and len(named) == 1:
        return named[0]
    return config.recognizer if kind == "recognizer" else config.translator


def _check_options_by_making_engine(name: str, options: dict[str, Any], *, is_named: bool) -> None:
    """Make the engine once, so that an unknown option is reported at the start, not at the first request.

    A model or device that the user names is looked for, and fetched, now. Other failures (a missing package, weights
    that cannot be joined) are reported on first use.
    """
    try:
        engine = create(name, **options)
        if is_named:
            getattr(engine, "find_model", lambda: None)()
    except ConfigurationError:
        raise
    except SpeechLabError as error:
        if is_named:
            raise ConfigurationError(f"the engine {name!r} cannot be used: {error}") from error
        return
    except Exception as error:  # of the engine itself; without a name it is reported and logged on first use
        if is_named:
            reason = f"{type(error).__name__}: {error}"
            raise ConfigurationError(f"the engine {name!r} cannot be used: {reason}") from error
        return
    getattr(engine, "close", lambda: None)()
