"""``speechlab study``: a question about a table, answered with a report; what changed since another, for CI jobs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from speechlab.cli._commands._studies.performing import ended_with, performed, saved
from speechlab.cli._commands._studies.systems import bands_of, glossary_of, settings_of, voice_of, voices_of
from speechlab.cli._options import command

app = typer.Typer(
    help="Answer a question about a table with a report: a folder, or one page (.html). Exit status 0: done; 1: "
    "something failed, such as rows; 2: the command cannot be done as given; 4: --fail-if found a significant change "
    "for the worse.",
    no_args_is_help=True,
)


class Change(StrEnum):
    """Changes that may fail a CI job."""

    WORSE = "worse"
    SLOWER = "slower"


Input = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="The table: .csv, .tsv, .jsonl or .parquet; or a folder in the layout of LibriSpeech, AISHELL, JSUT, "
        "Common Voice or FLEURS.",
    ),
]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="REPORT", help="Folder of the report, or one page that ends in .html."),
]
Earlier = Annotated[
    Path | None,
    typer.Option(
        metavar="REPORT", help="Folder of an earlier report of this study. Significant changes are reported."
    ),
]
FailIf = Annotated[
    list[Change] | None,
    typer.Option(
        help="End with status 4 if a voice and language, a direction of translation, or the number of failed rows is "
        "significantly worse; or if a voice, system or direction is significantly slower. May be repeated."
    ),
]
OwnColumns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME",
        help="Name of a column in your table, such as text=sentence; may be repeated. Frequent names "
        "are recognised without it.",
    ),
]
Language = Annotated[
    str | None, typer.Option(help="Language code of all rows, if the table has no such column.")
]
Split = Annotated[list[str] | None, typer.Option(help="Part of a corpus, such as test; may be repeated.")]
Sample = Annotated[
    int | None, typer.Option(min=1, help="Number of rows to draw at random, from each language its share.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of --sample. The same seed draws the same rows.")]
SeedOfNoise = Annotated[
    int,
    typer.Option(min=0, help="Seed of --sample and of noise. The same seed gives the same rows and noise."),
]
Store = Annotated[
    Path | None,
    typer.Option(help="Folder where results are kept and reused. [default: the user's own store]"),
]
Concurrency = Annotated[int, typer.Option(min=1, help="Maximum of concurrent calls.")]
GiveUp = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="Time to wait for a service that cannot be reached, or that says 'later'. [default: a minute, an hour]",
    ),
]

Voices = Annotated[
    list[str] | None,
    typer.Option(
        "--voice",
        metavar="VOICE|NAME=VOICE",
        help="Id or name of a voice; with several services NAME is its service. May be repeated. [default: all "
        "voices that speak the texts' languages]",
    ),
]
Speed = Annotated[
    int, typer.Option(min=0, help="Number of texts of each language for the speed of each voice; 0 for none.")
]
Services = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=URL",
        help="A service to compare; may be repeated. Without a URL it is the usual service. The key of NAME is "
        "SPEECHLAB_API_KEY_NAME, or else the one kept by speechlab login. [default: the usual service]",
    ),
]
Adapters = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=JSON",
        help="Service that speaks OpenAI's API, with its models (speech, transcription, translation) and its voices; "
        "may be repeated.",
    ),
]


def _shared(
    earlier: Earlier = None,
    fail_if: FailIf = None,
    column: OwnColumns = None,
    language: Language = None,
    split: Split = None,
    sample: Sample = None,
    seed: Seed = 0,
    store: Store = None,
    concurrency: Concurrency = 16,
    give_up_after_s: GiveUp = None,
) -> None:
    """List the options that all studies have."""


@command(app, "recognition", _shared)
def recognition(
    source: Input,
    out: Out,
    service: Services = None,
    openai: Adapters = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=JSON",
            help="Setting to compare: parameters of transcribe, under a name; may be repeated.",
        ),
    ] = None,
    hotword: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TERM",
            help="Word to boost; may be repeated. Recognition with and without these words is compared.",
        ),
    ] = None,
    noise_db: Annotated[
        list[float] | None,
        typer.Option(metavar="DB", help="Add noise at this signal-to-noise ratio, in dB; may be repeated."),
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            metavar="KIND|FILE",
            help="Kind of noise: speech (shaped like the recording), white, or a recording of noise.",
        ),
    ] = "speech",
    band: Annotated[
        list[str] | None,
        typer.Option(metavar="LOW-HIGH", help="Limit the recordings to a band, in Hz; may be repeated."),
    ] = None,
    speechless: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of recordings without speech to add, of each kind. Any text there is a hallucination.",
        ),
    ] = 0,
    speed: Annotated[
        int, typer.Option(min=0, help="Number of recordings of each language for the speed; 0 for none.")
    ] = 0,
    seed: SeedOfNoise = 0,
    **shared: Any,
) -> None:
    """Recognise recordings and score the hypotheses, by service and setting, in noise and in bands."""
    given = {
        "settings": settings_of(setting or (), {"hotwords": {"hotwords": hotword}}, "transcribe"),
        "noise_db": noise_db or [],
        "noise": noise,
        "band_hz": bands_of(band or ()),
        "speechless": speechless,
        "speed": speed,
    }
    services = (service or (), openai or ())
    performed("recognition", source, out, given, services=services, seed=seed, **shared)


@command(app, "round-trip", _shared)
def round_trip(
    source: Input,
    out: Out,
    service: Services = None,
    openai: Adapters = None,
    voice: Voices = None,
    speed: Speed = 0,
    **shared: Any,
) -> None:
    """Speak texts with voices, recognise the speech, and score the hypotheses."""
    given = {"voices": voices_of(voice or (), service or ()), "speed": speed}
    performed("round_trip", source, out, given, services=(service or (), openai or ()), **shared)


@command(app, "voices", _shared)
def voices(
    source: Input,
    out: Out,
    service: Services = None,
    openai: Adapters = None,
    voice: Voices = None,
    speed: Speed = 6,
    takes: Annotated[
        int, typer.Option(min=1, help="Number of times that each voice speaks each sentence.")
    ] = 1,
    **shared: Any,
) -> None:
    """Recommend a voice: intelligibility, speed and sound of each voice, with the certainty of the ranking."""
    given = {"voices": voices_of(voice or (), service or ()), "speed": speed, "takes": takes}
    performed("voices", source, out, given, services=(service or (), openai or ()), **shared)


@command(app, "translation", _shared, without={"language"})
def translation(
    source: Input,
    out: Out,
    source_lang: Annotated[
        str | None, typer.Option(help="Language code of all texts, if the table has no such column.")
    ] = None,
    target_lang: Annotated[
        str | None, typer.Option(help="Language code of all translations, if the table has no such column.")
    ] = None,
    service: Services = None,
    openai: Adapters = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=JSON",
            help="Setting to compare: parameters of translate, under a name; may be repeated.",
        ),
    ] = None,
    keyword: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TERM",
            help="Term to preserve; may be repeated. Translation with and without these terms is compared.",
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Text that helps the translation, such as a description of the source. Translation with and without "
            "it is compared.",
        ),
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Terms to count in the translations: .json, .csv or .tsv (columns term and target), or a text "
            "with a term in each line.",
        ),
    ] = None,
    back: Annotated[
        bool, typer.Option("--back", help="Also translate back, and compare the result with the source.")
    ] = False,
    speed: Annotated[
        int,
        typer.Option(
            min=0, help="Number of texts of each direction for the time to the first word; 0 for none."
        ),
    ] = 0,
    **shared: Any,
) -> None:
    """Translate texts and score them: columns text, source_lang, target_lang and, where there are any, reference."""
    codes = {"source_lang": source_lang, "target_lang": target_lang}
    switched: dict[str, dict[str, Any]] = {"keywords": {"keywords": keyword}, "context": {"context": context}}
    given = {
        "settings": settings_of(setting or (), switched, "translate"),
        "glossary": glossary_of(glossary),
        "back": back,
        "speed": speed,
    }
    services = (service or (), openai or ())
    performed("translation", source, out, given, codes=codes, services=services, **shared)


@command(app, "speech-to-speech", _shared, without={"earlier", "fail_if"})
def speech_to_speech(
    source: Input,
    out: Out,
    target_lang: Annotated[str, typer.Option(help="Language code of the translation.")],
    voice: Annotated[
        list[str],
        typer.Option(
            metavar="VOICE|NAME=VOICE",
            help="Id or name of a voice that speaks this language; with several services one for each, where NAME "
            "is its service.",
        ),
    ],
    service: Services = None,
    openai: Adapters = None,
    keyword: Annotated[
        list[str] | None, typer.Option(metavar="TERM", help="Term to preserve; may be repeated.")
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Text that helps the translation, such as a description of the recordings.",
        ),
    ] = None,
    **shared: Any,
) -> None:
    """Recognise recordings, translate, speak and recognise again, with the loss of each step."""
    options = {"keywords": keyword, "context": context}
    given: dict[str, Any] = {name: value for name, value in options.items() if value}
    given |= {"target_lang": target_lang, "voice": voice_of(voice, service or ())}
    performed("speech_to_speech", source, out, given, services=(service or (), openai or ()), **shared)


@app.command("compare")
def compare(
    now: Annotated[Path, typer.Argument(metavar="REPORT", help="Folder of the later report.")],
    earlier: Annotated[Path, typer.Argument(metavar="EARLIER", help="Folder of the earlier report.")],
    out: Annotated[
        Path | None, typer.Option(metavar="REPORT", help="Folder, or page (.html), for what changed.")
    ] = None,
    fail_if: FailIf = None,
) -> None:
    """Report the significant changes between two saved reports of one study."""
    from speechlab import evaluate

    if out is not None:
        evaluate.Report.check_path(out)
    ended_with(saved(now).compare(saved(earlier)), out, fail_if or ())
