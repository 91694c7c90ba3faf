"""From text to a tree: cel-python's parser, held to our own tokens and limits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cubesched.plugins.cel.lexing import Token, tokenize
from cubesched.plugins.cel.limits import MAX_DEPTH
from cubesched.plugins.cel.literals import (
    LiteralInvalid,
    decode_double,
    decode_int,
    decode_text,
)
from cubesched.plugins.cel.problems import ExpressionInvalid, refused
from cubesched.plugins.cel.syntax import (
    Call,
    Field,
    Index,
    Listing,
    Literal,
    Name,
    Node,
    Unsupported,
)

if TYPE_CHECKING:
    from celpy.celparser import CELParser
    from lark import Tree

TOO_DEEP: Final = f"nested too deeply; allowed are {MAX_DEPTH} operations within one another"
_BINARY: Final = {
    "relation_lt": "<", "relation_le": "<=", "relation_gt": ">", "relation_ge": ">=",
    "relation_eq": "==", "relation_ne": "!=", "relation_in": "in",
    "addition_add": "+", "addition_sub": "-",
    "multiplication_mul": "*", "multiplication_div": "/", "multiplication_mod": "%",
    "unary_not": "!", "unary_neg": "-",
}  # fmt: skip
_CHAINS: Final = {"conditionalor": "||", "conditionaland": "&&"}
RESERVED: Final = frozenset(
    ("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
     "let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
)  # fmt: skip
_LOCK: Final = threading.Lock()


def parse(text: str) -> Node:
    """Return the tree of an expression, or raise ExpressionInvalid; nothing else escapes."""
    tokens = tokenize(text)
    try:
        tree = _tree(text)
        _check_tokens(tree, tokens)
        return _convert(tree, MAX_DEPTH)
    except RecursionError:
        raise refused(1, 1, TOO_DEEP) from None


@cache
def _parser() -> CELParser:
    """Return the one parser of this process; importing it takes a third of a second."""
    from celpy.celparser import CELParser  # noqa: PLC0415 - slow, and only expressions need it

    return CELParser()


def _tree(text: str) -> Tree[Any]:
    from celpy.celparser import CELParseError  # noqa: PLC0415

    with _LOCK:
        try:
            return _parser().parse(text)
        except CELParseError as error:
            raise _syntax_error(error, text) from None


def _syntax_error(error: Any, text: str) -> ExpressionInvalid:
    """Say what stands where it cannot, in our words."""
    token = getattr(error.__context__, "token", None)
    if token is None or token.type == "$END":
        lines = text.splitlines() or [""]
        return refused(len(lines), len(lines[-1]) + 1, "the expression ends too early")
    return refused(token.line, token.column, f"unexpected {token.value}")


def _check_tokens(tree: Tree[Any], tokens: list[Token]) -> None:
    """Refuse a tree in which the parser has read a token as we do not."""
    expected = {token.start: token.text for token in tokens}
    bools = iter([token for token in tokens if token.text in ("true", "false")])
    for found in _leaves(tree):
        if found.start_pos is None:  # the parser forgets where a bool stands
            token = next(bools)
            found.start_pos, found.line, found.column = token.start, token.line, token.column
        sign = found.value[:1] == "-"  # the parser takes a sign for part of a number
        text, start = found.value[sign:], found.start_pos + sign
        if expected.get(start) != text:
            raise refused(found.line, found.column, f"unexpected {found.value}")


def _leaves(tree: Tree[Any]) -> Iterator[Any]:
    """Yield the tokens of a tree in their order; it may be deeper than Python calls go."""
    waiting: list[Any] = [tree]
    while waiting:
        part = waiting.pop()
        if hasattr(part, "children"):
            waiting.extend(reversed(part.children))
        else:
            yield part


def _convert(tree: Tree[Any], depth: int) -> Node:
    while len(tree.children) == 1 and tree.data in _PLAIN:
        tree = tree.children[0]
    if depth <= 0:
        first = next(_leaves(tree))
        raise refused(first.line, first.column, TOO_DEEP)
    return _CONVERTERS[tree.data](tree, depth - 1)


def _choice(tree: Any, depth: int) -> Node:
    return _call("?:", [_convert(part, depth) for part in tree.children])


def _chain(tree: Any, depth: int) -> Node:
    """Flatten `a && b && c`: whichever way it is read, the value is the same."""
    rule, operands = tree.data, []
    while tree.data == rule and len(tree.children) == 2:
        operands.append(tree.children[1])
        tree = tree.children[0]
    operands.append(tree)
    return _call(_CHAINS[rule], [_convert(part, depth) for part in reversed(operands)])


def _binary(tree: Any, depth: int) -> Node:
    head, right = tree.children
    args = [_convert(head.children[0], depth), _convert(right, depth)]
    return _call(_BINARY[head.data], args)


def _unary(tree: Any, depth: int) -> Node:
    sign, operand = tree.children
    return _call(_BINARY[sign.data], [_convert(operand, depth)])


def _call(name: str, args: list[Node]) -> Node:
    return Call(args[0].line, args[0].column, name, tuple(args))


def _field(tree: Any, depth: int) -> Node:
    operand, name = tree.children
    _check_name(name)
    return Field(name.line, name.column, _convert(operand, depth), str(name))


def _method(tree: Any, depth: int) -> Node:
    operand, name, *rest = tree.children
    _check_name(name)
    args = (_convert(operand, depth), *_exprlist(rest, depth))
    return Call(name.line, name.column, str(name), args, is_method=True)


def _function(tree: Any, depth: int) -> Node:
    name, *rest = tree.children
    _check_name(name)
    return Call(name.line, name.column, str(name), _exprlist(rest, depth))


def _index(tree: Any, depth: int) -> Node:
    operand, key = (_convert(part, depth) for part in tree.children)
    return Index(key.line, key.column, operand, key)


def _list(tree: Any, depth: int) -> Node:
    items = _exprlist(tree.children, depth)
    line, column = (items[0].line, max(items[0].column - 1, 1)) if items else (1, 1)
    return Listing(line, column, items)


def _exprlist(parts: list[Any], depth: int) -> tuple[Node, ...]:
    return tuple(_convert(part, depth) for part in parts[0].children) if parts else ()


def _name(tree: Any, _: int) -> Node:
    token = tree.children[0]
    _check_name(token)
    return Name(token.line, token.column, str(token))


def _check_name(token: Any) -> None:
    if str(token) in RESERVED:
        message = f'{token} is a reserved word; a label of that name is labels["{token}"]'
        raise refused(token.line, token.column, message)


def _literal(tree: Any, _: int) -> Node:
    token = tree.children[0]
    if token.type not in _LITERALS:
        what = {"UINT_LIT": "uint", "BYTES_LIT": "bytes", "NULL_LIT": "null"}[token.type]
        return Unsupported(token.line, token.column, what)
    try:
        return Literal(token.line, token.column, _LITERALS[token.type](str(token)))
    except LiteralInvalid as error:
        raise refused(token.line, token.column, str(error)) from None


def _unsupported(what: str) -> Callable[[Tree[Any], int], Node]:
    def convert(tree: Any, _: int) -> Node:
        first = next(_leaves(tree), None)
        return Unsupported(getattr(first, "line", 1), getattr(first, "column", 1), what)

    return convert


_LITERALS: Final[dict[str, Callable[[str], bool | int | float | str]]] = {
    "INT_LIT": decode_int,
    "FLOAT_LIT": decode_double,
    "STRING_LIT": decode_text,
    "MLSTRING_LIT": decode_text,
    "BOOL_LIT": "true".__eq__,
}
_PLAIN: Final = frozenset(
    ("expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication", "unary",
     "member", "primary", "paren_expr"),
)  # fmt: skip
"""Rules that mean nothing where they have one child."""
_CONVERTERS: Final[dict[str, Callable[[Any, int], Node]]] = {
    "expr": _choice,
    "conditionalor": _chain,
    "conditionaland": _chain,
    "relation": _binary,
    "addition": _binary,
    "multiplication": _binary,
    "unary": _unary,
    "member_dot": _field,
    "member_dot_arg": _method,
    "member_index": _index,
    "member_object": _unsupported("message literals"),
    "ident": _name,
    "ident_arg": _function,
    "list_lit": _list,
    "map_lit": _unsupported("map literals"),
    "dot_ident": _unsupported("names that begin with a dot"),
    "dot_ident_arg": _unsupported("names that begin with a dot"),
    "literal": _literal,
}
