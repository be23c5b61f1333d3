"""Systems of a study of recognition: services, settings of a service, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from speechlab._arguments import is_bool, refused
from speechlab.client import functions_of
from speechlab.errors import InvalidRequestError
from speechlab.evaluate._arguments import check_client
from speechlab.evaluate._systems import services_with_settings, without_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from speechlab.client import Client


class System(NamedTuple):
    """A recogniser: a client with its settings.

    Attributes:
        name: Name of the system; empty if it is the only one.
        lab: The client; None for outputs that exist.
        identify: Whether it must identify the language, which is then not sent.
        options: Parameters of ``Client.transcribe``.
        had: Column of its outputs, if they exist.
    """

    name: str
    lab: Client | None
    identify: bool
    options: dict[str, Any]
    had: str = ""

    @property
    def streams(self) -> bool:
        """Whether it recognises recordings while they are spoken."""
        return bool(self.options.get("stream"))

    def beside(self, others: Iterable[System]) -> System | None:
        """The same system with whole recordings; None if it is not among the others."""
        how = {**self.options, "stream": True}
        return next(
            (
                one
                for one in others
                if not one.streams
                and one.lab is self.lab
                and {**one.options, "stream": True} == how
                and not one.had
            ),
            None,
        )

    @property
    def words(self) -> list[str]:
        """The hotwords for all of its rows."""
        given = self.options.get("hotwords")
        return list(given) if isinstance(given, list | tuple | set | frozenset) else []


def systems_of(
    lab: Client | Mapping[str, Client] | None,
    settings: object,
    had: Mapping[str, str],
    *,
    identify: bool,
    stream: bool,
    options: Mapping[str, Any],
) -> list[System]:
    """Return the systems: each service with each of the settings, and those whose outputs exist."""
    if not is_bool(stream):
        raise refused("stream", stream, "True or False")
    asking: dict[str, Any] = {}
    if lab is None:
        without_settings("hypotheses", settings=settings, identify=identify, stream=stream, **options)
        if not had:
            raise refused("lab", None, "a Client, clients by name, or None beside hypotheses=")
    else:
        asking = services_with_settings(lab, settings, {"identify": identify, **options}, _PARAMETERS)
    if stream:
        asking = _in_both_ways(asking)
    found = [System(name, client, bool(own.pop("identify")), own) for name, (client, own) in asking.items()]
    found = [one._replace(name=one.name or "lab") for one in found] if had else found
    found += [System(name, None, False, {}, f"{HAD}{column}") for name, column in had.items()]
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        message = f"two systems are called {twice!r}; give one another name in hypotheses="
        raise InvalidRequestError(message, parameter="hypotheses")
    return found if len(found) > 1 else [found[0]._replace(name="")]


def _in_both_ways(asking: Mapping[str, Any]) -> dict[str, Any]:
    """Each system with whole recordings and with streams, as far as it can."""
    found = {}
    for name, (client, own) in asking.items():
        check_client("lab", client)
        functions = functions_of(client)[0] or {"transcribe"}
        for way, function in (("whole", "transcribe"), ("streamed", "transcribe_stream")):
            if function in functions:
                how = {**own, "stream": True} if way == "streamed" else own
                found[", ".join(filter(None, (name, way)))] = (client, dict(how))
    if not any(own.get("stream") for _, own in found.values()):
        message = "stream=True needs a system that recognises streams: sl.system(name, transcribe_stream=f)"
        raise InvalidRequestError(message, parameter="stream")
    return found


HAD = "speechlab: had "
"""Prefix of the columns of outputs that exist, during a study."""
_PARAMETERS = "parameters of Client.transcribe for each name, as in {'plain': {}, 'skipping': {'vad': 'on'}}"
