"""The currency of a statement: its ISO 4217 code, and the sign before an amount.

Prices have no currency of their own: a site writes its rate card, tariffs and budgets in one, and
names it in `[statement] currency`. Nothing is converted.
"""

from __future__ import annotations

DEFAULT = "USD"
SIGNS = {"USD": "$", "EUR": "\N{EURO SIGN}", "GBP": "\N{POUND SIGN}", "JPY": "\N{YEN SIGN}"}
# ISO 4217, list one, of money that is in use: not funds, metals, tests
_IN_USE = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN "
    "BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL "
    "GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF "
    "KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN "
    "MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD "
    "SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH "
    "UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG"
)
CODES = frozenset(_IN_USE.split())


def sign(code: str) -> str:
    """Return what stands before an amount: a sign that is not ambiguous, or the code."""
    return SIGNS.get(code, f"{code}\N{NO-BREAK SPACE}")


def column(name: str, code: str) -> str:
    """Return a column of amounts by the currency that it is in: total_usd, total_eur."""
    return name.replace("usd", code.lower())
