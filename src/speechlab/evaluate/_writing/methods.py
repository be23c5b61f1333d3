"""The methods paragraph of a report: what the study says it did, with the source of each measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from speechlab._platform import installed_version, package_version
from speechlab.errors import InvalidRequestError
from speechlab.text import language_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd


class Methods(NamedTuple):
    """A paragraph and its sources.

    Attributes:
        text: Sentences; ``[1]`` is the first source.
        sources: The sources, in this order.
    """

    text: str
    sources: tuple[str, ...]

    def __str__(self) -> str:
        listed = "\n".join(f"[{number}] {source}" for number, source in enumerate(self.sources, 1))
        return f"{self.text}\n\n{listed}" if listed else self.text


_UNITS = {
    "word": "words",
    "char": "characters",
    "reading": "readings",
    "pinyin": "syllables with their tones",
    "toneless": "syllables without tones",
}
_COUNTS = {
    "levenshtein": "the fewest substitutions, deletions and insertions that turn the reference into the hypothesis",
    "sclite": "the substitutions, deletions and insertions of NIST's sclite",
}
_LEVENSHTEIN = (
    "V. I. Levenshtein, Binary codes capable of correcting deletions, insertions, and reversals, "
    "Soviet Physics Doklady 10 (1966)"
)
_SCLITE = "NIST, Speech Recognition Scoring Toolkit (SCTK) 2.4.10, sclite"
_WHISPER = "A. Radford et al., Robust speech recognition via large-scale weak supervision, appendix C (2022)"
_MIXED = (
    "N. T. Vu et al., A first speech recognition system for Mandarin-English code-switch conversational speech "
    "(ICASSP 2012)"
)
_BISANI = (
    "M. Bisani, H. Ney, Bootstrap estimates for confidence intervals in ASR performance evaluation "
    "(ICASSP 2004)"
)
_KOEHN = "P. Koehn, Statistical significance tests for machine translation evaluation (EMNLP 2004)"
_HESTERBERG = (
    "T. C. Hesterberg, What teachers should know about the bootstrap, The American Statistician 69 (2015)"
)
_FISHER = "R. A. Fisher, The Design of Experiments (1935), section 21"
_HOLM = (
    "S. Holm, A simple sequentially rejective multiple test procedure, "
    "Scandinavian Journal of Statistics 6 (1979)"
)
_YIN = "A. de Cheveigné, H. Kawahara, YIN, a fundamental frequency estimator for speech and music, JASA 111 (2002)"
_SPOKEN = (
    "Readings are the kana of a text as it is spoken, from Open JTalk (pyopenjtalk-plus {pyopenjtalk-plus}), which "
    "takes those of single kanji with several readings from Sudachi ({sudachidict-core}), so that no spelling counts "
    "as an error."
)
_OPEN_JTALK = (
    "K. Oura, S. Sako, K. Tokuda, Japanese text-to-speech synthesis system: Open JTalk (Acoustical Society of Japan, "
    "spring meeting 2010)"
)
_TIMED = (
    "Speed was measured by calls of its own, one at a time, systems in turns, after one call each that does not "
    "count; medians are given."
)
_TIMES_COMPARED = (
    "Times of the same items were compared in pairs, by Student's t of the logarithms of their ratios, corrected by "
    "Holm's method for themselves."
)
_GROUPED = (
    "Systems that share a letter cannot be told apart by p-values that are corrected for all pairs of a language, "
    "under all conditions together; how many utterances would tell them apart follows from the differences that were "
    "seen."
)
_HOTWORDS = (
    "Settings with hotwords were tested in the same way against the setting without: hotwords missed, put in, "
    "and errors of the rest, all of these tests corrected together."
)
_NOISY = (
    "{noise} was added to recordings at 16 kHz, mono, at the ratios given, of the level of the speech without its "
    "pauses (P.56) to that of the noise (root mean square); what would be beyond full scale was made quieter as a "
    "whole."
)
_NOISES = {
    "speech": "Noise with the long-term spectrum of each recording, its phases drawn by chance with a fixed seed,",
    "white": "White noise with a fixed seed",
}
_OWN_NOISE = "A recording of noise, repeated from a place drawn by chance with a fixed seed,"
_P56 = "ITU-T P.56, Objective measurement of active speech level (2011), method B"
_BANDS = (
    "Recordings were limited to bands at 16 kHz, mono, without a shift in phase, with a raised cosine of 100 Hz on "
    "either side."
)
_LOOPS = (
    "A text loops if a stretch of four characters or more stands in it three times in a row, or one of twelve or "
    "more twice, and not so in the reference."
)
_ON_THE_WAY = (
    "Error rates are the fewest substitutions, deletions and insertions over the length of the text, all rows "
    "together, by words or by characters where there are no spaces, normalised by the rules of each language."
)
_MADE_UP = (
    "Text counts as made up if the reference is empty, or if five words in a row or more were inserted (ten "
    "characters in languages without spaces and in rows of two languages) and the hypothesis does not loop."
)
_LOST = (
    "A hypothesis lost its end if the last three words of the reference or more (six characters) have no counterpart "
    "and something was recognised."
)
_SILENT = (
    "Recordings without speech were silence and white noise at -60, -40 and -25 dBFS, 1 to 15 s long; any text there "
    "counts as made up."
)
_ATTRIBUTED = (
    "Errors that most other voices made at the same place count as made whatever the voice, those of most voices of "
    "one engine alone as the engine's, all others as the voice's own."
)
_LISTENED = (
    "Listeners and items both count as drawn by chance, in intervals of means by a two-way bootstrap, and in "
    "intervals and tests of differences by Student's t with the variance of both."
)
_INTERVALS = (
    "Intervals are of 95 %, by a percentile bootstrap over utterances, or blocks of them, with a fixed seed, widened "
    "for few; upper ends of rates are those of a Bayesian bootstrap with a third of a wholly wrong utterance, where "
    "they are higher."
)
_RUBIN = "D. B. Rubin, The Bayesian bootstrap, The Annals of Statistics 9 (1981)"
_PAIRED_INTERVALS = (
    "Intervals of differences of translations are of 95 %, by the paired bootstrap over texts with a fixed seed, "
    "widened for few."
)
_PIEPHO = (
    "H.-P. Piepho, An algorithm for a letter-based representation of all-pairwise comparisons, "
    "Journal of Computational and Graphical Statistics 13 (2004)"
)
_LACHIN = (
    "J. M. Lachin, Introduction to sample size determination and power analysis for clinical trials, "
    "Controlled Clinical Trials 2 (1981)"
)
_SEARLE = "S. R. Searle, G. Casella, C. E. McCulloch, Variance Components (1992)"
_OWEN = "A. B. Owen, The pigeonhole bootstrap, Annals of Applied Statistics 1 (2007)"
_CAMERON = (
    "A. C. Cameron, J. B. Gelbach, D. L. Miller, Robust inference with multiway clustering, "
    "Journal of Business & Economic Statistics 29 (2011)"
)
_KRIPPENDORFF = "K. Krippendorff, Computing Krippendorff's alpha-reliability (2011)"
_CHRF = "M. Popović, chrF: character n-gram F-score for automatic MT evaluation (WMT 2015)"
_POST = "M. Post, A call for clarity in reporting BLEU scores (WMT 2018)"
_RIEZLER = (
    "S. Riezler, J. T. Maxwell, On some pitfalls in automatic evaluation and significance testing for MT "
    "(ACL 2005 workshop)"
)
_SOMERS = "H. Somers, Round-trip translation: what is it good for? (ALTA 2005)"
_BACK = (
    "Translations were also translated back and compared with the source by chrF, copies left out, with sacrebleu "
    "{sacrebleu}; what comes back whole may still be wrong, and what is lost may be lost on the way back."
)
_TERMS = (
    "A term of the glossary is expected as often as it stands in the source, and found as often as the translation "
    "has one of its allowed renderings, after normalisation."
)
_STREAMED = (
    "Times of streams were measured by calls of their own, one at a time, in turns, after one call each that does "
    "not count: to the first piece with a letter or digit, and to the end; medians are given."
)
_WHILE_SPOKEN = (
    "Streams got each recording in pieces at the pace of speech. Speech lasts from the first to the last 10 ms that "
    "are less than 40 dB below the loudest 10 ms; a word is unstable if the next text changes it or one before it."
)
_SHANGGUAN = (
    "Y. Shangguan et al., Analyzing the quality and stability of a streaming end-to-end on-device speech recognizer "
    "(Interspeech 2020)"
)
_RANDOMIZED = "Differences of translations were tested by paired approximate randomisation, 10,000 draws."

_SAID: dict[str, tuple[str, tuple[str, ...]]] = {
    "pooled": ("Rates are errors over the length of the references, added up over utterances first.", ()),
    "readings": (
        _SPOKEN,
        (_OPEN_JTALK, "K. Takaoka et al., Sudachi: a Japanese tokenizer for business (LREC 2018)"),
    ),
    "spellings": ("The tolerant character error rate forgives differences of spelling.", ()),
    "syllables": ("Chinese was also compared by syllables, from pypinyin {pypinyin}.", ()),
    "chrf": ("Translations were scored by chrF with sacrebleu {sacrebleu}.", (_CHRF, _POST)),
    "back": (_BACK, (_SOMERS,)),
    "terms": (_TERMS, ()),
    "streams": (_STREAMED, ()),
    "streamed": (_WHILE_SPOKEN, (_SHANGGUAN,)),
    "loudness": (
        "Loudness was measured in LUFS.",
        ("ITU-R BS.1770-4, Algorithms to measure audio programme loudness (2015)",),
    ),
    "pitch": ("Pitch was estimated by YIN.", (_YIN,)),
    "dnsmos": (
        "Quality was estimated by DNSMOS P.835.",
        ("C. K. A. Reddy et al., DNSMOS P.835 (ICASSP 2022)",),
    ),
    "calls": (_TIMED, ()),
    "ratios": (_TIMES_COMPARED, ()),
    "noise": (_NOISY, (_P56,)),
    "bands": (_BANDS, ()),
    "steps": (_ON_THE_WAY, (_LEVENSHTEIN,)),
    "loops": (_LOOPS, ()),
    "made up": (_MADE_UP, ()),
    "lost ends": (_LOST, ()),
    "silence": (_SILENT, ()),
    "sign-flip": ("Differences were tested by the exact sign-flip test, paired by utterance.", (_FISHER,)),
    "groups": (_GROUPED, (_PIEPHO, _LACHIN)),
    "attribution": (_ATTRIBUTED, ()),
    "variance": ("Variance was parted by a two-way layout with random effects.", (_SEARLE,)),
    "hotwords": (_HOTWORDS, (_FISHER,)),
    "listeners": (_LISTENED, (_OWEN, _CAMERON)),
    "alpha": ("Agreement of all listeners is Krippendorff's alpha.", (_KRIPPENDORFF,)),
    "abx": ("Right answers in ABX were tested by the exact binomial test instead.", ()),
    "simulated": ("Listeners are simulated: nobody heard what they rated.", ()),
    "holm": ("P-values were corrected for their number by Holm's method.", (_HOLM,)),
    "randomization": (_RANDOMIZED, (_RIEZLER,)),
    "intervals": (_INTERVALS, (_BISANI, _HESTERBERG, _RUBIN)),
    "paired intervals": (_PAIRED_INTERVALS, (_KOEHN, _HESTERBERG)),
}
"""What studies do, the sentence for it, and its sources, in the order of a paragraph."""


def methods_of(title: str, *done: str, signatures: Iterable[str] = (), noise: str = "speech") -> Methods:
    """Describe the methods of a study.

    Args:
        title: Title of the study.
        *done: What it did, by the names above; the empty name for nothing.
        signatures: How texts were scored.
        noise: ``"speech"``, ``"white"``, or another value for recorded noise; used if noise was added.
    """
    said = [
        _scored(dict(part.split(":", 1) for part in signature.split("|") if ":" in part))
        for signature in sorted(set(signatures))
    ]
    for name, (words, sources) in _SAID.items():
        if name in done:
            known = words.replace("{noise}", _NOISES.get(noise, _OWN_NOISE))
            said.append((_with_versions(known), sources))
    cited = tuple(dict.fromkeys(source for _, sources in said for source in sources))
    sentences = [f"“{title}”: figures by speechlab {package_version()}."]
    for words, sources in dict.fromkeys(said):
        marks = ", ".join(str(cited.index(source) + 1) for source in sources)
        sentences.append(f"{words[:-1]} [{marks}]." if marks else words)
    return Methods(" ".join(sentences), cited)


def values_of(table: pd.DataFrame, column: str) -> list[str]:
    """The different values of a column as texts; none without the column."""
    return sorted(set(table[column].dropna().astype(str))) if column in table.columns else []


def _scored(parts: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """The scoring of rows with one signature, in words."""
    counts, norm = parts.get("counts", ""), parts.get("norm", "none")
    sources = [_SCLITE if counts == "sclite" else _LEVENSHTEIN]
    unit = _UNITS.get(parts.get("unit", ""), parts.get("unit", ""))
    if "mixed_" in norm:
        unit = "words, and single characters of languages without spaces"
        sources.append(_MIXED)
    if norm.startswith(("en-", "open-asr-")) or "whisper" in norm:
        sources.append(_WHISPER)
    normalized = "not normalised" if norm.split("-")[0] == "none" else f"normalised by {norm}"
    how = _COUNTS.get(counts, counts)
    if "compounds" in parts:
        how += ", words written together or apart being alike"
    if "variants" in parts:
        normalized += f" and by a list of variants ({parts['variants']})"
    tool = f" (rapidfuzz {parts['rapidfuzz']})" if "rapidfuzz" in parts and counts == "levenshtein" else ""
    words = f"{_named(parts.get('lang', ''))} was counted by {unit}, {normalized}: {how}{tool}."
    return words, tuple(sources)


def _named(code: str) -> str:
    try:
        return language_name(code)
    except InvalidRequestError:
        return "The text"


def _with_versions(words: str) -> str:
    for name in ("pyopenjtalk-plus", "sudachidict-core", "pypinyin", "sacrebleu"):
        words = words.replace(f"{{{name}}}", installed_version(name) or "(not installed here)")
    return words
