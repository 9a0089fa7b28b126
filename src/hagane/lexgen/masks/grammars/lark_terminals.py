"""Terminals of Lark's library ``common``, as expressions. Source: Lark's documentation, 1.3."""

_WHOLE = "[0-9]+"
_EXPONENT = "[eE][+-]?[0-9]+"
_DECIMAL = r"(?:[0-9]+\.[0-9]*|\.[0-9]+)"
_FLOAT = f"(?:{_WHOLE}{_EXPONENT}|{_DECIMAL}(?:{_EXPONENT})?)"

TERMINALS = {
    "DIGIT": "[0-9]",
    "HEXDIGIT": "[0-9a-fA-F]",
    "INT": _WHOLE,
    "SIGNED_INT": f"[+-]?{_WHOLE}",
    "DECIMAL": _DECIMAL,
    "_EXP": _EXPONENT,
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": f"[+-]?{_FLOAT}",
    "NUMBER": f"(?:{_FLOAT}|{_WHOLE})",
    "SIGNED_NUMBER": f"[+-]?(?:{_FLOAT}|{_WHOLE})",
    "_STRING_INNER": r"[^\n]*",
    "_STRING_ESC_INNER": r"(?:[^\\\n]|\\[^\n])*",
    "ESCAPED_STRING": r'"(?:[^"\\\n]|\\[^\n])*"',
    "LCASE_LETTER": "[a-z]",
    "UCASE_LETTER": "[A-Z]",
    "LETTER": "[a-zA-Z]",
    "WORD": "[a-zA-Z]+",
    "CNAME": "[a-zA-Z_][a-zA-Z0-9_]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(?:\r?\n)+",
    "SH_COMMENT": r"\#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*(?:[^*]|\*+[^*/])*\*+/",
    "SQL_COMMENT": r"--[^\n]*",
}
