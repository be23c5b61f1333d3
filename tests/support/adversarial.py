"""Words that break scorers: for the comparisons with jiwer, sacrebleu and sc_stats alike."""

WORDS = [
    "a",
    "b",
    "A",
    "é",
    "e\u0301",  # the same, decomposed
    "naïve",
    "ß",
    "ﬁ",  # a ligature
    "ｶﾞ",  # half-width kana
    "が",
    "か\u3099",
    "カ",
    "ー",
    "日本語",
    "語。",
    "😀",
    "👨\u200d👩\u200d👧",  # one picture of five code points
    "🇯🇵",
    "👍🏽",
    "𠮷",  # outside the basic plane
    "𝔘",
    "שלום",
    "مرحبا",
    "\u202eabc",  # turns the direction around
    "a\u200b",  # a space of no width
    "ไทย",
    "हिन्दी",
    "1.5",
    "$3,000",
    "don't",
    "&amp;",
    "x" * 300,
]
SPACES = [" ", "\u3000", "\u00a0", "\t", "  "]
