"""Outputs under a schema or a grammar: valid by another validator, equal with and without C."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from hagane.errors import InvalidArgument, NoSuchFile
from hagane.lexgen import Grammar, TokenMask
from hagane.lexgen.expressions.characters import Flags
from hagane.lexgen.masks.grammars.lark_terminals import TERMINALS
from hagane.lexgen.masks.library import Library, grammar_library
from hagane.lexgen.masks.machines.pushdown import Machine, make_machine
from hagane.lexgen.masks.rules.parts import Call
from hagane.lexgen.masks.rules.rules import Module
from hagane.lexgen.masks.rules.units import Emitter
from hagane.lexgen.masks.schemas.writing import schema_rules
from hagane.lexgen.masks.texts import matching
from hagane.lexgen.masks.vocabularies.vocabulary import Vocabulary, joined
from tests.lexgen.test_token_mask import VOCABULARY

TREE = {
    "$ref": "#/$defs/tree",
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {
                "v": {"type": "integer", "maximum": 50},
                "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                "s": {"type": "string", "minLength": 2, "maxLength": 6},
            },
            "required": ["v"],
        }
    },
}
KIND = {"type": "object", "properties": {"k": {"const": "x"}}, "required": ["k"]}
SCHEMAS: list[Any] = [
    TREE,
    True,
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}},
     "additionalProperties": {"type": "string", "maxLength": 4}, "minProperties": 2,
     "maxProperties": 4},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
               {"properties": {"b": {"type": "number", "minimum": -1.5, "exclusiveMaximum": 2.25}},
                "required": ["b"]}]},
    {"oneOf": [KIND, {"type": "object", "required": ["k", "m"],
                      "properties": {"k": {"const": "y"}, "m": {"type": "boolean"}}}]},
    {"oneOf": [{"type": "integer", "maximum": 3}, {"type": "number", "minimum": 1}]},
    {"type": "string", "pattern": "^a+b", "maxLength": 7},
    {"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b$"}, {"not": {"pattern": "c"}}]},
    {"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 10},
    {"type": "integer", "multipleOf": 7, "minimum": -50},
    {"type": "object", "patternProperties": {"^x": {"type": "integer"}},
     "additionalProperties": {"type": "boolean"}, "properties": {"xa": {"maximum": 5}}},
    {"type": "object", "propertyNames": {"pattern": "^[ab]+$"},
     "additionalProperties": {"type": "null"}},
    {"not": {"type": ["string", "object", "array"]}},
    {"type": "object", "properties": {"k": {"enum": [1, 2]}, "z": {"type": "null"},
                                      "y": {"type": "null"}},
     "if": {"properties": {"k": {"const": 1}}, "required": ["k"]},
     "then": {"required": ["z"]}, "else": {"required": ["y"]}},
    {"type": "object", "dependentRequired": {"a": ["b"]},
     "properties": {"a": {"type": "null"}, "b": {"type": "null"}}},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}],
     "items": {"type": "boolean"}, "minItems": 3, "maxItems": 6},
    {"type": "array", "contains": {"type": "null"}, "items": {"type": ["null", "integer"]}},
    {"enum": [1, "a", None, {"a": [1, 2]}, [], True, 2.5]},
    {"anyOf": [{"type": "string", "nullable": True}, {"type": "null"}], "minLength": 3},
    *({"type": "string", "format": name} for name in
      ("date", "time", "date-time", "uuid", "email", "ipv4", "ipv6", "hostname", "duration")),
]  # fmt: skip


def sampled(index: TokenMask, generator: np.random.Generator) -> bytes | None:
    """Return an output of tokens at random, drawn to its end once it is long."""
    state, tokens = index.start, []
    for _ in range(2000):
        if state == index.done:
            return joined(tokens, index.vocabulary)
        allowed = index.mask(state).tokens()
        if len(tokens) > 30:
            if index.end is not None and index.mask(state)[index.end]:
                return joined(tokens, index.vocabulary)
            closing = [token for token in allowed if VOCABULARY[token] in ('"', "}", "]", ")", "b")]
            if closing and generator.random() < 0.8:
                allowed = np.array(closing)
        tokens.append(int(generator.choice(allowed)))
        state = index.advance(state, tokens[-1])
    return None


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:50])
def test_outputs_are_valid_by_another_validator(schema: Any) -> None:
    index = TokenMask(schema, VOCABULARY)
    validator = jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    generator = np.random.default_rng(1)
    found = [sampled(index, generator) for _ in range(40)]
    ended = [json.loads(output) for output in found if output is not None]
    assert len(ended) >= 35
    for value in ended:
        validator.validate(value)


def machine(schema: Any) -> Machine:
    vocabulary = Vocabulary.of([bytes([byte]) for byte in range(256)])
    return make_machine(schema_rules(schema).compile(), vocabulary)


def takes(found: Machine, text: str) -> bool:
    place = found.start(0)
    after = found.advance(place, text.encode()) if place >= 0 else -1
    return after >= 0 and found.ends(after)


@pytest.mark.parametrize("schema", SCHEMAS[:20], ids=lambda schema: json.dumps(schema)[:50])
def test_no_text_of_an_invalid_value_is_taken(schema: Any) -> None:
    found = machine(schema)
    validator = jsonschema.Draft202012Validator(schema)
    values = [
        None, True, 0, 1, 2, 3, 5, 7, 14, -3, 0.25, 0.3, 2.25, 11, "a", "ab", "aab", "cab", "x",
        [], [1], [None], [1, None], [1, None, True], [1, None, True, 3], {}, {"a": 1}, {"a": "b"},
        {"a": "x", "b": 2}, {"a": "x", "b": 2.25}, {"a": None}, {"a": None, "b": None}, {"k": "x"},
        {"k": "y"}, {"k": "y", "m": True}, {"k": 1, "y": None}, {"k": 1, "z": None}, {"xa": 6},
        {"xa": 4}, {"xb": 1.5}, {"v": 51}, {"v": 1, "kids": [{"v": 2}, {}]}, {"v": 1, "s": "a"},
        {"a": 1, "c": "long text"}, {"c": None}, {"k": 2, "y": None},
        {"v": 1, "kids": [{"v": 2}], "s": "abc"}, {"a": 1, "c": "text"},
    ]  # fmt: skip
    taken = 0
    for value in values:
        if takes(found, json.dumps(value)):
            taken += 1
            validator.validate(value)
    assert taken


@pytest.mark.parametrize(
    ("name", "valid", "invalid"),
    [
        (
            "regex",
            [r"^[a-z]+(\\.[0-9]{2})*$", "(a|(?:b)c)?", ""],
            ["(a", "a**", "[z-a]", "*a", "x{2,1}"],
        ),
        ("iri", ["http://例え.jp/パス?q=é#x"], ["例え", "http://a b"]),
        ("iri-reference", ["/パス", "http://é.example"], ["a b", "<é>"]),
        ("idn-email", ["实例@example.com"], ["实例", "a@"]),
        ("uri-template", ["http://x.org/{id}{?a,b*}", "{+path:3}"], ["{", "a}b", "{a b}"]),
    ],
)
def test_formats_take_valid_texts_alone(name: str, valid: list[str], invalid: list[str]) -> None:
    found = machine({"type": "string", "format": name})
    assert all(takes(found, f'"{text}"') for text in valid)
    assert not any(takes(found, f'"{text}"') for text in invalid)


# Tokens that leave several rules at once, and some that begin others then.
CROSSING = [
    '"]', '"}', '":', '": ', '", "', '"},{"', "1,", "0]", "12}", "1.5,", "}}", "]]", "]}}",
    '"}]}', "null]", "true}", "e,", ', "a": ', '{"a":', '[[', "[{", '[""', '"",', '{}', "[]", "[],",
    'a"', 'b", "', 'x":1', '"a":"', '"k": "x"}', "-1", "0.25", ".5}", "\\n\"", "\\u", "1e5,",
]  # fmt: skip


def same_masks(pattern: Any, walks: int, steps: int, seed: int) -> int:
    """Compare masks with those that try every token, along outputs at random; return how many."""
    vocabulary = [*VOCABULARY[:95], *CROSSING, "</s>"]
    native = TokenMask(pattern, vocabulary)
    plain = TokenMask(pattern, vocabulary, native=False)
    generator = np.random.default_rng(seed)
    seen = 0
    for _ in range(walks):
        state, other = native.start, plain.start
        for _ in range(steps):
            mask = native.mask(state)
            assert (mask.words == plain.mask(other).words).all()
            seen += 1
            allowed = mask.tokens()
            wide = allowed[allowed >= 95]  # so that most steps leave rules
            chosen = wide if len(wide) and generator.random() < 0.7 else allowed
            token = int(generator.choice(chosen))
            state, other = native.advance(state, token), plain.advance(other, token)
            assert native.accepts(state) == plain.accepts(other)
            if state == native.done:
                break
    return seen


@pytest.mark.parametrize(
    "pattern",
    [True, TREE, SCHEMAS[3], SCHEMAS[18], Grammar('root ::= "[" root? ("," [0-9]+)* "]"')],
    ids=["any", "tree", "members", "values", "grammar"],
)
def test_c_and_python_allow_the_same_tokens(pattern: Any) -> None:
    assert same_masks(pattern, walks=4, steps=12, seed=2) > 12


@pytest.mark.long
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:50])
def test_c_and_python_allow_the_same_tokens_of_every_schema(schema: Any) -> None:
    assert same_masks(schema, walks=30, steps=40, seed=3) > 30


def test_schemas_share_what_is_known_of_their_states() -> None:
    vocabulary = Vocabulary.of([*VOCABULARY[:95], *CROSSING, "</s>"])
    first, second = (
        schema_rules({"properties": {name: {"type": "string"}}}).compile() for name in "ab"
    )
    shared = [set(each.shared[each.shared >= 0].tolist()) for each in (first, second)]
    assert shared[0] == shared[1]
    assert len(shared[0]) > len(first.accepts) / 2
    # In another place of another schema, the same mask.
    masks = []
    for schema in ({"type": "string"}, {"type": "object", "properties": {"a": {"type": "string"}}}):
        index = TokenMask(schema, vocabulary)
        state = index.start
        for byte in b'"x' if schema["type"] == "string" else b'{"a":"x':
            state = index.advance(state, vocabulary.tokens.index(bytes([byte])))
        masks.append(index.mask(state))
    closing = [n for n, token in enumerate(vocabulary.tokens) if token and b'"' in token]
    inner = [n for n in range(95) if n not in closing]
    assert (masks[0].to_bool()[inner] == masks[1].to_bool()[inner]).all()


def test_masks_are_what_trying_every_token_says() -> None:
    schema = {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2}
    index = TokenMask(schema, VOCABULARY)
    found = machine(schema)
    generator = np.random.default_rng(3)
    for _ in range(10):
        state, text = index.start, b""
        while state != index.done:
            allowed = {
                number
                for number, token in enumerate(index.vocabulary.tokens)
                if token and found.advance(found.start(0), text + token) >= 0
            }
            if found.ends(found.advance(found.start(0), text)):
                allowed.add(index.end or 0)
            assert set(index.mask(state).tokens().tolist()) == allowed
            token = int(generator.choice(sorted(allowed)))
            state = index.advance(state, token)
            text += index.vocabulary.tokens[token] or b""


# A member, items and a branch that no value has, some of them behind rules that call each other.
DEAD: list[Any] = [
    {"properties": {"a": {"type": "string", "enum": [1]}, "b": {"type": "null"}}},
    {"properties": {"a": {"items": False, "type": "array"}, "b": {"maxItems": 2, "items": {
        "type": "object", "properties": {"c": {"not": {}}}, "required": ["c"]}}}},
    {"$ref": "#/$defs/endless", "$defs": {"endless": {"anyOf": [{"type": "integer"}, {
        "type": "object", "properties": {"a": {"$ref": "#/$defs/deep"}}, "required": ["a"]}]},
        "deep": {"type": "object", "properties": {"a": {"$ref": "#/$defs/deep"}},
                 "required": ["a"]}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", DEAD, ids=("member", "items", "recursion"))
def test_parts_that_match_nothing_are_left_out_in_c(
    schema: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert same_masks(schema, 6, 12, 3)

    def refuse(*_: Any) -> None:
        raise AssertionError("made in Python")

    monkeypatch.setattr("hagane.lexgen.masks.rules.rules.compile_units", refuse)
    compiled = schema_rules(schema).compile(native=True)
    assert (compiled.starts >= 0).any()


def test_masks_without_the_headers_of_python_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = TokenMask(TREE, VOCABULARY)
    functions = Library(grammar_library().functions, None)
    monkeypatch.setattr("hagane.lexgen.masks.machines.compiled.grammar_library", lambda: functions)
    plain = TokenMask(TREE, VOCABULARY)
    state = other = whole.start
    for char in '{"v": 12, "kids": [{"v':
        assert (whole.mask(state).words == plain.mask(other).words).all()
        token = VOCABULARY.index(char)
        state, other = whole.advance(state, token), plain.advance(other, token)
    for wrong in (-1, 2**31, 2**40):
        for mask in (whole, plain):
            with pytest.raises(InvalidArgument, match="is not allowed here"):
                mask.advance(mask.start, wrong)
            with pytest.raises(InvalidArgument, match=f"there is no state {2**40 + wrong}"):
                mask.mask(2**40 + wrong)


def test_counts_are_counted_and_not_copied() -> None:
    automata = schema_rules({"type": "string", "minLength": 3, "maxLength": 2000}).compile()
    assert len(automata.accepts) < 40
    found = machine({"type": "string", "minLength": 3, "maxLength": 2000})
    for size, expected in ((2, False), (3, True), (2000, True), (2001, False)):
        assert takes(found, json.dumps("é" * size, ensure_ascii=False)) == expected


@pytest.mark.parametrize(
    ("bounds", "whole"),
    [
        ({"minimum": 0, "maximum": 0}, True),
        ({"minimum": -3, "maximum": 12}, True),
        ({"minimum": 7, "exclusiveMaximum": 103}, True),
        ({"exclusiveMaximum": -5}, True),
        ({"minimum": 99.5}, True),
        ({"minimum": -12.25, "maximum": 9.875}, False),
        ({"exclusiveMinimum": 0.05, "maximum": 100}, False),
        ({"minimum": 1, "exclusiveMinimum": True}, False),
    ],
)
def test_bounds_of_numbers_are_exact(bounds: dict[str, float], whole: bool) -> None:
    found = machine({"type": "integer" if whole else "number", **bounds})
    low = bounds.get("minimum", bounds.get("exclusiveMinimum", -1e9))
    high = bounds.get("maximum", bounds.get("exclusiveMaximum", 1e9))
    for step in range(-1300, 1300):
        value = step if whole else step / 8
        above = value >= low if bounds.get("exclusiveMinimum") in (None, False) else value > low
        below = value <= high if "exclusiveMaximum" not in bounds else value < high
        assert takes(found, f"{value:g}") == (above and below), value


GBNF = r"""
# A list of calls.
root  ::= call ("," ws call)*
call  ::= name "(" (
            arg ("," ws arg)*
          )? ")"
