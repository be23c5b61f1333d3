"""The routes of the application, and the kept descriptions of them."""

import json
import runpy
from pathlib import Path

import pytest
from starlette.routing import Route, WebSocketRoute

from speechlab.contract import AUTHENTICATION_MESSAGE, REALTIME_PATH, SERVICE_MESSAGES, RealtimeCode
from speechlab.service import ServiceConfig, create_app

ROOT = Path(__file__).parents[2]
APP = create_app(ServiceConfig(api_keys=("sl:test-key-of-the-suite",), engines={}))
ROUTES = [
    (method, route.path)
    for route in APP.routes
    if isinstance(route, Route)
    for method in sorted(route.methods - {"HEAD"})
]


def test_s1_s3_s4_each_route_but_probes_needs_a_key(staged, error_body):
    assert all(isinstance(route, Route | WebSocketRoute) for route in APP.routes)
    others = ("/nothing/here", "/healthz/", "/healthz/../tts/voices", "//healthz", "/openapi.json")
    for method, path in [*ROUTES, *(("GET", path) for path in others)]:
        reply = staged.http.request(method, path, b"{}" if method == "POST" else None, key=None)
        if path in {"/healthz", "/readyz"}:
            assert reply.status == 200
            continue
        where = {"/tts": "tts", "/asr": "asr", "/tra": "translate"}.get(path[:4], "router")
        assert error_body(reply, 401, "ErrAuthenticationFailed") == {
            "context": [where, "authentication"],
            "code": 104,
            "name": "ErrAuthenticationFailed",
            "error": AUTHENTICATION_MESSAGE,
        }
        assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("kind", ["openapi", "asyncapi"])
def test_the_kept_descriptions_say_what_the_code_says(kind):
    made = runpy.run_path(str(ROOT / "tools" / "describe_api.py"))[kind]()
    kept = (ROOT / "docs" / f"{kind}.json").read_text(encoding="utf-8")
    assert json.loads(json.dumps(made, default=str)) == json.loads(kept), "stale; run: poe describe"


def test_the_descriptions_name_every_route_message_and_code():
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert described == {(method, path) for method, path in ROUTES if path != "/translate"}
    document = json.loads((ROOT / "docs" / "asyncapi.json").read_text())
    assert document["channels"]["realtime"]["address"] == REALTIME_PATH
    messages = {*SERVICE_MESSAGES, "session.update", "tts.speak", "audio"}
    assert set(document["components"]["messages"]) == messages
    codes = document["components"]["schemas"]["TtsError"]["properties"]["code"]["enum"]
    assert codes == list(RealtimeCode)
