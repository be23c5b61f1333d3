"""Readings of what can be read in several ways: units, abbreviations, ranges, contractions, dates in figures."""

from __future__ import annotations

import re
from itertools import islice, product
from typing import TYPE_CHECKING

from speechlab.metrics._differences._english.rules import MONTHS
from speechlab.text import words

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 96  # combinations of the readings of several words
FILLERS = frozenset(words("uh um er erm uhm umm uhh hm hmm hmmm mm mmm mhm ehm"))
"""Sounds of hesitation. Words that are also used so (like, well) are words."""


def _read(lines: str) -> dict[str, tuple[str, ...]]:
    """A table of lines such as ``vs: versus; against``: a reading is compared without its blanks."""
    table = {}
    for line in lines.strip().splitlines():
        name, _, readings = line.partition(":")
        table[name.strip()] = tuple(reading.strip().replace(" ", "") for reading in readings.split(";"))
    return table


_UNITS = _read(
    """
    km: kilometers; kilometer; k
    k: thousand; kilometers; kilometer; kay
    m: meters; meter; million; minutes
    cm: centimeters; centimeter
    mm: millimeters; millimeter
    kg: kilograms; kilogram; kilos; kilo; kilogramme; kilogrammes
    kgs: kilograms; kilos
    g: grams; gram; grammes; gramme
    mg: milligrams; milligram
    l: liters; liter
    ml: milliliters; milliliter
    cl: centiliters; centiliter
    ft: feet; foot
    in: inches; inch
    yd: yards; yard
    mi: miles; mile
    lb: pounds; pound
    lbs: pounds; pound
    oz: ounces; ounce
    mph: miles per hour; miles an hour
    kph: kilometers per hour; kilometers an hour
    kmh: kilometers per hour; kilometers an hour
    mps: meters per 2th
    h: hours; hour
    hr: hours; hour
    hrs: hours
    min: minutes; minute
    mins: minutes
    s: seconds; 2th
    sec: seconds; 2th
    secs: seconds
    ms: milliseconds; millisecond
    hz: hertz
    khz: kilohertz
    mhz: megahertz
    ghz: gigahertz
    kb: kilobytes; kilobyte
    mb: megabytes; megabyte; megs
    gb: gigabytes; gigabyte; gigs
    tb: terabytes; terabyte
    mbps: megabits per second; megabits per 2th
    gbps: gigabits per second; gigabits per 2th
    w: watts; watt
    kw: kilowatts; kilowatt
    mw: megawatts; megawatt
    kwh: kilowatt hours; kilowatt hour
    v: volts; volt; versus
    c: celsius; degrees celsius; degrees
    f: fahrenheit; degrees fahrenheit; degrees
    celsius: degrees celsius
    fahrenheit: degrees fahrenheit
    p: pence
    x: times; by
    am: a m
    sq: square
    """
)
"""Readings of words behind a figure."""
_WORDS = _read(
    """
    dr: doctor; drive
    st: saint; street
    mr: mister
    mrs: missus; misses; mistress
    ms: miz; miss
    prof: professor
    capt: captain
    gov: governor
    gen: general
    sen: senator
    rep: representative
    rev: reverend
    hon: honorable; honourable
    pres: president
    asst: assistant
    assoc: associate
    lt: lieutenant
    col: colonel
    sgt: sergeant
    cpl: corporal
    cmdr: commander
    det: detective
    insp: inspector
    supt: superintendent
    jr: junior
    sr: senior
    esq: esquire
    mt: mount; mountain
    ft: fort
    ave: avenue
    av: avenue
    rd: road
    blvd: boulevard
    ln: lane
    hwy: highway
    pkwy: parkway
    sq: square
    pl: place
    ct: court
    apt: apartment
    ste: suite
    fl: floor
    bldg: building
    dept: department
    univ: university
    govt: government
    natl: national
    intl: international
    inc: incorporated
    ltd: limited
    corp: corporation
    co: company
    bros: brothers
    est: established; estimated
    approx: approximately
    min: minimum; minutes; minute
    max: maximum
    avg: average
    misc: miscellaneous
    tel: telephone
    ext: extension
    temp: temperature
    vol: volume
    ch: chapter
    fig: figure
    figs: figures
    pp: pages
    ed: edition
    vs: versus
    v: versus
    etc: et cetera; etcetera
    eg: for example; for instance; e g
    ie: that is; i e
    ps: postscript
    aka: also known as; a k a
    jan: january
    feb: february
    mar: march
    apr: april
    jun: june
    jul: july
    aug: august
    sep: september
    sept: september
    oct: october
    nov: november
    dec: december
    mon: monday
    tue: tuesday
    tues: tuesday
    wed: wednesday
    thu: thursday
    thur: thursday
    thurs: thursday
    fri: friday
    sat: saturday
    sun: sunday
    's: is; has
    'd: would; had; did
    ~: ; to; through; dash; minus; and
    /: ; slash; or; per; and
    squared: square
    madam: maam
    alright: all right
    half: 1/2
    number: hash; pound
    minus: negative
    ii: 2; 2th; the 2th
    iii: 3; 3th; the 3th
    iv: 4; 4th; the 4th
    vi: 6; 6th; the 6th
    vii: 7; 7th; the 7th
    viii: 8; 8th; the 8th
    ix: 9; 9th; the 9th
    xi: 11; 11th; the 11th
    xii: 12; 12th; the 12th
    xiii: 13; 13th; the 13th
    xiv: 14; 14th; the 14th
    xv: 15; 15th; the 15th
    xvi: 16; 16th; the 16th
    xx: 20; 20th
    xxi: 21; 21th
    """
)
SILENT = frozenset({"~", "/"})
"""Signs that need not be read."""
_BETWEEN = frozenset({"~", "/", "degrees", "square", "cubic", "sq", "squared"})
_DATE = re.compile(r"(\d{1,2})/(\d{1,2})(?:/(\d\d(?:\d\d)?))?")
_FRACTION = re.compile(r"(\d+)/(\d+)")