name  ::= [a-z] [a-z0-9_]{0,7}
arg   ::= call | [0-9]+ | "\"" [^"\\]* "\""
ws    ::= | " "
"""
LARK = """
start: sum
?sum: product | sum "+" product -> add | sum "-" product
?product: atom | product "*" atom
?atom: NUMBER | "-" atom | "(" sum ")"
NUMBER: /[1-9][0-9]*/ | "0"
%ignore " "
"""


def test_outputs_of_a_grammar_in_gbnf_match_it() -> None:
    index = TokenMask(Grammar(GBNF), VOCABULARY)
    generator = np.random.default_rng(4)
    found = {sampled(index, generator) for _ in range(60)} - {None}
    assert len(found) > 40
    for output in found:
        text = re.sub(r'"[^"\\]*"', "0", (output or b"").decode())
        while (shorter := re.sub(r"[a-z][a-z0-9_]{0,7}\((\d+(, ?\d+)*)?\)", "0", text)) != text:
            text = shorter
        assert re.fullmatch(r"0(, ?0)*", text), output


def test_terminals_of_larks_library_are_imported() -> None:
    grammar = Grammar(
        "start: (statement NEWLINE)*\n"
        'statement: NAME "=" sum | "print" "(" [sum ("," sum)*] ")"\n'
        '?sum: sum "+" atom | atom\n'
        "?atom: NUMBER | ESCAPED_STRING | NAME\n"
        "%import common.CNAME -> NAME\n%import common.NUMBER\n"
        "%import common (ESCAPED_STRING, NEWLINE)\n"
        "%import common.WS_INLINE\n%ignore WS_INLINE\n"
    )
    found = make_machine(grammar.rules.compile(), Vocabulary.of([bytes([b]) for b in range(256)]))
    for text in ("", "a = 1.5e3 +b\n", 'print("x\\"y", .5, 1.)\r\n\n_b2=7\n', "print()\n"):
        assert takes(found, text), text
    for text in ("a = \n", 'a = "x\n"\n', "2b = 1\n", "a = 1.5.2\n", "print(\n)\n", "a = 1"):
        assert not takes(found, text), text


@pytest.mark.parametrize("name", sorted(TERMINALS))
def test_a_terminal_of_larks_library_takes_its_examples_alone(name: str) -> None:
    examples = {
        "DIGIT": "7", "HEXDIGIT": "f", "INT": "007", "SIGNED_INT": "-12", "DECIMAL": ".5",
        "FLOAT": "1e-9", "SIGNED_FLOAT": "+1.e5", "NUMBER": "12", "SIGNED_NUMBER": "-0.5",
        "ESCAPED_STRING": r'"a\\"', "LCASE_LETTER": "x", "UCASE_LETTER": "X", "LETTER": "Q",
        "WORD": "Word", "CNAME": "_a1", "WS_INLINE": " \t", "WS": "\f\r\n ", "CR": "\r", "LF": "\n",
        "NEWLINE": "\n\r\n", "SH_COMMENT": "# a", "CPP_COMMENT": "// a*/", "SQL_COMMENT": "--",
        "C_COMMENT": "/* a * \n/**/", "_EXP": "E-12", "_STRING_INNER": "a\\",
        "_STRING_ESC_INNER": r"a\"\\",
    }  # fmt: skip
    wrong = {
        "DIGIT": "12", "INT": "-1", "DECIMAL": ".", "FLOAT": "12", "SIGNED_FLOAT": "-",
        "NUMBER": "+1",
        "ESCAPED_STRING": r'"a\"', "CNAME": "1a", "NEWLINE": "\r", "SH_COMMENT": "# a\n",
        "C_COMMENT": "/* */ */", "WS_INLINE": "\n", "WORD": "a1", "_EXP": "1",
        "_STRING_INNER": "\n", "_STRING_ESC_INNER": r"a\\\b"[:-1],
    }  # fmt: skip
    texts = matching(TERMINALS[name], whole=True, flags=Flags())
    assert examples[name] in texts
    assert wrong.get(name, "") not in texts


def test_rules_that_begin_with_themselves_keep_their_texts() -> None:
    index = TokenMask(Grammar(LARK), VOCABULARY)
    generator = np.random.default_rng(5)
    outputs = {sampled(index, generator) for _ in range(60)} - {None}
    assert len(outputs) > 40
    for output in outputs:
        eval((output or b"").decode())
    circle = Grammar('start: a | "x"\na: b "1"\nb: a "2" | start "3"\n')
    found = make_machine(circle.rules.compile(), Vocabulary.of([bytes([b]) for b in range(256)]))
    assert all(takes(found, text) for text in ("x", "x31", "x3121", "x3131"))
    assert not any(takes(found, text) for text in ("", "1", "x3", "31", "x21"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('root ::= "a', "grammar, line 1: unexpected '\"'"),
        ("root ::= a\n", "grammar, line 1: there is no rule 'a'; there are: root"),
        ("a ::= [a]\n", "grammar: there is no rule 'root' to start with; there are: a"),
        ("root ::= (\n[a]", r"grammar, line 2: expected '\)', got ''"),
        ("root ::= [a]{3,2}", "grammar, line 1: expected at least 3 repetitions, got 2"),
        ("root ::= [a]\nroot ::= [b]", "grammar, line 2: the rule 'root' is there already"),
        ("start: X\n%declare X", "grammar, line 2: '%declare' is not covered"),
        ("start: X\n%import common.X", "line 2: there is no terminal 'X' in 'common'; there are"),
        ("start: X\n%import python.X", "line 2: '%import python.X' is not covered, only terminals"),
        ("start: start\n", "no text matches|calls itself"),
    ],
)
def test_grammars_that_are_malformed_are_refused_by_line(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        TokenMask(Grammar(text), VOCABULARY)


def test_grammars_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "yes.gbnf").write_text('\ufeffroot ::= "yes" | "no"', encoding="utf-8")
    index = TokenMask(Grammar.read(tmp_path / "yes.gbnf"), VOCABULARY)
    assert {VOCABULARY[token] for token in index.mask(index.start).tokens()} == {"y", "n"}
    with pytest.raises(NoSuchFile, match=r"there is no grammar '.*no.gbnf'"):
        Grammar.read(tmp_path / "no.gbnf")
    with pytest.raises(InvalidArgument, match=r": expected a text file in UTF-8: Is a directory$"):
        Grammar.read(tmp_path)


def test_schemas_that_combine_too_much_or_nest_too_deeply_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = [{"type": "object", "properties": {name: {"type": "string"}}} for name in "abcd"]
    both = {"allOf": [{"anyOf": kinds}, {"anyOf": kinds}]}
    schema_rules(both)
    monkeypatch.setattr("hagane.lexgen.masks.schemas.schemas._MOST_PAIRS", 12)
    with pytest.raises(InvalidArgument, match="combines its parts in more than 12 ways"):
        schema_rules(both)
    monkeypatch.undo()
    nested: Any = {"type": "integer"}
    for _ in range(3000):
        nested = {"allOf": [nested]}
    with pytest.raises(InvalidArgument, match="lie in each other too deeply; take parts of it"):
        schema_rules(nested)


def test_schemas_that_say_the_same_are_one_rule() -> None:
    fields = [f"field{number}" for number in range(50)]
    alike = {name: {"enum": ["on", "off"], "description": f"about {name}"} for name in fields}
    different = {name: {"enum": ["on", "off", name]} for name in fields}
    sizes = [len(schema_rules({"properties": each}).bodies) for each in (alike, different)]
    assert sizes[1] - sizes[0] >= 49


@pytest.mark.parametrize("schema", SCHEMAS[:12])
def test_edges_written_in_c_are_those_of_python(schema: Any) -> None:
    bodies = [body for body in schema_rules(schema).bodies if not isinstance(body, Module | int)]
    written = []
    for native in (True, False):
        emitter = Emitter(lambda body: Call(1000), native)
        ends = [emitter.rule(body) for body in bodies if body is not None]
        nfa = emitter.written()
        edges = [
            sorted(zip(*[iter(numbers)] * size, strict=True))
            for numbers, size in ((nfa.bytes, 4), (nfa.free, 2), (nfa.calls, 5))
        ]
        written.append((ends, nfa.states, edges))
    assert written[0] == written[1]
