"""``speechlab keys``: the API keys of the embedded service."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from speechlab.cli._console import build_empty_table, console, errors, print_table
from speechlab.cli._options import option, register_command
from speechlab.display import format_count
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.service import Database, KeyLimits, KeyStore, StoredKey

app = typer.Typer(help="API keys of the embedded service.", no_args_is_help=True)

DATA_DIR = option("data_dir", Path | None, None, metavar="DIR", show_default=False, help="The service's data folder. "
"[default: that of `speechlab serve`]")  # fmt: skip
Which = Annotated[
    str,
    typer.Argument(metavar="KEY", help="Id, name or prefix of the key, as shown by `speechlab keys list`."),
]

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,9})([smhdw])")


@register_command(app, "create", [DATA_DIR])
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the key: a person, a machine, a study.")
    ],
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Time until it expires, such as 12h, 30d or 52w. [default: no expiry]"
        ),
    ] = None,
    provider: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A provider whose voices it may use; may be repeated. [default: all]"
        ),
    ] = None,
    asr: Annotated[bool, typer.Option(help="Whether it may use speech recognition.")] = True,
    **shared: Any,
) -> None:
    """Make a key and print it once on stdout; it cannot be shown again."""
    lifetime = None if expires is None else parse_duration_s(expires)
    with _open_key_store(**shared) as access:
        stored, key = access.create_key(
            name, expires_in_s=lifetime, providers=_resolve_providers(provider), recognition=asr
        )
    errors.print(f"[green]✓[/] {stored.key_id}, {escape(stored.name)}: {escape(_format_key_rights(stored))}")
    errors.print("the key, which is shown only this once:")
    typer.echo(key)


@register_command(app, "list", [DATA_DIR])
def list_keys(**shared: Any) -> None:
    """List the keys: prefix, rights, limits and times of use."""
    from speechlab.service import KeyStore, StoredLimits

    with open_database(**shared) as database:
        keys, limits = KeyStore(database).list_keys(), StoredLimits(database).read_set_limits()
    table = build_empty_table("Keys", "id", "name", "key", "may use", "when")
    for column in (0, 2, 4):
        table.columns[column].no_wrap = True
    now = time.time()
    for key in keys:
        table.add_row(
            key.key_id,
            escape(key.name),
            f"{key.prefix}…",
            escape(
                "\n".join(
                    [
                        _format_key_rights(key, ",\n", all_=False),
                        *_format_limits(limits.pop(key.key_id, None)),
                    ]
                )
            ),
            _format_key_times(key, now),
        )
    if keys:
        print_table(table)
    else:
        console.print("there are no keys yet; make one with: speechlab keys create NAME")
    for key_id, key_limits in limits.items():  # of "all", services, and keys of the settings
        console.print(f"{key_id}: {', '.join(_format_limits(key_limits))}")


def _format_key_times(key: StoredKey, now: float) -> str:
    lines = [f"made {format_local_time(key.created)}"]
    if key.last_used is not None:
        lines.append(f"used {format_local_time(key.last_used)}")
    if key.revoked is not None:
        lines.append(f"[red]revoked {format_local_time(key.revoked)}[/]")
    elif not key.is_open(now):
        lines.append(f"[red]expired {format_local_time(key.expires)}[/]")
    elif key.expires is not None:
        lines.append(f"until {format_local_time(key.expires)}")
    return "\n".join(lines)


@register_command(app, "revoke", [DATA_DIR])
def revoke(which: Which, **shared: Any) -> None:
    """Revoke a key permanently, with immediate effect, also in a running service."""
    with _open_key_store(**shared) as access:
        key = access.revoke_key(which)
    console.print(f"[green]✓[/] {key.key_id}, {escape(key.name)}: revoked {format_local_time(key.revoked)}")


@register_command(app, "allow", [DATA_DIR])
def allow(
    which: Which,
    provider: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A provider whose voices it may use; may be repeated. `all` for all, `none` for none.",
        ),
    ] = None,
    voice: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Id of a voice of its providers that it may use; may be repeated. `all` for all.",
        ),
    ] = None,
    asr: Annotated[bool | None, typer.Option(help="Whether it may use speech recognition.")] = None,
    **shared: Any,
) -> None:
    """Set the rights of a key. Rights without an option stay unchanged."""
    with _open_key_store(**shared) as access:
        key_before = access.resolve_key(which)
        key = access.set_rights(
            key_before.key_id,
            providers=key_before.providers if provider is None else _resolve_providers(provider),
            recognition=key_before.recognition if asr is None else asr,
            voices=key_before.voices if voice is None else _resolve_voices(voice),
        )
    console.print(f"[green]✓[/] {key.key_id}, {escape(key.name)}: {escape(_format_key_rights(key))}")


@register_command(app, "limit", [DATA_DIR])
def limit(
    which: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help="Id, name or prefix of the key; the id of a key of the settings; `all` for every key; or "
            "service:tts, service:asr or service:translate for all keys together.",
        ),
    ],
    limits: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=NUMBER...",
            help="Such as requests_per_minute=60 or concurrent=4. 0 is no limit; an empty value restores the "
            "general limit.",
        ),
    ],
    **shared: Any,
) -> None:
    """Limit the use of a key or a service, by the minute and at the same moment; effective at once."""
    from speechlab.service import KeyStore, StoredLimits

    changes = dict(map(_parse_limit, limits))
    with open_database(**shared) as database:
        no_stored_key = re.fullmatch(r"all|s-[0-9a-f]{8}|service:(tts|asr|translate)", which)
        key_id = which if no_stored_key else KeyStore(database).resolve_key(which).key_id
        now = StoredLimits(database).change_limits(key_id, changes)
    console.print(f"[green]✓[/] {key_id}: {', '.join(_format_limits(now)) or 'no limits of its own'}")


def _parse_limit(text: str) -> tuple[str, int | None]:
    name, equals, number = text.partition("=")
    if not equals or not re.fullmatch(r"(-?[0-9]{1,30})?", number):
        raise InvalidRequestError(
            f"{text!r} is not a limit; write its name, = and a whole number, such as requests_per_minute=60"
        )
    return name, int(number) if number else None


def _format_limits(limits: KeyLimits | None) -> list[str]:
    """Write each limit as text, such as ``60 requests per minute``."""
    texts = []
    for name, value in ({} if limits is None else asdict(limits)).items():
        if value == 0:
            texts.append(f"{name}: no limit")
        elif value is not None:
            concurrent = name == "concurrent"
            texts.append(
                f"{value:,} at the same moment"
                if concurrent
                else f"{format_count(value, 'request')} per minute"
            )
    return texts


def parse_duration_s(text: str) -> float:
    """Read a duration such as ``30d``, and return its seconds."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise InvalidRequestError(
            f"{text!r} is not a duration; give a number above 0 and s, m, h, d or w, such as 30d"
        )
    return float(int(match[1]) * _UNITS_S[match[2]])


