"""``speechlab say`` and ``speechlab voices``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.markup import escape

from speechlab.cli._commands._direct.answers import exit_if_failed, make_batch, note, read_texts
from speechlab.cli._console import build_empty_table, print_plain, print_table
from speechlab.cli._options import check_writable
from speechlab.errors import InvalidRequestError

if TYPE_CHECKING:
    from speechlab.client import VoiceCatalogue
    from speechlab.contract import Voice

_ENDINGS = (".wav", ".flac", ".mp3", ".ogg", ".opus")


def say(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text; - reads it from the input.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The recording: .wav, .flac, .mp3 or .ogg.")
    ],
    voice: Annotated[
        str | None,
        typer.Option(help="Voice by id or name. [default: the first that speaks the text's language]"),
    ] = None,
    language: Annotated[str | None, typer.Option(help="Language of the text, to choose a voice.")] = None,
    respell: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Lexicon (CSV) of words that the voice misreads.")
    ] = None,
) -> None:
    """Speak a text into a file. The same text and voice are not asked for twice."""
    from speechlab import AudioClip, batch, connect
    from speechlab.text import Lexicon

    if out.suffix.lower() not in _ENDINGS:
        message = f"{out} has no ending of a recording; give one of {', '.join(_ENDINGS)}"
        raise InvalidRequestError(message, parameter="out")
    check_writable(out, "out")
    texts = read_texts([text])
    lexicon = None if respell is None else Lexicon.read(respell)
    with connect() as lab:
        chosen = _choose_voice(lab.voices(), texts[0], voice, language)
        made = make_batch(batch.synthesize, lab, texts[:1], voice=chosen, respell=lexicon)
    exit_if_failed(made, ["the text"])
    clip = AudioClip.from_file(made["audio"].iloc[0])
    clip.save(out)
    note(f"{out}: {clip.duration_s:.1f} s, voice {chosen.short_name}")


def _choose_voice(voices: VoiceCatalogue, text: str, name: str | None, language: str | None) -> Voice:
    """Return the voice of a name, or the first one that speaks the language of a text."""
    from speechlab.text import guess_language

    if name is not None:
        return voices[name]
    code = language or guess_language([text]) or "en"
    fitting = voices.find(language=code)
    if not fitting:
        message = (
            f"no voice speaks {code!r}; give --language or --voice, of those that speechlab voices lists"
        )
        raise InvalidRequestError(message, parameter="voice")
    return fitting[0]


def voices(
    language: Annotated[str | None, typer.Option(help="Only voices that speak this language.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each voice.")] = False,
) -> None:
    """List the voices of the service."""
    from speechlab import connect

    with connect() as lab:
        catalogue = lab.voices()
    found = catalogue if language is None else catalogue.find(language=language)
    if as_json:
        for voice in found:
            print_plain(orjson.dumps(voice.model_dump(mode="json")).decode())
        return
    table = build_empty_table(f"{len(found):,} voices", "name", "language", "gender", "description", "id")
    for voice in found:
        cells = (voice.short_name, voice.language, voice.gender, voice.description, voice.id)
        table.add_row(*map(escape, cells))
    print_table(table)
