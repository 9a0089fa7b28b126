"""Expressions of the formats of JSON Schema.

Source: JSON Schema validation, draft 2020-12, section 7.3; RFC 3339, 3986, 4122, 4291, 5321, 6901.
Each matches valid texts alone; of dates, hosts and addresses it leaves rare forms out.
"""

from __future__ import annotations

_DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8])))"
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
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_PCT = "%[0-9A-Fa-f]{2}"
_PCHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{_PCT})"
_REST = rf"(?:/{_PCHAR}*)*(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_AUTHORITY = r"(?:[A-Za-z0-9._~-]+@)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
_URI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{_AUTHORITY}{_REST}|{_PCHAR}+{_REST})"
_SECONDS = r"[0-9]+S"
_CLOCK = rf"T(?:[0-9]+H(?:[0-9]+M(?:{_SECONDS})?)?|[0-9]+M(?:{_SECONDS})?|{_SECONDS})"
_DAYS = r"(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"

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
    "json-pointer": r"(?:/(?:[^/~]|~0|~1)*)*",
}
