"""A service of OpenAI's API: the requests and replies of the contract in its words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from speechlab.client._openai import TRANSCRIPTION_PATH
from speechlab.client._operations.voices import VoiceCatalogue
from speechlab.client._services.contract_service import ContractService
from speechlab.client._settings.settings import normalize_url
from speechlab.contract import VoiceList

if TYPE_CHECKING:
    from speechlab.client._openai import OpenAIAdapter
    from speechlab.client._operations.call import HttpCall, RawResponse, ServiceCall
    from speechlab.client._operations.operation import Operation
    from speechlab.client._settings.settings import Settings


class OpenAIService(ContractService):
    """A service that speaks OpenAI's API."""

    other_api = "OpenAI's API"

    def __init__(self, settings: Settings, adapter: OpenAIAdapter) -> None:
        super().__init__(settings)
        self._adapter = adapter
        self._address = normalize_url(settings.base_url)

    @property
    def home(self) -> str:  # type: ignore[override]  # the base class has a field
        """The address, the models, and the voices."""
        voices = ", ".join(self._adapter.voices) or "none"
        return f"{self._adapter.identity}, voices {voices}, at {self._address}"

    def build_known_catalogue(self) -> VoiceCatalogue:
        service = f"{self._adapter.identity}, at {self._address}"
        return VoiceCatalogue(VoiceList.parse({"voices": self._adapter.catalogue}).voices, service)

    def prepare(self, operation: Operation[Any], timeout: float | None) -> ServiceCall:
        return self._adapter.to_openai_call(operation.call(timeout))

    def _convert_reply(self, call: HttpCall, response: RawResponse) -> RawResponse:
        if response.status < 400 and call.path != TRANSCRIPTION_PATH:
            return response
        status, content = self._adapter.to_contract_reply(call, response.status, response.content)
        return replace(response, status=status, content=content)

    def _advise_on(self, status: int) -> str:  # noqa: ARG002 - the base class's
        return ""
