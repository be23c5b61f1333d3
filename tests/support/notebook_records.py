"""What each notebook asked, and what came: kept in ``tests/notebooks/data``, so that it runs without a service.

``NAME.jsonl`` has a line for each result of the store that the notebook was executed with. Sounds lie in ``sounds``,
where notebooks share them, with nine bits for a sample where the notebook shows the same then: four times as small.
"""

import hashlib
import io
import sqlite3
import wave
import zlib
from contextlib import closing
from itertools import product
from pathlib import Path

import numpy as np
import orjson
import soundfile

from speechlab.contract import compute_request_key
from speechlab.store import Store

RECORDS = Path(__file__).parents[1] / "notebooks" / "data"
SOUNDS = "sounds"
STEPS = (128, 1)
"""Samples are kept as multiples of the first, or as they are: where a sound is cut and joined, its digest changes."""


def keep_record(name, store, step, records=RECORDS):
    """Keep all results of a store as the record of a notebook, and remove sounds that no record has any more.

    Samples are kept as multiples of ``step``.
    """
    (records / SOUNDS).mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(store / "store.sqlite")) as database:
        keys = [key for (key,) in database.execute("SELECT key FROM results ORDER BY rowid")]
    with Store(store) as opened:
        results = opened.get_many(keys)
        facts = {key: opened.facts(key) for key in keys}
    answers = [*facts.values(), *(one.get("response", {}) for one in facts.values())]
    services = {one["service"] for one in answers if "service" in one}
    digests, lines = {}, []
    for key in keys:
        result, files = results[key], {}
        for role, file in result.files.items():
            data = _round(file.read_bytes(), file.suffix, facts[key], step)
            digests[file.stem] = hashlib.sha256(data).hexdigest()
            files[role] = _pack(data, file.suffix, records / SOUNDS)
        about = {name: getattr(result, name) for name in ("key", "operation", "request", "response")}
        line = _rename({**about, "files": files, "facts": facts[key]}, digests, services)
        lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    file = records / f"{name}.jsonl"
    file.unlink(missing_ok=True)
    if lines:
        file.write_bytes(b"".join(lines))
    kept = "".join(file.read_text("utf-8") for file in records.glob("*.jsonl"))
    for sound in (records / SOUNDS).iterdir():
        if sound.name not in kept:
            sound.unlink()


def restore_record(name, store, records=RECORDS):
    """Make a store of a notebook's record; an empty one, if the notebook asked nothing."""
    file = records / f"{name}.jsonl"
    with Store(store) as opened, opened.transaction():
        for line in file.read_bytes().splitlines() if file.exists() else ():
            result = orjson.loads(line)
            facts = result.pop("facts")
            files = {role: _unpack(records / SOUNDS / packed) for role, packed in result.pop("files").items()}
            opened.put(**result, files=files)
            if facts:
                opened.keep_facts(result["key"], facts)


def _rename(line, digests, services):
    """Return the line of a result with the digests of the sounds as kept, and the key that follows from them."""
    request, facts = line["request"], line["facts"]
    renamed = {name: digests.get(str(value), value) for name, value in request.items()}
    if "files" in facts:
        names = {role: Path(name) for role, name in facts["files"].items()}
        facts = facts | {"files": {role: digests[name.stem] + name.suffix for role, name in names.items()}}
    if renamed != request:
        for service, repeat in product(services, range(10)):
            of = {"service": service, "repeat": repeat}
            if compute_request_key(line["operation"], request, **of) == line["key"]:
                return line | {
                    "request": renamed,
                    "facts": facts,
                    "key": compute_request_key(line["operation"], renamed, **of),
                }
        raise ValueError(f"no known service was asked for {request}")
    return line | {"request": renamed, "facts": facts}


def _round(data, suffix, facts, step):
    if step == 1:
        return data
    if suffix == ".flac" or (suffix == ".wav" and soundfile.info(io.BytesIO(data)).subtype == "PCM_16"):
        samples, rate = soundfile.read(io.BytesIO(data), dtype="int16")
        return (_to_flac if suffix == ".flac" else _to_wav)(_to_multiples(samples, step), rate)
    if suffix == ".pcm" or facts.get("headers", {}).get("content-type", "").startswith("audio/pcm"):
        return _to_multiples(np.frombuffer(data, "<i2"), step).tobytes()
    return data


def _to_multiples(samples, step):
    return (np.clip(np.rint(samples / step), -(32768 // step), 32767 // step) * step).astype("<i2")


def _to_flac(samples, rate):
    flac = io.BytesIO()
    soundfile.write(flac, samples, rate, format="FLAC", compression_level=1.0)
    return flac.getvalue()


def _to_wav(samples, rate):
    sound = io.BytesIO()
    with wave.open(sound, "wb") as written:
        written.setparams((1, 2, rate, len(samples), "NONE", ""))
        written.writeframes(samples.tobytes())
    return sound.getvalue()


def _pack(data, suffix, folder):
    """Write a file in the smallest form that gives back its bytes, and return its name."""
    packed, form = data, ""
    if suffix != ".flac":
        packed, form = zlib.compress(data, 9), ".zlib"
    if suffix == ".wav":
        samples = soundfile.read(io.BytesIO(data), dtype="int16")
        if _to_wav(*samples) == data:
            packed, form = _to_flac(*samples), ".flac"
    name = f"{hashlib.sha256(data).hexdigest()[:32]}{suffix}{form}"
    (folder / name).write_bytes(packed)
    return name


def _unpack(file):
    """Return the bytes of a packed file, and the suffix that they have in a store."""
    suffix, *form = file.suffixes
    data = file.read_bytes()
    if form == [".flac"]:
        data = _to_wav(*soundfile.read(io.BytesIO(data), dtype="int16"))
    elif form:
        data = zlib.decompress(data)
    return data, suffix
