"""The checker: gives every part of an expression its type, or says what is wrong with it.

Strict as CEL's own: int and double never mix. Macros over lists are unrolled. A `?:` of strings or
lists moves outward (`f(c ? a : b)` becomes `c ? f(a) : f(b)`, which is the same in every case,
errors included), so that at run time only bools and numbers are chosen between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from cubesched.plugins.cel import access
from cubesched.plugins.cel.building import Builder
from cubesched.plugins.cel.celtypes import BOOL, LABELS, NODE, REQUEST, STRING, Type, type_of
from cubesched.plugins.cel.facts import NODE as NODE_FACTS
from cubesched.plugins.cel.facts import REQUEST as REQUEST_FACTS
from cubesched.plugins.cel.functions import BY_NAME, BY_OPERATOR, UNSUPPORTED
from cubesched.plugins.cel.hints import undefined_field, unknown_function, wrong_result
from cubesched.plugins.cel.limits import MAX_LIST, MAX_MACROS, MAX_PROBLEMS
from cubesched.plugins.cel.problems import ExpressionInvalid, Problem, refused
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
from cubesched.plugins.cel.typed import Typed
from cubesched.plugins.spelling import did_you_mean

_ROOTS = {"node": NODE, "request": REQUEST}
_LOOPS = ("all", "exists")
_REFUSED_LOOPS = ("map", "filter", "exists_one")


def check(root: Node, wanted: Sequence[Type]) -> tuple[Typed, tuple[str, ...]]:
    """Return the checked expression and the texts of its errors, or raise ExpressionInvalid."""
    checker = Checker()
    typed = checker.parts((root,))
    if typed is None:
        raise ExpressionInvalid(checker.problems)
    if typed[0].type not in wanted:
        raise refused(typed[0].line, typed[0].column, wrong_result(typed[0].type, wanted))
    return typed[0], tuple(checker.builder.errors.texts)


class Checker:
    """Walks one expression; goes on beside what is wrong, to find what else is."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.builder = Builder()
        self._scope: Mapping[str, Typed] = {}
        self._loops = 0

    def parts(self, nodes: Sequence[Node]) -> list[Typed] | None:
        """Return the parts checked, or None when anything is wrong with any of them."""
        checked = []
        for node in nodes:
            try:
                checked.append(self._typed(node))
            except ExpressionInvalid as error:
                room = MAX_PROBLEMS - len(self.problems)
                self.problems += [p for p in error.problems if p not in self.problems][:room]
        return checked if len(checked) == len(nodes) else None

    def _all(self, nodes: Sequence[Node]) -> list[Typed]:
        checked = self.parts(nodes)
        if checked is None:
            raise ExpressionInvalid(())  # noted already
        return checked

    def _typed(self, node: Node) -> Typed:
        match node:
            case Literal():
                return Typed(type_of(node.value), access.constant(node.value), node.line,
                             node.column, literal=node.value)  # fmt: skip
            case Name():
                return self._name(node)
            case Field():
                return self._field(node)
            case Index():
                return self._index(node)
            case Listing():
                return self._listing(node)
            case Call():
                return self._call(node)
            case Unsupported():
                raise refused(node.line, node.column, f"{UNSUPPORTED[node.what]}: not supported")
            case _:
                raise AssertionError(node)

    def _name(self, node: Name) -> Typed:
        if node.name in self._scope:
            return replace(self._scope[node.name], line=node.line, column=node.column)
        if node.name in _ROOTS:
            message = f"{node.name} is no value of its own: write {node.name}.FIELD"
            raise refused(node.line, node.column, message)
        known = [*_ROOTS, *self._scope]
        message = f"undeclared name '{node.name}'; {did_you_mean(node.name, known)}"
        raise refused(node.line, node.column, message)

    def _root(self, node: Node) -> Type | None:
        if isinstance(node, Name) and node.name not in self._scope:
            return _ROOTS.get(node.name)
        return None

    def _field(self, node: Field) -> Typed:
        root = self._root(node.operand)
        if root is not None:
            self._check_fact(root, node)
            if root is NODE:
                return self.builder.node_fact(NODE_FACTS[node.name], node)
            return self.builder.request_fact(REQUEST_FACTS[node.name], node)
        (operand,) = self._all((node.operand,))
        if operand.type != LABELS:
            message = f"{operand.type.name} has no fields, so no '{node.name}'"
            raise refused(node.line, node.column, message)
        return self.builder.label(operand, self._literal(node, node.name), node)

    def _check_fact(self, root: Type, node: Field) -> None:
        known = NODE_FACTS if root is NODE else REQUEST_FACTS
        if node.name not in known:
            raise refused(node.line, node.column, undefined_field(node.name, root, known))

    def _literal(self, at: Node, value: str) -> Typed:
        return self._typed(Literal(at.line, at.column, value))

    def _index(self, node: Index) -> Typed:
        operand, key = self._all((node.operand, node.key))
        if operand.type.element is not None:
            raise refused(
                node.line, node.column, "an element of a list by its number: not supported"
            )
        if operand.type != LABELS:
            raise refused(node.line, node.column, f"{operand.type.name} has no keys")
        self._check_key(key)
        return self.builder.lifted([key], lambda one: self.builder.label(operand, one[0], node))

    def _check_key(self, key: Typed) -> None:
        if key.type != STRING:
            raise refused(
                key.line, key.column, f"keys of labels are strings, found {key.type.name}"
            )

    def _listing(self, node: Listing) -> Typed:
        if not node.items:
            raise refused(node.line, node.column, "empty lists: not supported")
        if len(node.items) > MAX_LIST:
            message = f"a list of {len(node.items)} values; allowed are {MAX_LIST}"
            raise refused(node.line, node.column, message)
        items = self._all(node.items)
        for item in items:
            if item.type != items[0].type:
                message = f"a list holds values of one type, found {items[0].type.name} and"
                raise refused(item.line, item.column, f"{message} {item.type.name}")
        if items[0].type.element is not None or items[0].type == LABELS:
            raise refused(node.line, node.column, f"lists of {items[0].type.name}: not supported")
        return self.builder.lifted(items, lambda each: self.builder.listing(each, node))

    def _call(self, node: Call) -> Typed:
        if special := _SPECIAL.get((node.name, node.is_method)):
            return special(self, node)
        if operator := BY_OPERATOR.get(node.name):
            return self.builder.apply(operator, self._all(node.args), node)
        function = BY_NAME.get(node.name)
        has_form = function and (function.as_method if node.is_method else function.as_function)
        if function is None or not has_form:
            message = unknown_function(node.name, is_method=node.is_method)
            raise refused(node.line, node.column, message)
        return self.builder.apply(function, self._all(node.args), node)

    def _bools(self, nodes: Sequence[Node], sign: str) -> list[Typed]:
        args = self._all(nodes)
        for arg in args:
            if arg.type != BOOL:
                raise refused(arg.line, arg.column, f"{sign} wants bool, found {arg.type.name}")
        return args

    def logic(self, node: Call) -> Typed:
        """Check `a && b`, `a || b` or `!a`."""
        return self.builder.logic(node.name, self._bools(node.args, node.name), node)

    def choice(self, node: Call) -> Typed:
        """Check `c ? a : b`."""
        condition, yes, no = self._all(node.args)
        if condition.type != BOOL:
            message = f"? wants bool before it, found {condition.type.name}"
            raise refused(condition.line, condition.column, message)
        if yes.type != no.type:
            message = f"branches of ?: differ: {yes.type.name} and {no.type.name}"
            raise refused(no.line, no.column, message)
        if yes.type == LABELS:
            raise refused(node.line, node.column, "a ?: between labels: not supported")
        return self.builder.choice(condition, yes, no)

    def member(self, node: Call) -> Typed:
        """Check `a in b`."""
        left, right = self._all(node.args)
        if right.type == LABELS and left.type == STRING:
            return self.builder.lifted(
                [left], lambda one: self.builder.has_label(right, one[0], node)
            )
        return self.builder.apply(BY_OPERATOR["in"], [left, right], node)

    def size(self, node: Call) -> Typed:
        """Check `size(a)` or `a.size()`."""
        args = self._all(node.args)
        if len(args) == 1 and args[0].type.element is not None:
            return self.builder.lifted(args, lambda one: self.builder.size(one[0], node))
        return self.builder.apply(BY_NAME["size"], args, node)

    def string(self, node: Call) -> Typed:
        """Check `string(a)`; of a bool it is one of two literals."""
        args = self._all(node.args)
        if [arg.type for arg in args] != [BOOL]:
            return self.builder.apply(BY_NAME["string"], args, node)
        words = [self._literal(node, word) for word in ("true", "false")]
        return self.builder.choice(args[0], *words)

    def has(self, node: Call) -> Typed:
        """Check `has(a.b)`."""
        field = node.args[0] if len(node.args) == 1 else None
        if not isinstance(field, Field):
            message = "has() takes one field, as in has(node.labels.zone)"
            raise refused(node.line, node.column, message)
        root = self._root(field.operand)
        if root is not None:
            self._check_fact(root, field)
            return self.builder.knows(NODE_FACTS[field.name] if root is NODE else None, node)
        (operand,) = self._all((field.operand,))
        if operand.type != LABELS:
            raise refused(field.line, field.column, f"{operand.type.name} has no fields")
        return self.builder.has_label(operand, self._literal(field, field.name), node)

    def loop(self, node: Call) -> Typed:
        """Check `[...].all(x, test)` or `[...].exists(x, test)`."""
        if len(node.args) != 3 or not isinstance(node.args[1], Name):
            message = f"write [...].{node.name}(x, test), where x is a name of your own"
            raise refused(node.line, node.column, message)
        target, variable, body = node.args
        assert isinstance(variable, Name)
        if variable.name in _ROOTS:
            raise refused(variable.line, variable.column, f"{variable.name} has a meaning already")
        (listed,) = self._all((target,))
        if listed.type.element is None:
            message = f"{node.name}() of {listed.type.name}: only of a list that is written down"
            raise refused(node.line, node.column, message)
        sign = "&&" if node.name == "all" else "||"
        return self.builder.lifted(
            [listed],
            lambda one: self.builder.loop(
                sign, one[0], self._unrolled(variable.name, one[0].items, body, node), node
            ),
        )

    def _unrolled(self, name: str, items: Sequence[Typed], body: Node, node: Call) -> list[Typed]:
        """Return the body once for each element, which stands for the variable."""
        if self._loops >= MAX_MACROS:
            message = f"more than {MAX_MACROS} of exists and all within one another"
            raise refused(node.line, node.column, message)
        outer, tests = self._scope, []
        self._loops += 1
        try:
            for item in items:
                self._scope = {**outer, name: item}
                tests += self._bools((body,), f"{node.name}()")
        finally:
            self._scope, self._loops = outer, self._loops - 1
        return tests

    def refused_loop(self, node: Call) -> Typed:
        """Refuse a macro by its name."""
        raise refused(node.line, node.column, f"{UNSUPPORTED[node.name]}: not supported")


_SPECIAL: Mapping[tuple[str, bool], Callable[[Checker, Call], Typed]] = {
    ("&&", False): Checker.logic,
    ("||", False): Checker.logic,
    ("!", False): Checker.logic,
    ("?:", False): Checker.choice,
    ("in", False): Checker.member,
    ("has", False): Checker.has,
    ("size", False): Checker.size,
    ("size", True): Checker.size,
    ("string", False): Checker.string,
    **{(name, True): Checker.loop for name in _LOOPS},
    **{(name, True): Checker.refused_loop for name in _REFUSED_LOOPS},
}
