"""The real service, and a proxy before it that has one fault."""

from __future__ import annotations

import pytest

from speechlab.conform import ProbeOptions, chosen, run
from speechlab.service import voice_uuid
from support.proxy import Proxy


@pytest.fixture(scope="session")
def options(live_service):
    """How the real service is tried; its fast voice is chosen, as anybody may choose one."""

    def make(base_url=live_service.base_url, **more):
        return ProbeOptions(base_url, live_service.api_key, **{"voice": voice_uuid("hibari", "heart")} | more)

    return make


@pytest.fixture(scope="session")
def spoiled(live_service, options):
    """Runs checks through a proxy with a fault and returns the outcomes by id."""
    host, _, port = live_service.base_url.removeprefix("http://").partition(":")
    known = {}

    def try_(fault, *names, **more):
        proxy = Proxy((host, int(port)), fault, known)
        try:
            report = run(options(proxy.url, **{"timeout_s": 30.0} | more), chosen(",".join(names)))
        finally:
            proxy.close()
        return {outcome.check.id: outcome for outcome in report.outcomes}, report

    return try_
