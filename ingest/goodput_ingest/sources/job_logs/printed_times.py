"""Forms of the time that a program's logger prints at the beginning of a line.

Also behind its name, its level, its module or a key such as `time=`: ISO dates; names of months;
numbers, of which the day or the month comes first; glog and `ts`, which have no year.
"""

import re
from typing import Final

MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
UTC_NAMES: Final = ("Z", "UTC", "GMT")
# of zones that clocks print, where the configured zone must have that name at the time
ZONE_NAMES: Final = (
    *("EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "CET", "CEST", "WET", "WEST"),
    *("EET", "EEST", "BST", "IST", "MSK", "JST", "KST", "HKT", "AEST", "AEDT"),
)
HAS_CLOCK: Final = re.compile(r".{0,90}?\d:\d\d:\d\d")
_BEFORE = (
    r"\s*(?:[\w.-]{1,60} (?=\W{0,3}[A-Z]{4,8}\b))?"  # the name of a logger
    r"(?:\W{0,3}(?:[A-Z]{4,8}|NeMo [A-Z]|[\w./-]{1,60}\.py(?::\d{1,6})?|time(?:stamp)?|ts)"
    r"\W{1,3}){0,2}[\[('\"]?"
)
_CLOCK = (
    r"(?P<clock>\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?)(?: ?(?P<half>[AaPp])[Mm]\b)?"
    rf"(?: ?(?P<zone>[+-]\d\d:?\d\d|{'|'.join((*UTC_NAMES, *ZONE_NAMES))})\b)?(?![\w:<])"
)
_YEAR, _DAY = r"(?P<year>20\d\d)", r"(?P<day>\d{1,2})"
_NAME = rf"(?P<name>{'|'.join(MONTHS[at : at + 3] for at in range(0, 36, 3))})"
FORMS: Final = tuple(
    re.compile(_BEFORE + form)
    for form in (
        rf"{_YEAR}(?P<dash>[-/.])(?P<month>\d\d)(?P=dash)(?P<day>\d\d)[ T,_]{_CLOCK}",
        rf"{_DAY}[-/ ]{_NAME}[-/ ]{_YEAR}[:, T]{{1,2}}{_CLOCK}",
        rf"(?:[A-Z][a-z]{{2}},? )?{_NAME} {{1,2}}{_DAY} {_CLOCK} {_YEAR}\b",
        rf"(?:[A-Z][a-z]{{2}},? )?{_NAME} {{1,2}}{_DAY},? {_YEAR},? {_CLOCK}",
        # as the examples of Hugging Face are configured; Rich
        rf"(?P<month>\d\d)/(?P<day>\d\d)/{_YEAR} {_CLOCK} - [A-Z]+ - ",
        rf"(?<=\[)(?P<month>\d\d)/(?P<day>\d\d)/(?P<short>\d\d) {_CLOCK}\] ",
        rf"(?P<day>\d\d?)\.(?P<month>\d\d?)\.{_YEAR},? {_CLOCK}",
        rf"(?P<first>\d\d?)(?P<dash>[-/])(?P<second>\d\d?)(?P=dash){_YEAR},? {_CLOCK}",
        r"[IWEF](?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,6})?) ",
        r"(?P<name>[A-Z][a-z]{2}) (?P<day>[ \d]\d) (?P<clock>\d\d:\d\d:\d\d) ",
    )
)
EPOCH_S: Final = re.compile(r"\[?(?P<epoch_s>1[5-9]\d{8}(?:\.\d{1,9})?)\]?[:\s]")
