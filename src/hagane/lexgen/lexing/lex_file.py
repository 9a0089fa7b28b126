"""``.l`` files in the manner of flex: definitions, ``%%``, rules, ``%%``, code.

The code is Python. An action is one of

- a name (``NUMBER``), ``return NUMBER``, ``return "NUMBER"``: the kind of the token; where the
  header above defines ``NUMBER``, ``return NUMBER`` returns its value;
- ``skip``, ``;`` or nothing: no token;
- ``begin(X)``, ``push(X)``, ``pop``, also in flex's spelling (``BEGIN(X)``, ``yy_push_state(X)``,
  ``yy_pop_state()``); several are separated by ``;``;
- ``|``: the action of the next rule;
- anything else in braces: Python, which sees ``lexer`` and ``text`` and returns the kind or None.
"""

from __future__ import annotations

import ast
import builtins
import dis
import re
import textwrap
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import NoReturn

from hagane.lexgen.errors import RegexSyntaxError, SpecificationError
from hagane.lexgen.expressions.characters import Flags
from hagane.lexgen.expressions.files import text_of
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.expressions.syntax import Pattern
from hagane.lexgen.lexing.specification import INITIAL, Action, Rule, Specification

_IGNORED_OPTIONS = re.compile(
    r"(no)?(yywrap|unput|input|stack|yylineno|warn|default|main|interactive|batch|8bit|7bit|utf8|"
    r"reentrant|bison-bridge|full|fast|unistd|never-interactive|always-interactive)(=.*)?$"
)
_STATEMENTS = (
    ("kind", re.compile(r"return\s*\(?\s*(?:Token(?:::|\.))?([\"']?)(\w+)\1\s*\)?$")),
    ("kind", re.compile(r"()(?!skip$|pop$)([A-Za-z_]\w*)$")),
    ("begin", re.compile(r"(?:begin|BEGIN|lexer\.begin)\s*(\(\s*[\"']?|\s)(\w+)[\"']?\s*\)?$")),
    ("push", re.compile(r"(?:push|yy_push_state|lexer\.push)\s*(\()\s*[\"']?(\w+)[\"']?\s*\)$")),
    ("pop", re.compile(r"()(pop|pop\s*\(\s*\)|yy_pop_state\s*\(\s*\)|lexer\.pop\(\))$")),
    ("skip", re.compile(r"()(skip|)$")),
)


def read_lex_file(path: Path) -> Specification:
    """Read a ``.l`` file.

    Raises:
        NoSuchFile: There is no such file.
        SpecificationError: It is malformed; the message starts with file, line and column.
    """
    return parse_lex_file(text_of(path, "specification", SpecificationError), str(path))


def parse_lex_file(text: str, name: str = "<lexer>") -> Specification:
    """Read the text of a ``.l`` file; ``name`` stands in messages.

    Raises:
        SpecificationError: It is malformed; the message starts with file, line and column.
    """
    return _Reader(text, name).read()


