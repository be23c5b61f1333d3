"""Sentences spoken and recognized by the bundled engines: ``python benchmarks/spoken.py FOLDER [--chinese VOICES]``.

Sixty sentences of each language from :func:`speechlab.datasets.prompts`, by two voices each, become FOLDER/en.tsv,
ja.tsv and zh.tsv: voice, text and transcript. A person then adds the differences, each with its class and the reason
(tests/metrics/rates/spoken).

No bundled voice speaks Chinese. Kokoro's Chinese voices are in the npm package kokoro-js, and what reads Chinese for
them is the package misaki with jieba and cn2an: unpack the first, install the others, and name the folder of voices.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from speechlab.audio import resample
from speechlab.datasets import prompts
from speechlab.engines import RecognitionOptions, create

SENTENCES = 60
Samples = NDArray[np.float32]
Voice = Callable[[str], tuple[Samples, int]]


def bundled(engine: str, voice: str) -> Voice:
    """A voice of an engine of this package."""
    speaker = create(engine)
    return lambda text: (np.concatenate(list(speaker.synthesize(text, voice))), speaker.sample_rate)


def chinese(path: Path) -> Voice:
    """A Chinese voice of Kokoro: its file of styles, and misaki's reading of the text."""
    from misaki import zh

    speaker, read = create("kokoro"), zh.ZHG2P()
    speaker.load()
    model = speaker._model  # noqa: SLF001  # the model speaks any language, its engine offers two
    styles = np.fromfile(path, dtype="<f4").reshape(-1, 256)

    def speak(text: str) -> tuple[Samples, int]:
        tokens = [model.vocabulary[sound] for sound in read(text)[0] if sound in model.vocabulary]
        return model.synthesize_tokens(tokens, styles[len(tokens) - 1]), speaker.sample_rate

    return speak


def voices(language: str, folder: Path | None) -> Iterator[tuple[str, Voice]]:
    """Two voices of a language."""
    if language == "en":
        yield "heart", bundled("hibari", "heart")
        yield "jm_kumo", bundled("kokoro", "jm_kumo")
    elif language == "ja":
        yield "mei", bundled("openjtalk", "mei")
        yield "jf_tebukuro", bundled("kokoro", "jf_tebukuro")
    elif folder is not None:
        yield from ((name, chinese(folder / f"{name}.bin")) for name in ("zm_yunxi", "zf_xiaoxiao"))


def main() -> None:
    """Speak and recognize all sentences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chinese", type=Path, help="folder with zm_yunxi.bin and zf_xiaoxiao.bin")
    given = parser.parse_args()
    recognizer = create("whisper")
    for language in ("en", "ja", "zh"):
        texts = prompts(language)["text"].tolist()
        chosen = sorted(random.Random(0).sample(range(len(texts)), SENTENCES))
        with (given.folder / f"{language}.tsv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            table.writerow(["voice", "text", "transcript"])
            for name, speak in voices(language, given.chinese):
                for text in (texts[place] for place in chosen):
                    samples, rate = speak(text)
                    heard = resample(samples, rate, 16_000)
                    found = recognizer.recognize(heard, RecognitionOptions(language=language))
                    table.writerow([name, text, found.text.strip()])
                    file.flush()


if __name__ == "__main__":
    main()