def format_local_time(moment: float | None) -> str:
    """Write a Unix time as local time to the minute; None is a dash."""
    return "–" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


@contextmanager
def _open_key_store(data_dir: Path | None) -> Iterator[KeyStore]:
    from speechlab.service import KeyStore

    with open_database(data_dir) as database:
        yield KeyStore(database)


def open_database(data_dir: Path | None) -> closing[Database]:
    """Return the service's database in a folder, or in its own, for the duration of a block."""
    from speechlab.service import Database, resolve_default_data_dir

    return closing(Database(data_dir or resolve_default_data_dir()))


def _resolve_providers(providers: list[str] | None) -> list[str] | None:
    """Check names of providers; None and ``all`` mean all of them."""
    from speechlab import engines

    if not providers or providers == ["all"]:
        return None
    if providers == ["none"]:
        return []
    names = [name for name, entry in engines.catalogue().items() if entry.kind == "synthesizer"]
    for name in providers:
        if name not in names:
            raise InvalidRequestError(
                f"there is no provider {name!r}; there are {', '.join(names)}, all and none"
            )
    return providers


def _resolve_voices(voices: list[str]) -> list[str] | None:
    """Check ids of voices; ``all`` means all of them."""
    if voices == ["all"]:
        return None
    from speechlab.contract import parse_uuid

    checked = []
    for voice in voices:
        identity = parse_uuid(voice)
        if identity is None:
            raise InvalidRequestError(f"{voice!r} is not the id of a voice; GET /tts/voices lists them")
        checked.append(identity)
    return checked


def _format_key_rights(key: StoredKey, between: str = ", ", *, all_: bool = True) -> str:
    voices = "all voices" if key.providers is None else ", ".join(sorted(key.providers)) or "no voices"
    if key.voices is not None:
        voices += f" ({len(key.voices)} of their voices)"
    recognition = "recognition" if key.recognition else "no recognition"
    return between.join([voices, recognition, *(["translation"] if all_ else [])])
