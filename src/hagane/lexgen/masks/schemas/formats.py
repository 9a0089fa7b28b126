"""Expressions of the formats of JSON Schema.

Source: JSON Schema validation, draft 2020-12, section 7.3; RFC 3339, 3986, 3987, 4122, 4291, 5321,
6531, 6570, 6901; ECMA-262 for ``regex``. Each matches valid texts alone; of dates, hosts, addresses
and expressions (which nest without end) it leaves rare forms out.
"""

from __future__ import annotations

from hagane.lexgen.masks.texts import Texts, matching

_FOURTH = "(?:0[48]|[2468][048]|[13579][26])"  # of a hundred years, the first apart
_LEAP = rf"(?:[0-9]{{2}}{_FOURTH}|(?:00|{_FOURTH})00)"
_DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    rf"|{_LEAP}-02-29)"
)
_OFFSET = r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_TIME = rf"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?{_OFFSET}"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"(?:{_BYTE}\.){{3}}{_BYTE}"
_HEX = "[0-9a-fA-F]{1,4}"
_IPV6 = "|".join(
    (
        rf"(?:{_HEX}:){{7}}{_HEX}",
        *(
            rf"(?:{_HEX}:){{{before}}}(?::{_HEX}){{1,{7 - before}}}"
            for before in range(1, 7)
        ),
        rf":(?::{_HEX}){{1,7}}",
        rf"(?:{_HEX}:){{1,7}}:",
        "::",
    )
)  # fmt: skip
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# Both the third and the fourth sign of a label are "-" in names of other alphabets alone, whose
# rules no expression holds. A host has at most 253 characters: few labels, or short ones.
_SIGN, _ANY_SIGN = "[A-Za-z0-9]", "[A-Za-z0-9-]"
_LONG, _SHORT = (
    rf"(?:{_SIGN}(?:{_ANY_SIGN}?{_SIGN})?|{_SIGN}{_ANY_SIGN}(?:"
    rf"{_SIGN}{_ANY_SIGN}{{0,{most - 4}}}{_SIGN}|-{_SIGN}(?:{_ANY_SIGN}{{0,{most - 5}}}{_SIGN})?))"
    for most in (63, 30)
)
_HOST = rf"(?:{_LONG}(?:\.{_LONG}){{0,2}}|{_SHORT}(?:\.{_SHORT}){{3,7}})"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_PCT = "%[0-9A-Fa-f]{2}"
_PCHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{_PCT})"
_REST = rf"(?:/{_PCHAR}*)*(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_AUTHORITY = r"(?:[A-Za-z0-9._~-]+@)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
_URI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{_AUTHORITY}{_REST}|{_PCHAR}+{_REST})"
# Letters beyond ASCII: the first plane of ``ucschar``, which suffices.
_UCS = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
_IPCHAR = _PCHAR.replace("[A-Za-z", f"[{_UCS}A-Za-z")
_IREST = _REST.replace(_PCHAR, _IPCHAR)
_IAUTHORITY = _AUTHORITY.replace("[A-Za-z", f"[{_UCS}A-Za-z")
_IRI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{_IAUTHORITY}{_IREST}|{_IPCHAR}+{_IREST})"
_INTERNATIONAL = _ATOM.replace("[A-Za-z", f"[{_UCS}A-Za-z")
_VARIABLE = rf"(?:[A-Za-z0-9_]|{_PCT})(?:\.?(?:[A-Za-z0-9_]|{_PCT}))*(?::[1-9][0-9]{{0,3}}|\*)?"
_TEXT = rf"(?:[!#$&()*+,./0-9:;=?@A-Z\[\]_a-z~{_UCS}-]|{_PCT})"
_TEMPLATE = rf"(?:{_TEXT}|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
# Of an expression's classes the ranges that are in order in any case; groups two deep.
_ESCAPE = r"\\[dDwWsSnrtfv.*+?()\[\]{}|/\\^$-]"
_MEMBER = rf"(?:[^\\\[\]^-]|a-z|A-Z|0-9|{_ESCAPE})"
_SIMPLE = rf"(?:[^\\^$.*+?()\[\]{{}}|]|\.|{_ESCAPE}|\[\^?{_MEMBER}+\])"
_REPEAT = r"(?:[*+?]\??|\{[0-9]{1,3}(?:,)?\}\??)?"
_PLAIN = rf"(?:{_SIMPLE}{_REPEAT}|\\[bB]|[\^$])*"
_GROUP = rf"\((?:\?:)?{_PLAIN}(?:\|{_PLAIN})*\){_REPEAT}"
_BRANCH = rf"(?:{_PLAIN}(?:{_GROUP})?)*"
_OUTER = rf"\((?:\?:)?{_BRANCH}(?:\|{_BRANCH})*\){_REPEAT}"
_WHOLE = rf"(?:{_BRANCH}(?:{_OUTER})?)*"
_SECONDS = r"[0-9]+S"
_CLOCK = rf"T(?:[0-9]+H(?:[0-9]+M(?:{_SECONDS})?)?|[0-9]+M(?:{_SECONDS})?|{_SECONDS})"
_DAYS = r"(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"


def _labels(most: int, least: int) -> str:
    """Return an expression of labels with points between them, together of ``most`` characters."""

    def some(low: int, high: int) -> str:
        size = min((most - high) // (high + 1), 63)
        label = rf"[A-Za-z0-9](?:[A-Za-z0-9-]{{0,{size - 2}}}[A-Za-z0-9])?"
        return rf"{label}(?:\.{label}){{{low},{high}}}"

    return f"(?:{some(least, 2)}|{some(3, 6)})"


def shorter(name: str, most: int) -> str:
    """Return an expression that leaves addresses and hosts of at most so many characters.

    Texts that are none match it too.

    Args:
        name: ``email``, ``idn-email`` or ``hostname``.
        most: At least 48.
    """
    if name == "hostname":
        return _labels(most, 0)
    local = min(most // 4, 64)
    return rf"[^@]{{1,{local}}}@{_labels(most - local - 1, 1)}"


FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": rf"P(?:{_DAYS}(?:{_CLOCK})?|{_CLOCK}|[0-9]+W)",
    "uuid": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "email": rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})+",
    "hostname": _HOST,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI,
    "uri-reference": rf"(?:{_URI}|//{_AUTHORITY}{_REST}|/?(?:[A-Za-z0-9._~-]+{_REST})?)",
    "relative-json-pointer": r"(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^/~]|~0|~1)*)*)",
    "iri": _IRI,
    "iri-reference": rf"(?:{_IRI}|//{_IAUTHORITY}{_IREST}|/?(?:[A-Za-z0-9._~{_UCS}-]+{_IREST})?)",
    "idn-email": rf"{_INTERNATIONAL}(?:\.{_INTERNATIONAL})*@{_LABEL}(?:\.{_LABEL})+",
    "uri-template": _TEMPLATE,
    "regex": rf"{_WHOLE}(?:\|{_WHOLE})*",
    "json-pointer": r"(?:/(?:[^/~]|~0|~1)*)*",
}

# Formats of which the expression matches all valid texts.
EXACT_FORMATS = frozenset({"date", "uuid", "ipv4", "json-pointer"})

_made: dict[str, Texts] = {}


def format_texts(name: str) -> Texts:
    """Return the texts of a format, each time the same object."""
    if name not in _made:
        _made[name] = matching(FORMATS[name], whole=True)
    return _made[name]


def format_of(texts: Texts) -> str | None:
    """Return the name of the format that some texts are of; None of others."""
    return next((name for name, made in _made.items() if made is texts), None)
