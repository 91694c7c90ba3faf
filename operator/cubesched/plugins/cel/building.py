"""Makes the parts of a checked expression, counts what they cost, and folds what is constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from cubesched.plugins.cel import access, comparing, logic, textops
from cubesched.plugins.cel.celtypes import BOOL, INT, STRING, list_of
from cubesched.plugins.cel.facts import NodeFact, RequestFact
from cubesched.plugins.cel.functions import BY_OPERATOR, Function, Overload
from cubesched.plugins.cel.hints import wrong_arguments, wrong_operands
from cubesched.plugins.cel.limits import MAX_COST_US, MAX_ERRORS, SCALAR_COST_US
from cubesched.plugins.cel.patterns import PatternInvalid
from cubesched.plugins.cel.problems import ExpressionInvalid, refused
from cubesched.plugins.cel.syntax import Node
from cubesched.plugins.cel.typed import Errors, TooManyErrors, Typed
from cubesched.plugins.cel.values import Env, Run

MAX_PARTS: Final = 5_000
"""Parts made for one expression, those of unrolled macros among them."""
_LOGIC_US, _CHOICE_US, _LABEL_US, _FACT_US = 15.0, 25.0, 15.0, 15.0
_COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")


class _Nowhere:
    """What constants are folded in: there is no fleet."""

    def check(self) -> None:
        """Text in an expression is short."""

    def charge(self, nanoseconds: float) -> None:
        """See above."""

    def read(self, *texts: str) -> None:
        """See above."""


_NOWHERE: Final = cast("Env", _Nowhere())


class Builder:
    """Makes the parts of one expression."""

    def __init__(self) -> None:
        self.errors = Errors()
        self._parts = 0

    def apply(self, function: Function, args: Sequence[Typed], at: Node) -> Typed:
        """Return an operator or function of these arguments, or raise ExpressionInvalid."""
        overload = next(
            (one for one in function.overloads if one.args == tuple(a.type for a in args)), None
        )
        if overload is None:
            raise _no_overload(function, args, at)
        return self.lifted(args, lambda each: self._applied(function, overload, each, at))

    def _applied(
        self, function: Function, overload: Overload, args: Sequence[Typed], at: Node
    ) -> Typed:
        _check_columns(function, overload, args)
        is_literal = all(arg.is_literal for arg in args)
        made = self._made(
            at, args, cost_us=_cost_us(overload, args), type=overload.result,
            run=self._run(function, overload, args, at), can_fail=overload.can_fail,
        )  # fmt: skip
        if function.name in _COMPARISONS:
            made = replace(made, compares=(function.name, args[0], args[1]))
        return _folded(made) if is_literal else made

    def _run(self, function: Function, overload: Overload, args: Sequence[Typed], at: Node) -> Run:
        make = overload.make
        if function.name == "in" and overload.args[0] == STRING and not _all_literal(args[1]):
            make = comparing.member_by(textops.equal)
        try:
            return make(tuple(args), self.errors)
        except PatternInvalid as error:
            raise refused(args[1].line, args[1].column, str(error)) from None
        except TooManyErrors:
            raise _too_many_errors(at) from None

    def logic(self, sign: str, args: Sequence[Typed], at: Node) -> Typed:
        """Return `a && b && ...`, `a || b || ...` or `!a`."""
        runs = [arg.run for arg in sorted(args, key=lambda arg: arg.per_node)]
        if sign == "!":
            run = logic.negation(runs[0])
        else:
            run = logic.conjunction(runs) if sign == "&&" else logic.disjunction(runs)
        made = self._made(at, args, cost_us=_LOGIC_US * len(args), type=BOOL, run=run)
        return _folded(made) if all(arg.is_literal for arg in args) else made

    def choice(self, condition: Typed, yes: Typed, no: Typed) -> Typed:
        """Return `c ? a : b`."""
        args = (condition, yes, no)
        if condition.is_literal:
            return yes if condition.literal else no
        if yes.type == STRING or yes.type.element is not None:
            made = self._made(condition, args, cost_us=0.0, type=yes.type, run=_unreachable)
            return replace(made, choice=args)
        run = logic.choice(condition.run, yes.run, no.run, yes.type)
        return self._made(condition, args, cost_us=_CHOICE_US, type=yes.type, run=run)

    def loop(self, sign: str, listed: Typed, tests: Sequence[Typed], at: Node) -> Typed:
        """Return a macro unrolled; what is wrong with any element is wrong with the whole."""
        joined = self.logic(sign, tests, at)
        return self._beside(joined, listed.items, at)

    def size(self, listed: Typed, at: Node) -> Typed:
        """Return the number of elements of a list."""
        number = len(listed.items)
        made = self._made(
            at, (), cost_us=0.0, type=INT, run=access.constant(number), literal=number
        )
        return self._beside(made, listed.items, at)

    def _beside(self, part: Typed, others: Sequence[Typed], at: Node) -> Typed:
        """Return a part that is an error also where any of the others is one."""
        others = [other for other in others if other.can_fail]
        if not others:
            return part
        run = logic.strict(part.run, [other.run for other in others])
        return self._made(at, (part, *others), cost_us=_LOGIC_US, type=part.type, run=run)

    def listing(self, items: Sequence[Typed], at: Node) -> Typed:
        """Return a list, which is only ever taken apart again."""
        kind = list_of(items[0].type)
        made = self._made(at, items, cost_us=0.0, type=kind, run=_unreachable)
        if all(item.is_literal for item in items):
            made = replace(made, literal=tuple(item.literal for item in items))
        return replace(made, items=tuple(items))

    def node_fact(self, fact: NodeFact, at: Node) -> Typed:
        """Return `node.fact`."""
        run = self._numbered(at, lambda: access.node_fact(fact, self.errors))
        return self._made(
            at, (), cost_us=_FACT_US, type=fact.type, run=run, per_node=True, fact=fact,
            can_fail=fact.may_be_unknown,
        )  # fmt: skip

    def request_fact(self, fact: RequestFact, at: Node) -> Typed:
        """Return `request.fact`."""
        return self._made(at, (), cost_us=0.0, type=fact.type, run=access.request_fact(fact))

    def knows(self, fact: NodeFact | None, at: Node) -> Typed:
        """Return `has()` of a field of `node`, or of one that is always there."""
        if fact is None or not fact.may_be_unknown:
            return self._made(
                at, (), cost_us=0.0, type=BOOL, run=access.constant(True), literal=True
            )
        return self._made(
            at, (), cost_us=_FACT_US, type=BOOL, run=access.knows(fact), per_node=True
        )

    def label(self, labels: Typed, key: Typed, at: Node) -> Typed:
        """Return the value of a label."""
        _check_key(key)
        make = access.node_label if labels.per_node else access.request_label
        run = self._numbered(at, lambda: make(key, self.errors))
        return self._made(
            at, (key,), cost_us=_LABEL_US, type=STRING, run=run, per_node=labels.per_node,
            can_fail=True,
        )  # fmt: skip

    def has_label(self, labels: Typed, key: Typed, at: Node) -> Typed:
        """Return whether there is such a label."""
        _check_key(key)
        make = access.has_node_label if labels.per_node else access.has_request_label
        return self._made(
            at, (key,), cost_us=_LABEL_US, type=BOOL, run=make(key), per_node=labels.per_node
        )

    def lifted(self, args: Sequence[Typed], build: Callable[[Sequence[Typed]], Typed]) -> Typed:
        """Return what is built of the arguments, with a `?:` among them moved outward."""
        for index, arg in enumerate(args):
            if arg.choice is not None:
                condition, yes, no = arg.choice
                branches = [
                    self.lifted([*args[:index], branch, *args[index + 1 :]], build)
                    for branch in (yes, no)
                ]
                return self.choice(condition, *branches)
        return build(args)

    def _numbered(self, at: Node, make: Callable[[], Run]) -> Run:
        try:
            return make()
        except TooManyErrors:
            raise _too_many_errors(at) from None

    def _made(
        self, at: Node | Typed, args: Sequence[Typed], *, cost_us: float, **facts: Any
    ) -> Typed:
        """Return a part, with what its own parts bring into it; refuse what grows too large."""
        per_node = facts.pop("per_node", False) or any(arg.per_node for arg in args)
        can_fail = facts.pop("can_fail", False) or any(arg.can_fail for arg in args)
        total = sum(arg.cost_us for arg in args) + (cost_us if per_node else SCALAR_COST_US)
        self._parts += 1
        if total > MAX_COST_US or self._parts > MAX_PARTS:
            message = "the expression costs too much: make it or its lists shorter, or split it"
            raise refused(at.line, at.column, message)
        return Typed(
            line=at.line, column=at.column, per_node=per_node, can_fail=can_fail, cost_us=total,
            **facts,
        )  # fmt: skip


def _unreachable(_: Env) -> Any:
    raise AssertionError("lists and choices of strings are taken apart before anything runs")


def _folded(made: Typed) -> Typed:
    """Return a literal in the place of what is made of literals, unless it is an error."""
    value, error = made.run(_NOWHERE)
    if type(error) is not int or error:
        return made
    return replace(made, run=access.constant(value), literal=value, can_fail=False, compares=None)


def _all_literal(listed: Typed) -> bool:
    return all(item.is_literal for item in listed.items)


def _cost_us(overload: Overload, args: Sequence[Typed]) -> float:
    if args[-1].items and not (overload.args[0] == STRING and _all_literal(args[-1])):
        each = 60.0 if overload.args[0] == STRING else overload.cost_us
        return each * len(args[-1].items)
    changes = any(not arg.per_node and not arg.is_literal for arg in args)
    return overload.cost_us + (overload.repeated_us if changes else 0.0)


def _check_columns(function: Function, overload: Overload, args: Sequence[Typed]) -> None:
    columns = [arg for arg in args if arg.per_node]
    if overload.literal_last and not args[-1].is_literal:
        message = f"{function.name} takes a pattern that is written down"
        raise refused(args[-1].line, args[-1].column, message)
    if len(columns) > overload.most_columns:
        last = columns[-1]
        if overload.most_columns == 0:
            message = f"{function.name}() of an int of the node: not supported"
        else:
            message = f"{function.name} of two strings of the node: not supported"
        raise refused(last.line, last.column, message)
    is_join = function.name == "+" and overload.result == STRING
    if is_join and columns and not any(arg.is_literal for arg in args):
        message = "a string of the node takes only a literal before or after it"
        raise refused(columns[0].line, columns[0].column, message)


def _check_key(key: Typed) -> None:
    if key.per_node:
        message = "a key that differs from node to node: not supported"
        raise refused(key.line, key.column, message)


def _no_overload(function: Function, args: Sequence[Typed], at: Node) -> ExpressionInvalid:
    if function.is_operator and function.name in BY_OPERATOR:
        part, message = wrong_operands(function, args)
        return refused(part.line, part.column, message)
    return refused(at.line, at.column, wrong_arguments(function, args))


def _too_many_errors(at: Node) -> ExpressionInvalid:
    message = f"more than {MAX_ERRORS} different keys and facts in one expression"
    return refused(at.line, at.column, message)
