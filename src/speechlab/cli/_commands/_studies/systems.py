"""Options of ``speechlab study`` as arguments: services, settings, voices, terms and bands, from words and files."""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.client import OpenAIAdapter, Secret

_BAND = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")
# Name of the setting that others are compared with.
_PLAIN_SETTING = "plain"
# Parameters that are compared with a setting without them.
_SETTING_PARAMETERS = {"recognition": ("hotwords",), "translation": ("keywords", "context")}
_EXAMPLES = {
    "recognition": """'skipping={"vad": "on"}'""",
    "translation": """'formal={"context": "A letter."}'""",
}


@contextmanager
def connect_services(services: Sequence[str], adapters: Sequence[str]) -> Iterator[Any]:
    """Connect to the usual service, or to several by name, each with a key of its own."""
    from speechlab import connect

    adapter_of = _parse_adapters(adapters)
    addresses = _parse_pairs(
        "service", services, "NAME=URL, as in --service ours= --service theirs=https://…"
    )
    if without := [name for name in adapter_of if not addresses.get(name)]:
        first_name = without[0]
        raise _build_option_error(
            "openai",
            f"{first_name} is of no service; give its address as well: --service {first_name}=https://…/v1",
        )
    with ExitStack() as opened:
        if not services:
            yield opened.enter_context(connect())
            return
        labs = {}
        for name, url in addresses.items():
            lab = connect(
                url or None,
                api_key=_require_key_unless_usual_service(name, url),
                adapter=adapter_of.get(name),
            )
            labs[name] = opened.enter_context(lab)
        yield labs


def to_study_arguments(study: str, options: Mapping[str, Any], services: Sequence[str]) -> dict[str, Any]:
    """Return the options of a command as the arguments of its study."""
    from speechlab.text import Lexicon

    argument_of: dict[str, Callable[[Any], Any]] = {
        "store": str,
        "respell": Lexicon.read,
        "groups": lambda column: None if column == "none" else column,
        "band_hz": lambda bands: [_parse_frequency_band(band) for band in bands],
        "glossary": _read_glossary,
        "prices": _read_prices,
        "hypotheses": partial(
            _parse_pairs, "hypothesis", allowed="NAME=COLUMN, as in --hypothesis old=text_old"
        ),
        "voices": partial(_parse_voices, services=services),
        "voice": partial(_parse_voice, services=services),
    }
    present = {name: value for name, value in options.items() if value is not None}
    arguments = {name: argument_of.get(name, lambda same: same)(value) for name, value in present.items()}
    if study in _SETTING_PARAMETERS:
        on = {name: {name: arguments.pop(name)} for name in _SETTING_PARAMETERS[study] if name in arguments}
        settings = _parse_json_objects(
            "setting",
            arguments.pop("settings", ()),
            f"NAME=JSON with parameters of the call, as in --setting {_EXAMPLES[study]}",
        )
        if repeated := [name for name in on if name in settings]:
            raise _build_option_error(
                "setting", f"{repeated[0]}: another option makes a setting called so; give yours another name"
            )
        if settings or on:
            arguments["settings"] = {**(settings or {_PLAIN_SETTING: {}}), **on}
    return arguments


def parse_columns(columns: Sequence[str], roles: Sequence[str]) -> dict[str, str]:
    """Return the table's own names of columns, ``ROLE=NAME``, by what they hold; ``roles`` are those of the study."""
    name_of = _parse_pairs("column", columns, f"ROLE=NAME, as in --column {roles[0]}=NAME")
    if strange := [role for role in name_of if role not in roles]:
        raise _build_option_error(
            "column", f"{strange[0]}: this study has no such column; its columns are {', '.join(roles)}"
        )
    return name_of


def _require_key_unless_usual_service(name: str, url: str) -> str | Secret | None:
    """Return the key for a service; None for the usual one, whose key ``connect`` finds."""
    from speechlab.client import BASE_URL_VARIABLE, load_key, normalize_url

    usual_address = os.environ.get(BASE_URL_VARIABLE)
    variable = f"SPEECHLAB_API_KEY_{re.sub('[^A-Z0-9]', '_', name.upper())}"
    if url and (own_key := os.environ.get(variable)):
        return own_key
    if not url or (usual_address and normalize_url(url) == normalize_url(usual_address)):
        return None
    if (remembered := load_key(normalize_url(url))) is None:
        raise _build_option_error(
            "service",
            f"{name}: there is no key for it; set {variable} (to any word where none is asked for), or keep it by "
            f"`speechlab login --base-url {url}`: the key of the usual service is sent to no other",
        )
    return remembered


def _parse_adapters(given: Sequence[str]) -> dict[str, OpenAIAdapter]:
    from speechlab.client import OpenAIAdapter

    allowed = """NAME=JSON with models and voices, as in --openai 'theirs={"translation": "gpt-4o"}'"""
    field_names = {field.name for field in fields(OpenAIAdapter) if field.init}
    facts_of = _parse_json_objects("openai", given, allowed)
    for name, facts in facts_of.items():
        if strange := [fact for fact in facts if fact not in field_names]:
            raise _build_option_error(
                "openai", f"{name}: there is no {strange[0]!r}; there are {', '.join(sorted(field_names))}"
            )
    return {name: OpenAIAdapter(**facts) for name, facts in facts_of.items()}


