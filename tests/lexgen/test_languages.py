"""Specifications of languages in use: their tokens, and that both forms find the same ones."""

from __future__ import annotations

import random

import pytest

from hagane.lexgen import Lexer, diagnose
from hagane.lexgen.lexing.lex_file import parse_lex_file
from tests.lexgen.test_lexer import needs_compiler

INI = (
    r"""
%x LINE
%%
^[ \t]*[;#].*            COMMENT
^\[[^\]\n]+\]            SECTION
^[^=:;#\[\n]+/[=:]       KEY
[=:]                     begin(LINE); return SEPARATOR
\n                       skip
<LINE>{
  [^\n]+                 VALUE
  \n[ \t]+/[^ \t\n]      CONTINUED
  \n                     begin(INITIAL)
}
""",
    "; top\n[core]\nname = a = b\npath: x\n  y\n\n#end\n[é]\nk=",
    "COMMENT SECTION KEY SEPARATOR VALUE KEY SEPARATOR VALUE CONTINUED VALUE COMMENT SECTION KEY "
    "SEPARATOR",
)
CSV = (
    r"""
%x QUOTED
%%
\"                push(QUOTED); return OPEN
[^",\r\n]+        FIELD
,                 COMMA
\r?\n             ROW
<QUOTED>{
  [^"]+           TEXT
  \"\"            QUOTE
  \"              pop; return CLOSE
  <<EOF>>         UNTERMINATED
}
""",
    'a,"b ""x"", é\ny",\r\n,c\n"z',
    "FIELD COMMA OPEN TEXT QUOTE TEXT QUOTE TEXT CLOSE COMMA ROW COMMA FIELD ROW OPEN TEXT "
    "UNTERMINATED",
)
TOML = (
    r"""
digits   [0-9](_?[0-9])*
date     [0-9]{4}-[0-9]{2}-[0-9]{2}
time     [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?
escape   \\([btnfre"\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})
%%
"#"[^\n]*                                                        COMMENT
\"\"\"(\"{0,2}([^"\\]|{escape}|\\[ \t]*\n))*\"{3,5}              LONG
'''('{0,2}[^'])*'{3,5}                                           LONG
\"([^"\\\n]|{escape})*\"|'[^'\n]*'                               STRING
{date}([Tt ]{time}([Zz]|[-+][0-9]{2}:[0-9]{2})?)?|{time}         DATE
[-+]?(0|[1-9](_?[0-9])*)|0x[0-9A-Fa-f_]+|0o[0-7_]+|0b[01_]+      INTEGER
[-+]?{digits}(\.{digits})?([eE][-+]?{digits})?|[-+]?(inf|nan)    FLOAT
"true"|"false"                                                   BOOLEAN
[A-Za-z0-9_-]+                                                   BARE
"[["|"]]"|[\[\]{}=.,]                                            SIGN
\r?\n                                                            NEWLINE
[ \t]+                                                           skip
""",
    "[[a.\"b c\"]] # x\nk-1 = [1_000, -2.5e3, 'q', 1979-05-27T07:32:00Z, true]\n"
    's = """a\n"" b"""\nt = 07:32:00\n',
    "SIGN BARE SIGN STRING SIGN COMMENT NEWLINE BARE SIGN SIGN INTEGER SIGN FLOAT SIGN STRING SIGN "
    "DATE SIGN BOOLEAN SIGN NEWLINE BARE SIGN LONG NEWLINE BARE SIGN DATE NEWLINE",
)
SQL = (
    r"""
%option case-insensitive
%x COMMENT
%%
"select"|"from"|"where"|"and"|"or"|"not"|"in"|"as"|"is"|"null"|"join"|"on"   KEYWORD
x'([0-9a-f]{2})*'              BLOB
[a-z_][a-z0-9_$]*              NAME
\"([^"]|\"\")+\"|`[^`]+`       NAME
'([^']|'')*'                   STRING
[0-9]+                         INTEGER
[0-9]*\.[0-9]+(e[-+]?[0-9]+)?|[0-9]+\.?e[-+]?[0-9]+   REAL
[?]|[:@$][a-z0-9_]+            PARAMETER
"<="|">="|"<>"|"!="|"||"|[-+*/%<>=(),.;]   SIGN
"--".*                         COMMENT
"/*"                           push(COMMENT)
[ \t\r\n]+                     skip
<COMMENT>{
  "/*"                         push(COMMENT)
  "*/"                         pop
  [^*/]+|"*"|"/"               skip
  <<EOF>>                      UNTERMINATED
}
""",
    "SELECT \"a\"\"b\", x'0aFF', 'it''s' FROM t1 -- all\nWHERE /* a /* b */ */ n >= :low AND "
    "r <> 1.5e-3 || ?; /*",
    "KEYWORD NAME SIGN BLOB SIGN STRING KEYWORD NAME COMMENT KEYWORD NAME SIGN PARAMETER KEYWORD "
    "NAME SIGN REAL SIGN PARAMETER SIGN UNTERMINATED",
)
LUA = (
    r"""
%x LONG0 LONG1
%%
"and"|"break"|"do"|"else"|"elseif"|"end"|"false"|"for"|"function"|"if"|"in"     KEYWORD
"local"|"nil"|"not"|"or"|"repeat"|"return"|"then"|"true"|"until"|"while"        KEYWORD
[A-Za-z_][A-Za-z0-9_]*                                                 NAME
0[xX][0-9a-fA-F]+|[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?                  NUMBER
[0-9]+/"..".*[0-9]*                                                    NUMBER
\"([^"\\\n]|\\(.|\n))*\"|'([^'\\\n]|\\(.|\n))*'                        STRING
"--"?"[["                                                              push(LONG0)
"--"?"[=["                                                             push(LONG1)
"--"([^\[\n].*|"["([^\[=\n].*)?)?                                      COMMENT
"..."|".."|"=="|"~="|"<="|">="|[-+*/%^#<>=(){}\[\];:,.]                SIGN
[ \t\r\n]+                                                             skip
<LONG0>{
  [^\]]+|"]"                                                           skip
  "]]"                                                                 pop; return LONG
}
<LONG1>{
  [^\]]+|"]"                                                           skip
  "]=]"                                                                pop; return LONG
}
""",
    "local s = [[a]b]] .. 'x\\'y' -- note\n--[=[ ]] ]=] for i=1..10 do t[i] = 0xFF ~= 3.5e2 end --",
    "KEYWORD NAME SIGN LONG SIGN STRING COMMENT LONG KEYWORD NAME SIGN NUMBER SIGN NUMBER KEYWORD "
    "NAME SIGN NAME SIGN SIGN NUMBER SIGN NUMBER KEYWORD COMMENT",
)
HTML = (
    r"""
%x TAG RAW
name  [A-Za-z][A-Za-z0-9:-]*
%%
"<!--"([^-]|-[^-]|--+[^->])*--+">"     COMMENT
"<!"[^>]*">"                           DOCTYPE
"<"(?i:script)                         push(RAW); return OPEN
"<"{name}|"</"{name}                  push(TAG); return OPEN
&({name}|#[0-9]+|#x[0-9a-fA-F]+);      ENTITY
[^<&]+                                 TEXT
[<&]                                   SIGN
<TAG,RAW>{
  {name}                               ATTRIBUTE
  "="                                  EQUALS
  \"[^"]*\"|'[^']*'|[^ \t\n"'=<>`/A-Za-z][^ \t\n"'=<>`]*   VALUE
  [ \t\n]+                             skip
}
<TAG>"/"?">"                           pop; return CLOSE
<RAW>">"([^<]|"<"+[^/<])*"<"*/"</"     pop; return SCRIPT
""",
    '<!DOCTYPE html><!-- a -- b --><p class="x" id=3>a &amp; b<br/></p>\n'
    "<script>if (a<b) c();</script>é & <",
    "DOCTYPE COMMENT OPEN ATTRIBUTE EQUALS VALUE ATTRIBUTE EQUALS VALUE CLOSE TEXT ENTITY TEXT "
    "OPEN CLOSE OPEN CLOSE TEXT OPEN SCRIPT OPEN CLOSE TEXT SIGN TEXT SIGN",
)
LOG = (
    r"""
octet  25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9]
%%
^({octet}\.){3}({octet})|^[0-9a-f:]*:[0-9a-f:]*   ADDRESS
\[[0-9]{2}\/[A-Z][a-z]{2}\/[0-9]{4}(:[0-9]{2}){3}\ [-+][0-9]{4}\]   TIME
\"[A-Z]+\ [^" ]+\ HTTP\/[0-9.]+\"                 REQUEST
\"([^"\\]|\\.)*\"                                 STRING
[0-9]+/[ \t\n]                                    NUMBER
[^ \t\n"]+                                        WORD
[ \t]+                                            skip
\n                                                END
""",
    '127.0.0.1 - é [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326 "x \\"y\\"" "\n'
    "::1 - 12a\n256.0.0.1",
    "ADDRESS WORD WORD TIME REQUEST NUMBER NUMBER STRING ERROR END ADDRESS WORD WORD END WORD",
)
SHELL = (
    r"""
%x HERE DOUBLE
%%
"if"|"then"|"fi"|"for"|"do"|"done"|"while"|"case"|"esac"   KEYWORD
[A-Za-z_][A-Za-z0-9_]*/=       NAME
"<<"[A-Z]+\n                   push(HERE); return HERE
\"                             push(DOUBLE); return OPEN
'[^']*'                        STRING
"$"([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?!$]|\{[^}]*\})      VARIABLE
(^|[ \t])"#".*                 COMMENT
"&&"|"||"|";;"|">>"|"<<"|[|&;()<>=!\n]   SIGN
([^ \t\n"'$|&;()<>=\\#]|\\(.|\n))+   WORD
[ \t]+|\\\n                    skip
<HERE>{
  ^EOF\n                       pop; return END
  .*\n                         LINE
}
<DOUBLE>{
  ([^"\\$]|\\(.|\n))+          TEXT
  "$"[A-Za-z_][A-Za-z0-9_]*    VARIABLE
  "$"                          TEXT
  \"                           pop; return CLOSE
}
""",
    "a=1 # one\nif [ \"$a b$\" ]; then cat <<EOF\n$x\nEOF\nfi && x\\ y 'q' ${z} || :",
    "NAME SIGN WORD COMMENT SIGN KEYWORD WORD OPEN VARIABLE TEXT TEXT CLOSE WORD SIGN KEYWORD WORD "
    "HERE LINE END KEYWORD SIGN WORD STRING VARIABLE SIGN WORD",
)
MARKDOWN = (
    r"""
%%
^#{1,6}[ \t]+                 HEADING
^```.*\n(([^`\n]|`{1,2}[^`\n]).*\n|\n)*```$   CODE
^[ \t]*[-*+][ \t]+            ITEM
^[ \t]*[0-9]+[.)][ \t]+       ITEM
^>[ \t]?                      QUOTE
"**"|"__"                     STRONG
[*_]                          EMPHASIS
`[^`\n]+`                     CODE
!?\[[^\]\n]*\]/\([^)\n]*\)    LINK
\([^)\n]*\)                   TARGET
\n$|\n                        LINE
\\.                           ESCAPE
[^-+*_`!\[(\n\\#>0-9 \t][^*_`!\[(\n\\]*|[ \t]+   TEXT
""",
    "# Title\n- a **b** `c`\n1. [x](y) \\*\n> q _é_\n```py\nx`y\n\n```\nend !",
    "HEADING TEXT LINE ITEM TEXT STRONG TEXT STRONG TEXT CODE LINE ITEM LINK TARGET TEXT ESCAPE "
    "LINE QUOTE TEXT EMPHASIS TEXT EMPHASIS LINE CODE LINE TEXT ERROR",
)
TEX = (
    r"""
%x MATH VERBATIM
%%
"\\begin{verbatim}"          push(VERBATIM); return BEGIN
\\([A-Za-z@]+\*?|[^A-Za-z@\n])   COMMAND
"%".*(\n[ \t]*)?             COMMENT
"$$"|"$"                     push(MATH); return MATH
[{}\[\]]                     BRACE
\n([ \t]*\n)+                PARAGRAPH
[&~^_#]                      SPECIAL
[^\\%${}\[\]&~^_#\n]+|\n     TEXT
<MATH>{
  "$$"|"$"                   pop; return MATH
  \\([A-Za-z]+|.)            COMMAND
  [0-9]+(\.[0-9]+)?          NUMBER
  \p{L}                      SYMBOL
  [^\\$0-9 \n]               SYMBOL
  [ \n]+                     skip
  <<EOF>>                    UNTERMINATED
}
<VERBATIM>{
  "\\end{verbatim}"          pop; return END
  [^\\]+|\\                  CODE
}
""",
    "\\section*{A} % note\n  x~\\& $a_1 = \\frac\u03b1{2.5}$\n\n"
    "\\begin{verbatim}\\x\\end{verbatim}$$",
    "COMMAND BRACE TEXT BRACE TEXT COMMENT TEXT SPECIAL COMMAND TEXT MATH SYMBOL SYMBOL NUMBER "
    "SYMBOL COMMAND SYMBOL SYMBOL NUMBER SYMBOL MATH PARAGRAPH BEGIN CODE CODE END MATH "
    "UNTERMINATED",
)
LANGUAGES = {
    "ini": INI, "csv": CSV, "toml": TOML, "sql": SQL, "lua": LUA, "html": HTML, "log": LOG,
    "shell": SHELL, "markdown": MARKDOWN, "tex": TEX,
}  # fmt: skip


