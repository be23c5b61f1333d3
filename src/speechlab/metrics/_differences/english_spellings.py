"""American spellings of English words by rules, where the table of Whisper's normalizer has none."""

from __future__ import annotations

import re
from functools import lru_cache

_LONGEST = 30  # letters of a word; the time of a rule grows with more than their number
# No two words of different sound get one spelling.
_RESPELLED = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"^([a-z]{3,})is(e|ed|es|ing|er|ers|ation|ations)$", r"\1iz\2"),
        (r"^([a-z]*lys?)s(e|ed|es|ing|er|ers)$", r"\1z\2"),
        (r"^([a-z]{3,})our(s|ed|ing|ite|ites|able|ably|less|er|ers|ful|fully|y)?$", r"\1or\2"),
        (r"^([a-z]{2,}[bt])re(s|d)?$", r"\1er\2"),
        (r"^([a-z]*[aeiouy][a-z]*[aeiou])ll(ed|ing|er|ers|or|ors)$", r"\1l\2"),
        (r"^(enro|fulfi|insta|enthra|appa|disti|insti)l(s|ment|ments)?$", r"\1ll\2"),
        (r"^(sk|w)ilful(ly|ness)?$", r"\1illful\2"),
        (r"^([a-z]*dg)ement(s)?$", r"\1ment\2"),
        (r"^(un)?(lik|siz|liv|lov|mov|us|sal|rat|nam|blam|shak)eable$", r"\1\2able"),
        (
            r"^(focus|benefit|worship|kidnap|bias|target|budget|carburet)[stp](ed|es|ing|er|ers|or|ors)$",
            r"\1\2",
        ),
        (r"^([a-z]{3,})ogue(s)?$", r"\1og\2"),
        (r"(?<=h)ae(?=m)|(?<=p)ae(?=d)|(?<=an)ae(?=[sm])|(?<=c)ae(?=s)|(?<=ch)ae(?=o)|(?<=di)ae(?=v)", "e"),
        (r"(?<=k)ae(?=m)|(?<=yn)ae(?=c)|(?<=pal)ae(?=o)|(?<=f)oe(?=t)|^oe(?=s)|(?<=rrh)oe(?=a)", "e"),
        ("sulph", "sulf"),
        ("gr[e]y", "gray"),
    )
)


@lru_cache(maxsize=8_192)
def to_american_by_rules(word: str) -> str:
    """Return the American spelling of a word by rules."""
    if len(word) > _LONGEST:
        return word
    for pattern, new in _RESPELLED:
        word = pattern.sub(new, word)
    return word
