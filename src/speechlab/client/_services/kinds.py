"""Which of the services a client has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speechlab.client._services.contract_service import ContractService
from speechlab.client._services.function_service import FunctionService
from speechlab.client._services.openai_service import OpenAIService

if TYPE_CHECKING:
    from speechlab.client._services.service import Service
    from speechlab.client._settings.settings import Settings


def build_service(settings: Settings) -> Service:
    """Return the service of a client; nothing is opened yet."""
    if settings.functions is not None:
        return FunctionService(settings, settings.functions)
    if settings.adapter is not None:
        return OpenAIService(settings, settings.adapter)
    return ContractService(settings)
