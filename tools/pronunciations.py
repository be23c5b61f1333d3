"""Write the pronouncing dictionary of English: ``python tools/pronunciations.py CMUDICT.DICT``.

The source is ``cmudict.dict`` of the Carnegie Mellon Pronouncing Dictionary (https://github.com/cmusphinx/cmudict,
BSD 2-clause), as it is also in the package cmudict. Stress is left out. A weak "i" (IH0) becomes a weak "uh" (AH0),
because speakers do not separate them (affect/effect). Each phoneme becomes one letter.
"""

from __future__ import annotations

import lzma
import re
import sys
from collections import defaultdict
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src/speechlab/metrics/_differences/cmudict.txt.xz"
PHONES = (
    """AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH"""
)
LETTERS = dict(zip(PHONES.split(), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm", strict=True))


def main(source: str) -> None:
    """Read the dictionary and write the compressed one."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for line in Path(source).read_text(encoding="utf-8").splitlines():
        word, *phones = line.split("#")[0].split()
        plain = ["AH" if phone == "IH0" else phone.rstrip("012") for phone in phones]
        found[re.sub(r"\(\d\)$", "", word)]["".join(LETTERS[phone] for phone in plain)] = None
    lines = [f"{word} {' '.join(sounds)}" for word, sounds in sorted(found.items())]
    data = "\n" + "\n".join(lines) + "\n"
    TARGET.write_bytes(lzma.compress(data.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(lines)} words, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