def lexer_of(name: str) -> Lexer:
    return Lexer(parse_lex_file(LANGUAGES[name][0].lstrip("\n"), f"{name}.l"))


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_language_has_the_tokens_that_it_should(name: str) -> None:
    lexer = lexer_of(name)
    _, text, kinds = LANGUAGES[name]
    tokens = list(lexer.tokenize(text))
    assert [token.kind for token in tokens] == kinds.split(), [(t.kind, t.text) for t in tokens]
    assert [finding.message for finding in diagnose(lexer.compiled)] == []


def changed(text: str, rng: random.Random) -> str:
    """Return the text with parts dropped, doubled and moved, so that errors come up too."""
    for _ in range(rng.randrange(6)):
        low, high = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        at = rng.randrange(len(text) + 1)
        text = rng.choice(
            [text[:low] + text[high:], text[:at] + text[low:high] + text[at:], text[:at] + "\0é"]
        )[:400]
    return text


@needs_compiler
@pytest.mark.parametrize("name", LANGUAGES)
def test_both_forms_find_the_same_tokens_of_a_language(name: str) -> None:
    lexer = lexer_of(name)
    rng = random.Random(3)
    for _ in range(200):
        text = changed(LANGUAGES[name][1], rng)
        tokens = list(lexer.tokenize(text))
        cut = rng.randrange(len(text) + 1)
        assert list(lexer.tokenize([text[:cut], text[cut:]])) == tokens, text
        arrays = lexer.tokenize_arrays(text.encode())
        found = [
            (lexer.kinds[k], s, e) for k, s, e in zip(*(a.tolist() for a in arrays), strict=True)
        ]
        assert found == [(t.kind, t.byte_start, t.byte_end) for t in tokens], text
