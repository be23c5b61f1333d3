"""Examples in docstrings, by public name; a public callable without one is named here, with the reason."""

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import speechlab
from support.public_names import public_names

WITHOUT = {
    "a study, its report or a figure of it: docs/evaluate.md, docs/plots.md and the notebooks show them": """
        evaluate.Drawing evaluate.Report evaluate.audit evaluate.latency evaluate.listening evaluate.listening_answers
        evaluate.listening_power evaluate.readings evaluate.recognition evaluate.round_trip evaluate.translation
        evaluate.voices
        plots.confusions plots.error_by_measure plots.listeners plots.trade_offs plots.translation_scores""",
    "a call of a service, or what it returns: docs/client.md, docs/batch.md and docs/conform.md show the calls": """
        client.AsyncClient client.SpeechClip client.connect client.opentelemetry_hook
        conform.run batch.assemble batch.load batch.plan_synthesis batch.plan_transcription
        batch.plan_translation batch.run batch.to_segments batch.synthesize batch.transcribe
        batch.transcribe_long batch.translate widgets.StreamPlayer""",
    "an error is read, not made: SpeechLabError, APIError and InvalidRequestError show how": """
        errors.APIConnectionError errors.APITimeoutError errors.AudioDecodeError errors.AudioError
        errors.AudioLimitError errors.AuthenticationError errors.BadRequestError errors.ConfigurationError
        errors.ContractError errors.EngineError errors.MissingDependencyError errors.ModelError
        errors.NotFoundError errors.PermissionDeniedError errors.RealtimeError errors.ReplayMiss
        errors.SegmentError errors.SegmentFileError errors.ServerError errors.ServiceStartError
        errors.StoreError errors.UnsupportedAudioError""",
    "a record or a list of values, which its attributes tell": """
        contract.AudioDone contract.AudioStart contract.Usage batch.Value client.AudioDelta
        engines.EngineVoice service.ServedEngine""",
    "a protocol or a type: implemented or annotated, not called": """
        batch.Watcher engines.Recognizer engines.Synthesizer engines.Translator""",
    "needs a kernel, a browser or a microphone": """
        notebook.allow_nested_loops widgets.BatchPreview widgets.Recorder widgets.VoiceExplorer""",
    "needs weights, a server, a keyring or a package that is not always there": """
        cli.main datasets.from_hugging_face engines.ReadHere engines.align engines.check engines.create metrics.dnsmos
        metrics.speaker_embedding metrics.speaker_similarity segments.from_pyannote segments.to_pyannote
        service.run_service""",
}


def callables(names: list[str]) -> dict[str, object]:
    """Each of these classes and functions once, under the name of its room."""
    found: dict[int, tuple[str, object]] = {}
    for name in names:
        door, _, last = name.rpartition(".")
        value = getattr(importlib.import_module(door), last)
        if callable(value) or not isinstance(value, (str, int, float, tuple, dict, frozenset)):
            home = getattr(value, "__module__", door)
            known = home == f"speechlab.{home.rpartition('.')[2]}" and hasattr(value, "__name__")
            found[id(value)] = (f"{home}.{last}" if known else name, value)
    return {
        name.removeprefix("speechlab."): value
        for name, value in found.values()
        if not inspect.ismodule(value)
    }


def lent() -> list[str]:
    """Classes and functions that doors have, and do not promise."""
    doors = {name.rpartition(".")[0] for name in public_names()}
    return [
        f"{door}.{name}"
        for door in sorted(doors)
        for name, value in list(vars(importlib.import_module(door)).items())
        if door != "speechlab" and getattr(value, "__module__", "") == door
    ]


CALLABLES = callables(public_names())
_ALL = callables(public_names() + lent())
FINDER = doctest.DocTestFinder(exclude_empty=True)


def namespace(module: str) -> dict[str, object]:
    """What an example may use unsaid: the names of its room and of its module, and the usual short names."""
    import numpy as np
    import pandas as pd

    door = importlib.import_module(".".join(module.split(".")[:2]))
    room = {name: getattr(door, name) for name in getattr(door, "__all__", ())}
    own = vars(importlib.import_module(module))
    return {**own, **room, "sl": speechlab, "np": np, "pd": pd, "Path": Path, "__name__": module}


def examples(name: str) -> list[doctest.DocTest]:
    room = f"speechlab.{name.partition('.')[0]}"
    found = FINDER.find(_ALL[name], name, module=False, globs=namespace(room))
    return [
        test for test in found if test.examples and "._" not in test.name
    ]  # of an enumeration, _member_type_


SHOWN = [name for name in sorted(_ALL) if examples(name)]


def hidden_examples(module: str) -> list[doctest.DocTest]:
    """Those of functions and methods that no door names."""
    found = FINDER.find(importlib.import_module(module), module, globs=namespace(module))
    return [test for test in found if test.examples]


HIDDEN = [
    module.name
    for module in pkgutil.walk_packages(speechlab.__path__, "speechlab.")
    if "._" in module.name
    and ">>>" in Path(module.module_finder.find_spec(module.name).origin).read_text("utf-8")
    and hidden_examples(module.name)
]