@dataclass(slots=True)
class _Reader:
    text: str
    name: str
    conditions: dict[str, bool] = field(default_factory=lambda: {INITIAL: False})
    definitions: dict[str, str] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    at_end: dict[str, Action] = field(default_factory=dict)
    header: list[str] = field(default_factory=list)
    header_lines: list[int] = field(default_factory=list)  # where each line of the header stands
    codes: list[tuple[str, str]] = field(default_factory=list)  # place and code of actions
    ignore_case: bool = False
    waiting: int = 0  # rules at the end whose action is that of the next one
    lines: list[str] = field(default_factory=list)
    line: int = 0
    scope: list[tuple[str, ...]] = field(default_factory=list)

    def read(self) -> Specification:
        self.lines = self.text.split("\n")
        self._read_definitions()
        self._read_rules()
        footer = "\n".join(self.lines[self.line :])
        if self.waiting:
            self._fail("expected a rule after an action '|', got the end")
        if not self.rules:
            self._fail("expected at least one rule between the '%%' lines, got none")
        header = "\n".join(self.header)
        _check_python(header, "the code of the header", self._in_header)
        last = self.line
        _check_python(
            footer, "the code after the second '%%'", lambda line: f"{self.name}:{line + last}"
        )
        self._check_names(header, footer)
        return Specification(
            tuple(self.rules), self.conditions, self.at_end, header, footer, self.name
        )

    # The first section.

    def _read_definitions(self) -> None:
        while True:
            if self.line >= len(self.lines):
                self._fail("expected a line '%%' before the rules, got the end of the file")
            line = self.lines[self.line]
            self.line += 1
            if line.startswith("%%"):
                return
            self._definition(line)

    def _definition(self, line: str) -> None:
        bare, first = line.strip(), self.line + 1
        if not bare or bare.startswith("//"):
            return
        if bare.startswith("/*"):
            self._skip_comment(line)
        elif bare == "%{":
            self._add_header(self._code_block(), first)
        elif line[0].isspace():
            self._add_header(bare, first - 1)
        elif bare.startswith("%"):
            self._directive(bare)
        else:
            name, _, value = bare.partition(" ") if " " in bare else bare.partition("\t")
            if not name.replace("-", "_").isidentifier() or not value.strip():
                self._fail(f"expected 'NAME expression', a %-line or '%%', got '{bare}'", -1)
            if self.definitions.setdefault(name.replace("-", "_"), value.strip()) != value.strip():
                self._fail(f"the definition '{name}' stands twice; drop or rename one", -1)

    def _directive(self, bare: str) -> None:
        word, *names = bare.split()
        if word in ("%s", "%x"):
            if not names:
                self._fail(f"expected the names of start conditions after {word}", -1)
            for name in names:
                if not name.isidentifier():
                    self._fail(f"expected the name of a start condition, got '{name}'", -1)
                self.conditions[name] = word == "%x"
        elif word == "%option":
            for name in names:
                if name in ("case-insensitive", "caseless"):
                    self.ignore_case = True
                elif not _IGNORED_OPTIONS.match(name):
                    self._fail(f"there is no option '{name}'; known is: case-insensitive", -1)
        else:
            self._fail(f"expected %s, %x, %option, %{{ or %%, got '{word}'", -1)

    def _code_block(self) -> str:  # noqa: RET503
        start = self.line
        while self.line < len(self.lines):
            self.line += 1
            if self.lines[self.line - 1].strip() == "%}":
                return textwrap.dedent("\n".join(self.lines[start : self.line - 1]))
        self.line = start
        self._fail("expected '%}' to close the code, got the end of the file", -1)

    def _skip_comment(self, line: str) -> None:
        start = self.line
        while "*/" not in line:
            if self.line >= len(self.lines):
                self.line = start
                self._fail("expected '*/' to close the comment, got the end of the file", -1)
            line = self.lines[self.line]
            self.line += 1

    # The second section.

    def _read_rules(self) -> None:
        while self.line < len(self.lines):
            line = self.lines[self.line]
            self.line += 1
            bare = line.strip()
            if line.startswith("%%"):
                break
            if not bare or bare.startswith("//"):
                continue
            if bare.startswith("/*"):
                self._skip_comment(line)
            elif bare == "%{":
                first = self.line + 1
                self._add_header(self._code_block(), first)
            elif bare == "}" and self.scope:
                self.scope.pop()
            else:
                self._rule(line)
        if self.scope:
            self._fail("expected '}' to close the rules of a start condition, got the end")

    def _rule(self, line: str) -> None:
        column = len(line) - len(line.lstrip())
        at = column
        active = self.scope[-1] if self.scope else ()
        opening = re.compile(r"<([\w*][\w*,\s]*)>").match(line, at)
        if opening and not line.startswith("<<EOF>>", at):
            active = tuple(name.strip() for name in opening[1].split(","))
            for name in active:
                if name != "*" and name not in self.conditions:
                    known = ", ".join(self.conditions)
                    self._fail(
                        f"there is no start condition '{name}'; declared are: {known} (declare one "
                        "with %s or %x; quote the sign '<' itself)",
                        -1,
                        at,
                    )
            at = opening.end()
            if line[at:].strip() == "{":
                self.scope.append(active)
                return
        if line.startswith("<<EOF>>", at):
            action = self._action(line, at + len("<<EOF>>"))
            for name in active if active and active != ("*",) else tuple(self.conditions):
                self.at_end.setdefault(name, action)
            return
        if line.startswith("<<", at):
            self._fail("expected <<EOF>>, got '<<'; quote the signs themselves", -1, at)
        start = at
        at = self._pattern_end(line, at)
        where = f"{self.name}:{self.line}:{start + 1}"
        pattern = self._pattern(line[start:at], start)
        if line[at:].strip() == "|":
            self.rules.append(Rule(pattern, Action(), active, where))
            self.waiting += 1
            return
        action = self._action(line, at)
        for index in range(len(self.rules) - self.waiting, len(self.rules)):
            self.rules[index] = replace(self.rules[index], action=action)
        self.waiting = 0
        self.rules.append(Rule(pattern, action, active, where))

    def _pattern(self, source: str, start: int) -> Pattern:
        flags = Flags(multi_line=True, ignore_case=self.ignore_case)
        try:
            return parse(source, "flex", flags, self.definitions)
        except RegexSyntaxError as error:
            column = start + error.column
            raise SpecificationError(
                f"{self.name}:{self.line}:{column}: in the expression '{source}': {error.problem}"
            ) from None

    def _pattern_end(self, line: str, at: int) -> int:
        """Return where the expression ends: the first space outside quotes and classes."""
        start, quoted, in_class = at, False, False
        while at < len(line):
            char = line[at]
            if char == "\\":
                at += 2
                continue
            if quoted:
                quoted = char != '"'
            elif in_class:
                if line.startswith("[:", at) and ":]" in line[at:]:
                    at = line.index(":]", at) + 2
                    continue
                in_class = char != "]"
            elif char == '"':
                quoted = True
            elif char == "[":
                in_class = True
                at += 2 if line.startswith("[^", at) else 1
                if line.startswith("]", at):
                    at += 1
                continue
            elif char.isspace() and not line.startswith("(?x", start):
                break
            at += 1
        return min(at, len(line))

    def _action(self, line: str, at: int) -> Action:
        rest = line[at:].strip()
        place = f"{self.name}:{self.line}:{at + 1}"
        braced = rest.startswith("{")
        if braced:
            rest = self._braced(line, line.index("{", at))
        else:
            rest = re.sub(r"\s*(/\*.*?\*/|//.*|#.*)\s*$", "", rest)
        simple = _simple_action(rest, _defined("\n".join(self.header)))
        if simple is not None:
            for name in (simple.begin, simple.push):
                if name and name not in self.conditions:
                    known = ", ".join(self.conditions)
                    raise SpecificationError(
                        f"{place}: there is no start condition '{name}'; declared are: {known} "
                        "(declare one with %s or %x)"
                    )
            return simple
        code = textwrap.dedent(rest).strip("\n")
        what = "the action"
        if not braced:
            what = "the action (a kind, skip, begin(X), push(X), pop; a space ends the expression)"
        tree = _check_python(_function(code), what, lambda _: place)
        if all(
            isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in tree
        ):
            raise SpecificationError(
                f"{place}: the action '{code}' does nothing; for a kind write NUMBER or "
                "return NUMBER, for no token skip"
            )
        self.codes.append((place, code))
        return Action(code=code)

    def _braced(self, line: str, at: int) -> str:  # noqa: RET503
        """Return the text between a brace and its partner, maybe lines below."""
        first = self.line
        rest = "\n".join([line[at:], *self.lines[self.line :]])
        depth = 0
        index = 0
        quote = ""
        while index < len(rest):
            char = rest[index]
            if quote:
                if char == "\\":
                    index += 1
                elif char == quote or char == "\n":
                    quote = ""
            elif char in "\"'":
                quote = char
            elif char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
                if not depth:
                    self.line = first + rest.count("\n", 0, index)
                    inner = rest[1:index]
                    return inner.strip() if "\n" not in inner else inner
            index += 1
        self._fail("expected '}' to close the action, got the end of the file", -1, at)

    def _add_header(self, code: str, first: int) -> None:
        self.header.append(code)
        self.header_lines += range(first, first + code.count("\n") + 1)

    def _in_header(self, line: int) -> str:
        return f"{self.name}:{self.header_lines[min(line, len(self.header_lines)) - 1]}"

    def _check_names(self, header: str, footer: str) -> None:
        """Refuse actions with names that nothing defines: they would fail on some text later."""
        if re.search(r"import\s*\*", header + footer):
            return
        used = [(place, code, *_global_names(code)) for place, code in self.codes]
        known = _defined(header) | _defined(footer) | set(dir(builtins))
        known = known.union(*(stored for *_, stored in used))
        for place, code, loaded, _ in used:
            for name in loaded:
                if name in known:
                    continue
                remedy = "define it in the code of the header"
                if re.search(rf"\breturn\s+{name}\b", code):
                    remedy += f', or for a kind write return "{name}"'
                raise SpecificationError(
                    f"{place}: the action uses '{name}', which is not defined; actions are Python "
                    f"and see lexer and text; {remedy}"
                )

    def _fail(self, problem: str, offset: int = 0, column: int = 0) -> NoReturn:
        line = min(self.line + offset + 1, len(self.lines))
        raise SpecificationError(f"{self.name}:{line}:{column + 1}: {problem}")


