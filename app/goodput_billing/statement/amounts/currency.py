"""The currency of a statement: its ISO 4217 code, and the sign before an amount.

A site writes its rate card, tariffs and budgets in one currency and names it in `[statement]
currency`. Nothing is converted: a row that names another is refused.
"""

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
# minor units of ISO 4217 that are not hundredths
_NONE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_THOUSANDTHS = "BHD IQD JOD KWD LYD OMR TND"
_DECIMALS = dict.fromkeys(_NONE.split(), 0) | dict.fromkeys(_THOUSANDTHS.split(), 3)
PRICE_DECIMALS = 2  # that a price of a GPU-hour has beyond an amount


def sign(code: str) -> str:
    """Return what stands before an amount: a sign that is not ambiguous, or the code."""
    return SIGNS.get(code, f"{code}\N{NO-BREAK SPACE}")


def decimals(code: str) -> int:
    """Return how many decimals an amount has."""
    return _DECIMALS.get(code, 2)


def smallest_cents(code: str) -> int:
    """Return the smallest amount that is billed, in hundredths: 100 where there are none.

    Of currencies with thousandths amounts are billed to the hundredth.
    """
    return 100 if decimals(code) == 0 else 1
