"""Where the files are found, and that they are the published ones."""

import hashlib
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import speechlab.datasets
from speechlab import errors
from speechlab.datasets import _load, available, datasheet
from speechlab.datasets._load import DATASETS

CHECKOUT = Path(__file__).resolve().parents[2]
FILES = [(one, name) for one in DATASETS.values() for name in one.files]


def test_pinned_hashes_match_the_files():
    for dataset, name in FILES:
        found = hashlib.sha256((_load.resolve_data_root() / dataset.name / name).read_bytes()).hexdigest()
        assert dataset.files[name] == found, f"pin {name!r}: {found!r}"


def test_every_file_is_pinned():
    for dataset in DATASETS.values():
        present = {
            path.name for path in (_load.resolve_data_root() / dataset.name).iterdir() if path.is_file()
        }
        assert present - {"make.py"} == set(dataset.files)


def test_tables_have_the_registered_number_of_rows():
    assert len(speechlab.datasets.prompts()) == DATASETS["prompts"].rows
    assert len(speechlab.datasets.zh_speech()) == DATASETS["zh-speech"].rows


def test_text_files_have_unix_line_ends_and_no_byte_order_mark():
    for dataset, name in FILES:
        if name.endswith((".csv", ".md", "LICENSE")):
            content = (_load.resolve_data_root() / dataset.name / name).read_bytes()
            assert b"\r" not in content
            assert not content.startswith(b"\xef\xbb\xbf")
            assert content.endswith(b"\n")
            content.decode("utf-8")


def test_available_lists_each_data_set():
    frame = available()
    assert list(frame.columns) == ["name", "rows", "languages", "license", "version", "sha256"]
    assert frame["name"].tolist() == list(DATASETS)
    assert frame["sha256"].str.fullmatch("[0-9a-f]{64}").all()
    assert frame["rows"].dtype == "int64"


def test_the_hash_of_a_data_set_changes_with_any_file():
    one = DATASETS["prompts"]
    assert replace(one, files={**one.files, "ja.csv": "0" * 64}).sha256 != one.sha256
    assert replace(one, files=dict(reversed(one.files.items()))).sha256 == one.sha256


def test_datasheets_can_be_read_and_state_version_and_license():
    for one in DATASETS.values():
        text = datasheet(one.name)
        assert text.startswith("# Datasheet")
        assert one.version in text
        assert "## License" in text
        assert "## Limits" in text


def test_the_counts_of_the_datasheet_are_those_of_the_table():
    frame = speechlab.datasets.prompts()
    text = datasheet("prompts")
    counts = frame.groupby(["category", "language"], observed=True).size()
    for category in frame["category"].cat.categories:
        row = " | ".join(str(counts[category, language]) for language in ("ja", "en", "zh"))
        assert f"| {category} | {row} |" in text
    quick = " | ".join(str(len(speechlab.datasets.prompts(one, quick=True))) for one in ("ja", "en", "zh"))
    assert f"`quick` | {quick} |" in text


def test_an_installed_package_is_looked_at_before_the_checkout(tmp_path):
    installed, checkout = tmp_path / "_data", tmp_path / "datasets"
    (checkout / "prompts").mkdir(parents=True)
    assert _load.resolve_data_root((installed, checkout)) == checkout
    (installed / "prompts").mkdir(parents=True)
    assert _load.resolve_data_root((installed, checkout)) == installed


def test_data_folders_of_wheel_and_checkout():
    package = Path(speechlab.datasets.__file__).resolve().parent
    assert _load._DATA_FOLDERS[0] == package / "_data"
    if package.is_relative_to(CHECKOUT):
        assert _load._DATA_FOLDERS[1] == CHECKOUT / "datasets"
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    include = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert include["datasets"] == "speechlab/datasets/_data"


def test_missing_data_says_where_it_looked_and_what_to_do(tmp_path):
    with pytest.raises(errors.ConfigurationError) as caught:
        _load.resolve_data_root((tmp_path / "a", tmp_path / "b"))
    assert str(tmp_path / "a") in str(caught.value)
    assert "pip install --force-reinstall" in str(caught.value)


def test_a_changed_file_is_refused(tmp_path):
    one = DATASETS["prompts"]
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "ja.csv").write_text("id\nja-001\n", encoding="utf-8")
    with pytest.raises(errors.ConfigurationError) as caught:
        _load.check_data_file(one, "ja.csv", tmp_path)
    text = str(caught.value)
    assert one.files["ja.csv"] in text
    assert hashlib.sha256(b"id\nja-001\n").hexdigest() in text
    assert "pip install" in text


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(errors.ConfigurationError, match=r"en\.csv is missing from the data set 'prompts'"):
        _load.check_data_file(DATASETS["prompts"], "en.csv", tmp_path)


def test_importing_the_room_loads_no_pandas():
    code = "import sys, speechlab.datasets; sys.exit('pandas' in sys.modules or 'soundfile' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_the_wheel_contains_the_data(tmp_path):
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling")
    import zipfile

    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=CHECKOUT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for one, name in FILES:
            content = archive.read(f"speechlab/datasets/_data/{one.name}/{name}")
            assert hashlib.sha256(content).hexdigest() == one.files[name]
