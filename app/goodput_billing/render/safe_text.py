"""Untrusted text made harmless for CSV files, which spreadsheets open.

A text that begins as a formula does gets a `'` before it (OWASP, CSV Injection). Controls that turn
the direction of writing are spelt out by their code. Numbers and times are as they are; JSON and
Parquet have every text as it is.
"""

import re

import polars as pl

# what a spreadsheet takes for a formula, with the full-width signs that it takes for the same
FORMULA = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_SPELT = {c: f"\\u{ord(c):04x}" for c in DIRECTION}


def harmless(texts: pl.Expr) -> pl.Expr:
    """Return columns of texts as a CSV file has them."""
    plain = texts.str.replace_many(_SPELT)
    return pl.when(plain.str.contains(FORMULA)).then("'" + plain).otherwise(plain).name.keep()


def harmless_text(text: str) -> str:
    """Return one text as a CSV file has it."""
    plain = "".join(_SPELT.get(c, c) for c in text)
    return f"'{plain}" if re.match(FORMULA, plain) else plain
