"""``speechlab transcribe``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from speechlab._files import write_atomically
from speechlab.cli._commands._direct.answers import exit_if_failed, make_batch, note
from speechlab.cli._console import print_plain, print_warnings
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    import pandas as pd

    from speechlab.client import Client


class Output(StrEnum):
    """Forms of transcripts."""

    TXT = "txt"
    SRT = "srt"
    VTT = "vtt"
    CSV = "csv"


def transcribe(
    recordings: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Recordings, or folders of them.")
    ],
    to: Annotated[
        Output | None,
        typer.Option(help="A file for each recording, or one .csv. [default: the text, printed]"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder of the files, or the .csv. [default: transcripts, transcripts.csv]"
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Code such as ja, en, zh or de: any that the model has. [default: identify]"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model on this machine: a usual size of Whisper such as small, a folder, owner/name of the hub; "
            "sherpa=FOLDER names its engine. [default: the service's]"
        ),
    ] = None,
    hotword: Annotated[list[str] | None, typer.Option(help="Word to boost; may be repeated.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace files with another content.")] = False,
) -> None:
    """Transcribe recordings of any length. The same command again asks only for what is missing."""
    from speechlab import connect, datasets

    place = out or Path("transcripts.csv" if to is Output.CSV else "transcripts")
    if to is not None and (place.is_dir() if to is Output.CSV else place.is_file()):
        kind = "a folder, where a .csv is meant" if to is Output.CSV else "a file, where a folder is meant"
        raise InvalidRequestError(f"{place} is {kind}", parameter="out")
    with print_warnings():
        table = datasets.read(recordings)[["audio"]]
    if not len(table):
        raise datasets.build_empty_folder_error(recordings[0])
    names = datasets.row_keys(table)
    options = {"language": language, "hotwords": hotword or None}
    with connect(engines=None if model is None else _choose_engine(model)) as lab:
        made, segments = _transcribe_all(lab, table, options, timed=to in {Output.SRT, Output.VTT})
    if to is Output.CSV:
        _write_table(made, place)
    elif to is None:
        for name, text in zip(names, made["text"].fillna(""), strict=True):
            print_plain(text if len(names) == 1 else f"{name}: {text}")
    else:
        _write_files(made, segments, names, place, to, replace=replace)
    exit_if_failed(made, names)


def _choose_engine(model: str) -> dict[str, dict[str, str]]:
    """Return the options of engines for a model, whose engine may stand before it."""
    name, equals, named = model.partition("=")
    if not equals or not name.isidentifier() or Path(model).exists():
        return {"whisper": {"model": model}}
    return {name: {"model": named}}


def _transcribe_all(
    lab: Client, table: pd.DataFrame, options: dict[str, Any], *, timed: bool
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return a row for each recording with its text, and the segments if there are times or long recordings."""
    from speechlab import batch
    from speechlab.text import join_texts

    if not timed and not any(map(_is_long, table["audio"])):
        made = make_batch(batch.transcribe, lab, table, **options).astype({"status": "object"})
        heads = {"hypothesis": "text", "hypothesis_language": "language", "hypothesis_model": "model"}
        return made.rename(columns=heads)[["audio", *heads.values(), "status", "error"]], None
    segments = make_batch(batch.transcribe_long, lab, table, **options)
    faults = segments.attrs.get(batch.FAULTS_ATTRIBUTE, {})
    texts = segments.groupby("row")["text"].agg(lambda pieces: join_texts(list(pieces)))
    made = table.assign(
        text=texts.reindex(table.index).fillna(""),
        language=options["language"],
        status=["error" if row in faults else "ok" for row in table.index],
        error=[faults.get(row) for row in table.index],
    )
    return made, segments


def _is_long(path: str) -> bool:
    """Return whether a recording is longer than a call takes; one that cannot be read fails in its own row."""
    from speechlab import batch
    from speechlab.audio import measure_length_s

    try:
        return measure_length_s(path) > batch.PIECE_S
    except (OSError, ValueError):
        return False


def _write_table(made: pd.DataFrame, place: Path) -> None:
    from speechlab.tables import escape_frame_formulas

    with write_atomically(place) as draft:
        escape_frame_formulas(made).to_csv(draft, index=False)
    note(f"{place}: {len(made):,} transcripts")


def _write_files(
    made: pd.DataFrame,
    segments: pd.DataFrame | None,
    names: list[str],
    place: Path,
    to: Output,
    *,
    replace: bool,
) -> None:
    """Write a file for each recording that has a transcript; one that exists with another content is a failure."""
    from speechlab.segments import write

    count = 0
    for row, name in zip(made.index, names, strict=True):
        if made.at[row, "status"] not in ("ok", "cached"):
            continue
        target = place / Path(name).with_suffix(f".{to}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as folder:
            draft = Path(folder, target.name)
            if to is Output.TXT or segments is None:
                text: Any = made.at[row, "text"]
                draft.write_text(f"{text}\n", "utf-8")
            else:
                write(segments[segments["row"] == row].drop(columns=["row", "piece", "doubt"]), draft)
            content = draft.read_bytes()
        if target.exists() and not replace and target.read_bytes() != content:
            made.at[row, "status"] = "error"
            made.at[row, "error"] = f"{target} exists with another content; --replace replaces it"
            continue
        with write_atomically(target) as draft:
            draft.write_bytes(content)
        count += 1
    note(f"folder {place}: {count:,} {'file' if count == 1 else 'files'} written")