def behind_figure(words: Sequence[str]) -> bool:
    """Whether a word behind these may be a unit."""
    for word in reversed(words):
        if word not in _BETWEEN:
            return word[:1].isdigit()
    return False


def readings(words: Sequence[str], *, figure: bool) -> frozenset[str]:
    """The ways to read words, without blanks."""
    if len(words) == 1 and words[0].isalpha() and words[0] not in _WORDS and words[0] not in _UNITS:
        return frozenset(words)
    each = []
    for word in words:
        each.append((word, *_other(word, figure=figure)))
        figure = word[:1].isdigit() or (figure and word in _BETWEEN)
    return frozenset(_plain("".join(combination)) for combination in islice(product(*each), _MOST))


def _other(word: str, *, figure: bool) -> tuple[str, ...]:
    if ":" in word:
        full = (f"{word[:-3]}oclock", word[:-3]) if word.endswith(":00") else ()
        return (word.replace(":", ""), word.replace(":", "."), *full)
    if "/" in word and word != "/":
        return (*_dates(word), *_out_of(word))
    units = _UNITS.get(word, ()) if figure else ()
    return units + _WORDS.get(word, ())


def _dates(word: str) -> list[str]:
    match = _DATE.fullmatch(word)
    if match is None:
        return []
    first, second, year = int(match[1]), int(match[2]), match[3] or ""
    years = (year, f"20{year}", f"19{year}") if len(year) == 2 else (year,)
    orders = [(first, second)] if second <= 12 else []
    orders += [(second, first)] if first <= 12 else []
    return [
        f"{day}{MONTHS[month - 1]}{each}" for day, month in orders if month and day <= 31 for each in years
    ]


def is_order_of_figures(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether only the order of two figures differs (2/3 and 3/2), which are no two forms of one date."""
    figures = [words[0].split("/") for words in (one, other) if len(words) == 1]
    return len(figures) == 2 and len(figures[0]) > 1 and figures[0][1::-1] == figures[1][:2] != figures[0][:2]


def _out_of(word: str) -> list[str]:
    match = _FRACTION.fullmatch(word)
    return (
        []
        if match is None
        else [f"{match[1]}outof{match[2]}", f"{match[1]}over{match[2]}", match[1] + match[2]]
    )


def _plain(key: str) -> str:
    key = re.sub(r"^a(?=1/[2-9])", "", key)
    key = re.sub(r"^(?:a|an|1)quarter", "1/4", key)
    return re.sub(r"^a([3-9]|10)th$", r"1/\1", key)
