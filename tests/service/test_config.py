"""Settings: where they come from and what is said about wrong ones."""

import json
import re
import struct

import pytest

from speechlab.errors import ConfigurationError
from speechlab.service import (
    ServiceConfig,
    create_app,
    load_config,
    make_key,
    parse_settings,
)


def test_file_then_environment_then_arguments(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text(
        'port = 1\nhost = "127.0.0.2"\ntts_text_limit = 7\n[engines.whisper]\nmodel = "/m"\nbeam_size = 2\n'
    )
    environment = {
        "SPEECHLAB_SERVICE_PORT": "2",
        "SPEECHLAB_SERVICE_HOST": "127.0.0.3",
        "SPEECHLAB_OTHER": "x",
    }
    overrides = {"port": 3, "data_dir": None, "engines": {"whisper": {"beam_size": 5}}}
    config, warnings = load_config(path, overrides, environment)
    assert (config.port, config.host, config.tts_text_limit, config.data_dir) == (3, "127.0.0.3", 7, None)
    assert config.engines == {"whisper": {"model": "/m", "beam_size": 5}}
    assert warnings == []


def test_json_files_and_listed_variables(tmp_path):
    path = tmp_path / "service.json"
    path.write_text(json.dumps({"queue_limit": 3}))
    environment = {
        "SPEECHLAB_SERVICE_API_KEY": "sl:first-key-1",
        "SPEECHLAB_SERVICE_API_KEYS": "sl:second-key, sl:third-key-3",
        "SPEECHLAB_SERVICE_ALLOWED_HOSTS": "a.example, b.example",
        "SPEECHLAB_SERVICE_ENGINES": '{"kokoro": {"enabled": false}}',
        "SPEECHLAB_SERVICE_DRAIN_S": "",
    }
    config, _ = load_config(path, None, environment)
    assert config.queue_limit == 3
    assert set(config.api_keys) == {"sl:first-key-1", "sl:second-key", "sl:third-key-3"}
    assert config.allowed_hosts == ("a.example", "b.example")
    assert config.engines == {"kokoro": {"enabled": False}}
    with pytest.raises(ConfigurationError, match=r'must be a JSON object, such as \{"tts": 60\}'):
        load_config(None, None, {"SPEECHLAB_SERVICE_SERVICE_CONCURRENT": "2"})


def test_unknown_settings_are_warned_of(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text("prot = 1\nextra_engines = []\n")
    config, warnings = load_config(path, None, {"SPEECHLAB_SERVICE_PROT": "1"})
    assert config == ServiceConfig()
    assert len(warnings) == 3
    assert all("prot" in text.lower() or "extra_engines" in text for text in warnings)


def test_wrong_settings_are_named():
    for name, value in (("port", 70_000), ("idle_exit_s", 0), ("prot", 1)):
        with pytest.raises(ConfigurationError, match=name):
            ServiceConfig.of({name: value})
    with pytest.raises(ConfigurationError, match="the service needs an API key"):
        create_app(ServiceConfig())


HOSTS = {
    "https://a.example": "is a URL or has a path",
    "[::1]:8100": "has a port",
    "*.example": "wildcard",
    "a.example b.example": "empty or has spaces",
    "bücher.example": "xn--",
}
ORIGINS = {
    "a.example": "no scheme",
    "https://a.example/": "has text after the host",
    "wss://a.example": "an address of a WebSocket",
    "https://a.example:443": "usual port of https",
    "https://a.example:port": "no host or port",
}


def test_hosts_and_origins_that_nothing_sends_are_refused():
    for host, words in HOSTS.items():
        reason = f"'allowed_hosts'.*{words}.*write a name or an address"
        with pytest.raises(ConfigurationError, match=reason):
            ServiceConfig.of({"allowed_hosts": [host]})
    for origin, words in ORIGINS.items():
        with pytest.raises(ConfigurationError, match=f"'ws_origins'.*{words}.*write scheme and host"):
            ServiceConfig.of({"ws_origins": [origin]})
    for setting in ("allowed_hosts", "ws_origins", "cors_origins"):
        with pytest.raises(ConfigurationError, match="user name or password") as refused:
            ServiceConfig.of({setting: ["https://anna:secret@a.example/"]})
        assert "secret" not in str(refused.value)


def test_hosts_and_origins_are_kept_as_they_are_sent():
    config = ServiceConfig(
        allowed_hosts=("Speech.Example.org", "[0:0::1]", "192.0.2.7", "my_host"),
        ws_origins=("null", "HTTPS://Page.Example:8443", "http://[::1]:8888", "chrome-extension://abcdef"),
        cors_origins=("*",),
    )
    assert config.allowed_hosts == ("speech.example.org", "::1", "192.0.2.7", "my_host")
    assert config.ws_origins[1] == "https://page.example:8443"
    with pytest.raises(ConfigurationError, match="wildcard"):
        ServiceConfig.of({"ws_origins": ["*"]})


def test_files_that_cannot_be_read(tmp_path):
    for name, text in (("x.toml", "nonsense = = 1"), ("x.json", "[1, 2]")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ConfigurationError, match="configuration file"):
            load_config(tmp_path / name, None, {})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_config(tmp_path / "absent.toml", None, {})
    (tmp_path / "x.toml").write_text('allowed_hosts = "a.example"\n')
    with pytest.raises(ConfigurationError, match=r"allowed_hosts.*a list, even with one item"):
        load_config(tmp_path / "x.toml", None, {})


def test_any_setting_as_an_argument():
    engines = '{"whisper": {"beam_size": 2}}'
    options = ["queue_limit=8", "recognizer=", "ws_origins=https://a, https://b", f"engines={engines}"]
    given = parse_settings(options, ["whisper.model=/ct2", "a.b=c=d"])
    config, warnings = load_config(None, given, {"SPEECHLAB_SERVICE_QUEUE_LIMIT": "9"})
    assert (config.queue_limit, config.recognizer, warnings) == (8, "", [])
    assert config.ws_origins == ("https://a", "https://b")
    assert config.engines == {"whisper": {"beam_size": 2, "model": "/ct2"}, "a": {"b": "c=d"}}
    with pytest.raises(ConfigurationError, match="--engine"):
        parse_settings((), ["whisper=1"])
    for wrong, said in (
        ("queue_limit", "'queue_limit' has no value"),
        ("queue_limits=8", "no setting 'queue_limits'; did you mean 'queue_limit'"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            parse_settings([wrong])
    with pytest.raises(ConfigurationError, match="queue_limit"):
        load_config(None, parse_settings(["queue_limit=many"]), {})


def served(kind, **settings):
    """The engines of a service, as they are asked."""
    config = ServiceConfig(api_keys=("sl:any-key-will-do",), **settings)
    lanes = create_app(config).state.service.engines.lanes
    return [lane.entry.name for lane in lanes if kind in {lane.entry.kind, "any"}]


@pytest.mark.slow
def test_which_engines_are_on(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    assert set(served("any")) == {"kokoro", "q", "hibari", "openjtalk", "whisper", "gemma"}
    off = {"kokoro": {"enabled": False}, "q": {"enabled": False}}
    assert set(served("any", engines=off, recognizer="", translator="")) == {"hibari", "openjtalk"}
    more = {"engines": {"llama": {"model": str(tmp_path / "m.gguf")}}}
    assert served("translator", **more, translator="llama") == served("translator", **more) == ["llama"]
    assert served("translator", **more, translator="gemma") == ["gemma", "llama"]
    for wrong in ({"engines": {"no-such": {}}}, {"recognizer": "no-such"}):
        with pytest.raises(ConfigurationError, match="no-such"):
            served("any", **wrong)


def keyring(*keys):
    return create_app(ServiceConfig(api_keys=keys, recognizer="", translator="")).state.service.keyring


def test_keys_are_checked_and_never_shown():
    key = make_key()
    config = ServiceConfig(api_keys=(key,))
    assert config.api_keys == (key,)
    assert key not in repr(config)
    assert key not in str(vars(keyring(key)))
    vendors = "vendor-2:long-enough-body"
    assert ServiceConfig.of({"api_keys": (vendors,)}).api_keys == (vendors,)
    for wrong in ("secret-without-prefix", "sl:short", "sl:with space in it"):
        with pytest.raises(ConfigurationError) as caught:
            ServiceConfig.of({"api_keys": (wrong,)})
        assert wrong not in str(caught.value)
        assert "sl" in str(caught.value)
    found = keyring(key).find_owner
    assert re.fullmatch(r"s-[0-9a-f]{8}", found(key).key_id)
    assert found(key + "x") is found("") is None


def test_parse_settings_takes_lists_with_commas_alone():
    with pytest.raises(ConfigurationError, match="--set cors_origins must be a list separated by commas"):
        parse_settings(['cors_origins=["https://a.example"]'])
    assert parse_settings(["allowed_hosts=[::1],a"]) == {"allowed_hosts": ("[::1]", "a")}


def test_each_setting_is_described():
    described = re.findall(r"^ {8}(\w+): [A-Z`]", ServiceConfig.__doc__, re.MULTILINE)
    assert described == list(ServiceConfig.model_fields)
