"""A service with quick engines, and a proxy before it that has one fault.

What an engine says or hears is no question of the contract, so that most checks ask engines that take no time; the
service around them is the real one.
"""

import pytest

from speechlab.conform import ProbeOptions, run, select_checks
from speechlab.service import run_service, voice_uuid
from support.clients import KEY
from support.proxy import Proxy
from support.quick import QUICK_ENGINES
from support.staged import staged_config


@pytest.fixture(scope="session")
def quick_service():
    """The service with quick engines only."""
    with run_service(staged_config(*QUICK_ENGINES, operator_keys=())) as service:
        yield service


@pytest.fixture(scope="session")
def spoiled(quick_service):
    """Runs checks through a proxy with a fault and returns the outcomes by id."""
    host, _, port = quick_service.base_url.removeprefix("http://").partition(":")

    def try_(fault, *names, **more):
        proxy = Proxy((host, int(port)), fault)
        given = {"timeout_s": 30.0, "voice": voice_uuid("quick", "tone")} | more
        try:
            report = run(ProbeOptions(proxy.url, KEY, **given), select_checks(",".join(names)))
        finally:
            proxy.close()
        return {outcome.check.id: outcome for outcome in report.outcomes}, report

    return try_