def _read_glossary(file: Path) -> Any:
    """The terms of a file: JSON as it is; ``.csv`` and ``.tsv`` with a row for each word that will do; or lines."""
    try:
        text = file.read_text("utf-8-sig")
        if file.suffix.lower() == ".json":
            return orjson.loads(text)
    except (OSError, ValueError) as error:
        raise _build_option_error("glossary", f"{file}: it cannot be read ({error})") from error
    if file.suffix.lower() not in {".csv", ".tsv"}:
        return [line.strip() for line in text.splitlines() if line.strip()]
    rows = csv.DictReader(text.splitlines(), delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
    if "term" not in (rows.fieldnames or ()):
        message = f"{file}: there is no column 'term'; name the columns term and target in the first line"
        raise _build_option_error("glossary", message)
    accepted: dict[str, list[str]] = {}
    for row in rows:
        if term := (row["term"] or "").strip():
            accepted.setdefault(term, []).append((row.get("target") or "").strip() or term)
    return accepted


def _read_prices(file: Path) -> Any:
    """Return the prices of a file of JSON, which the study checks."""
    try:
        text = file.read_text("utf-8-sig")
        return json.loads(text, object_pairs_hook=_build_object)
    except FileNotFoundError:
        raise _build_option_error("prices", f"there is no file {file}; check the path") from None
    except (OSError, ValueError, RecursionError) as error:
        raise _build_option_error("prices", f"{file}: it cannot be read as JSON ({error})") from error


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; ValueError if it has a name twice, of which json would keep the last."""
    name, count = max(Counter(name for name, _ in pairs).items(), key=itemgetter(1), default=("", 0))
    if count > 1:
        raise ValueError(f"{name!r:.60} stands {count} times in one object; keep one of them")
    return dict(pairs)


def _parse_voices(voices: Sequence[str], services: Sequence[str]) -> list[str] | dict[str, list[str] | None]:
    """Return the voices of one service, or of each of several, where each says of which it is."""
    if not services:
        return list(voices)
    names = [text.partition("=")[0].strip() for text in services]
    voices_of: dict[str, list[str] | None] = dict.fromkeys(names)
    for text in voices:
        name, sign, voice = text.partition("=")
        if not sign and len(names) == 1:
            name, sign, voice = names[0], "=", text
        if not sign or name.strip() not in voices_of:
            message = (
                f"{text!r} is of none of the services {', '.join(names)}; give NAME=VOICE, as in --voice "
                f"{names[0]}=heart"
            )
            raise _build_option_error("voice", message)
        voices_of[name.strip()] = [*(voices_of[name.strip()] or []), voice.strip()]
    return voices_of


def _parse_voice(voices: Sequence[str], services: Sequence[str]) -> str | dict[str, str]:
    """Return the voice of one service, or that of each of several."""
    by_service = _parse_voices(voices, services)
    lists = by_service if isinstance(by_service, dict) else {"": by_service}
    chosen = {name: names[0] for name, names in lists.items() if names and len(names) == 1}
    if len(chosen) < len(lists):
        message = (
            "give one voice for each service, as in --voice heart, or --voice ours=heart --voice theirs=nova"
        )
        raise InvalidRequestError(message, parameter="voice")
    return chosen if isinstance(by_service, dict) else chosen[""]


def _parse_frequency_band(text: str) -> tuple[float, float]:
    edges = _BAND.fullmatch(text.strip())
    if edges is None:
        raise _build_option_error(
            "band", f"{text!r} is no band; give two frequencies in Hz, as in --band 300-3400"
        )
    return float(edges[1]), float(edges[2])


def _parse_pairs(option: str, given: Sequence[str], allowed: str) -> dict[str, str]:
    value_of: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        name = name.strip()
        if not sign or not name:
            raise _build_option_error(option, f"{text!r} has no name; give {allowed}")
        if name in value_of:
            raise _build_option_error(
                option, f"{name} is given twice; leave one out, or give it another name"
            )
        value_of[name] = value.strip()
    return value_of


def _parse_json_objects(option: str, given: Sequence[str], allowed: str) -> dict[str, dict[str, Any]]:
    """Objects of JSON by name; nothing behind the sign is an empty one."""
    objects: dict[str, dict[str, Any]] = {}
    for name, text in _parse_pairs(option, given, allowed).items():
        try:
            objects[name] = orjson.loads(text or "{}")
        except orjson.JSONDecodeError as error:
            raise _build_option_error(
                option, f"{name}: {text!r} is no JSON ({error}); give {allowed}"
            ) from error
        if not isinstance(objects[name], dict):
            raise _build_option_error(option, f"{name}: {text!r} is no object; give {allowed}")
    return objects


def _build_option_error(option: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(f"--{option} {message}", parameter=option)