def _function(code: str) -> str:
    return "def action(lexer, text):\n" + textwrap.indent(code, "    ")


def _check_python(code: str, what: str, where: Callable[[int], str]) -> list[ast.stmt]:
    """Return the statements of code, or of the only function in it."""
    try:
        body = ast.parse(code).body
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise SpecificationError(
            f"{where(error.lineno or 1)}: {what} is no Python ({error.msg}): {line}; code is "
            "Python here, not C"
        ) from None
    return body[0].body if body and isinstance(body[0], ast.FunctionDef) else body


def _global_names(code: str) -> tuple[list[str], set[str]]:
    """Return the names of the module that an action uses, and the names that it defines."""
    loaded: dict[str, None] = {}
    stored: set[str] = set()
    waiting = [compile(_function(code), "<action>", "exec", dont_inherit=True)]
    for each in waiting:  # grows while it runs
        waiting += [const for const in each.co_consts if isinstance(const, CodeType)]
        for instruction in dis.get_instructions(each):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                loaded[instruction.argval] = None
            elif instruction.opname == "STORE_GLOBAL":
                stored.add(instruction.argval)
    return list(loaded), stored


def _defined(header: str) -> set[str]:
    """Return the names that the code of the header binds in the module."""
    try:
        code = compile(header, "<header>", "exec", dont_inherit=True)
    except SyntaxError:  # reported with its place at the end
        return set()
    stored = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_NAME"}
    # A function may bind a name of the module too, by a 'global' statement.
    tree = ast.walk(ast.parse(header))
    return stored | {name for node in tree if isinstance(node, ast.Global) for name in node.names}


def _simple_action(text: str, defined: Set[str] = frozenset()) -> Action | None:
    """Return an action that is made of returns and moves only; None for other code.

    ``return NAME`` is code where the name is one of those ``defined``.
    """
    action = Action()
    for statement in re.split(r";|\n", text):
        statement = re.sub(r"/\*.*?\*/", "", statement).strip()
        for name, pattern in _STATEMENTS:
            match = pattern.match(statement)
            if match is None:
                continue
            value = match[2]
            if name in ("begin", "push") and value == "0":
                value = INITIAL
            if name == "kind":
                if value in ("text", "lexer", "pass", "continue", "break"):
                    return None  # Python code
                if value == "None":
                    continue
                returned = re.match(r"return\b\s*\(?\s*((\w+)(?:\.\w+)?)\s*\)?$", statement)
                if returned and returned[2] in defined:
                    action = replace(action, code=f"return {returned[1]}")
                else:
                    action = replace(action, kind=value)
            elif name == "begin":
                action = replace(action, begin=value)
            elif name == "push":
                action = replace(action, push=value)
            elif name == "pop":
                action = replace(action, pop=True)
            break
        else:
            return None
    return action
