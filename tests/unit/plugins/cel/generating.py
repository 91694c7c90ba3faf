"""Random expressions of a wanted type, with the operators and functions that each is made of."""

# ruff: noqa: E501 - tables of odd texts
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

BOOL, INT, DOUBLE, STRING = "bool", "int", "double", "string"
LABEL_KEYS = ("zone", "gpu", "num", "x.io/gen", "none")
TEXTS = (
    "", "a", "b", "ab", "zone-a", "é", "日本", "😀", "12", " 12 ", "+7", "-3", "1.5", "1e3", "nan", "-inf",
    "Infinity", "0x1p3", "0x.8", "1e400", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "1_0", "1e", ".5", "5.", "true", "x" * 63, "a\nb", 'q"q', "back\\slash",
    "\t", "\u00a012", "٣",
)  # fmt: skip
PATTERNS = (
    "a",
    "^a",
    "b$",
    "^$",
    "[a-z]+-a",
    "é|日",
    ".",
    r"^\\d+$",
    "(a|b)+",
    "x{3,}",
    r"\\bq",
    "(?i)A",
)
INTS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    8,
    60,
    -8,
    100,
    1 << 31,
    (1 << 53) + 1,
    (1 << 62),
    (1 << 63) - 1,
    -(1 << 63),
)
DOUBLES = ("0.0", "-0.0", "1.0", "60.0", "0.5", "-2.75", "1e300", "1e-300", "9223372036854775807.0",
           "-9223372036854775808.0", "9007199254740993.0", ".25", "1.5e2", "2E+3", "1e19")  # fmt: skip
INT_FACTS = ("cpu_total", "quota_cpu", "allocated_cpu", "mem_total_mb", "mem_usage_mb",
             "quota_mem_mb", "allocated_mem_mb", "creating", "local_creating", "mvm_num")  # fmt: skip
DOUBLE_FACTS = ("cpu_util", "cpu_load", "data_disk_usage", "storage_disk_usage",
                "system_disk_usage")  # fmt: skip
BOOL_FACTS = ("healthy", "template_local", "snapshot_storage_writable")
STRING_FACTS = ("id", "ip", "zone", "instance_type")
REQUEST_INTS = ("cpu_millis", "memory_bytes", "system_disk_size", "priority")
REQUEST_STRINGS = ("instance_type", "template_id")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Generator:
    """Makes expressions; `used` counts what the last one is made of."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.used: Counter[str] = Counter()
        self._scope: list[tuple[str, str]] = []

    def expression(self) -> str:
        """Return an expression that returns a bool, an int or a double."""
        self.used = Counter()
        return self.of(self.random.choice((BOOL, BOOL, INT, DOUBLE)), self.random.randint(1, 4))

    def of(self, kind: str, depth: int) -> str:
        visible = dict(self._scope)  # an inner variable hides an outer one of its name
        bound = [name for name, of in visible.items() if of == kind]
        if bound and self.random.random() < 0.4:
            return self.random.choice(bound)
        if depth <= 0 or self.random.random() < 0.1:
            return self._pick(_LEAVES[kind])(self)
        if self.random.random() < 0.12:
            self.used["?:"] += 1
            parts = [self.of(each, depth - 1) for each in (BOOL, kind, kind)]
            return "({} ? {} : {})".format(*parts)
        return self._pick(_MAKERS[kind])(self, depth - 1)

    def _pick(self, table: Sequence[Callable[..., str]]) -> Callable[..., str]:
        return self.random.choice(table)

    # Leaves

    def bool_leaf(self) -> str:
        if self.random.random() < 0.3:
            return self.random.choice(("true", "false"))
        return f"node.{self.random.choice(BOOL_FACTS)}"

    def int_leaf(self) -> str:
        if self.random.random() < 0.4:
            value = self.random.choice(INTS)
            return hex(value) if value >= 0 and self.random.random() < 0.2 else str(value)
        if self.random.random() < 0.3:
            return f"request.{self.random.choice(REQUEST_INTS)}"
        return f"node.{self.random.choice(INT_FACTS)}"

    def double_leaf(self) -> str:
        if self.random.random() < 0.4:
            return self.random.choice(DOUBLES)
        return f"node.{self.random.choice(DOUBLE_FACTS)}"

    def string_leaf(self) -> str:
        chance = self.random.random()
        if chance < 0.35:
            return self.literal(self.random.choice(TEXTS))
        if chance < 0.55:
            return f"node.{self.random.choice(STRING_FACTS)}"
        if chance < 0.65:
            return f"request.{self.random.choice(REQUEST_STRINGS)}"
        owner = "node" if chance < 0.9 else "request"
        self.used["labels[]" if owner == "node" else "request.labels"] += 1
        key = self.random.choice(LABEL_KEYS)
        if key.isalpha() and self.random.random() < 0.5:
            return f"{owner}.labels.{key}"
        return f"{owner}.labels[{self.key(key)}]"

    def key(self, key: str) -> str:
        return "request.template_id" if self.random.random() < 0.1 else self.literal(key)

    def literal(self, text: str) -> str:
        """Spell a text in one of CEL's ways."""
        quote = self.random.choice(('"', "'", '"""', "'''"))
        if self.random.random() < 0.2 and quote[0] not in text and not set("\\\n") & set(text):
            return f"{self.random.choice('rR')}{quote}{text}{quote}"
        return quote + "".join(self._spelled(letter, quote) for letter in text) + quote

    def _spelled(self, letter: str, quote: str) -> str:
        escapes = {"\n": "\\n", "\\": "\\\\", quote[0]: "\\" + quote[0], "\t": "\\t"}
        if letter in escapes:
            return escapes[letter]
        chance = self.random.random()
        if chance < 0.03:
            return f"\\U{ord(letter):08x}"
        if chance < 0.06 and ord(letter) < 0x10000:
            return f"\\u{ord(letter):04X}"
        if chance < 0.09 and ord(letter) < 0x80:
            return self.random.choice((f"\\x{ord(letter):02x}", f"\\{ord(letter):03o}"))
        return letter

    # Operations

    def comparison(self, depth: int) -> str:
        sign = self.random.choice(COMPARISONS)
        kind = self.random.choice((INT, DOUBLE, STRING, STRING, BOOL))
        self.used[sign] += 1
        self.used[f"compare {kind}"] += 1
        return f"({self.of(kind, depth)} {sign} {self.of(kind, depth)})"

    def logic(self, depth: int) -> str:
        sign = self.random.choice(("&&", "||"))
        self.used[sign] += 1
        parts = [self.of(BOOL, depth) for _ in range(self.random.randint(2, 4))]
        return "(" + f" {sign} ".join(parts) + ")"

    def negated(self, depth: int) -> str:
        self.used["!"] += 1
        return f"!{self.of(BOOL, depth)}"

    def listed(self, kind: str, depth: int) -> str:
        items = [self.of(kind, depth - 1) for _ in range(self.random.randint(1, 4))]
        if self.random.random() < 0.05:
            self.used["?: of lists"] += 1
            other = [self.of(kind, 0)]
            return f"({self.of(BOOL, 0)} ? [{', '.join(items)}] : [{', '.join(other)}])"
        return f"[{', '.join(items)}]"

    def member(self, depth: int) -> str:
        self.used["in list"] += 1
        kind = self.random.choice((INT, DOUBLE, STRING, STRING, BOOL))
        if kind == STRING and self.random.random() < 0.5:
            items = ", ".join(self.literal(self.random.choice(TEXTS)) for _ in range(3))
            return f"({self.of(kind, depth)} in [{items}])"
        return f"({self.of(kind, depth)} in {self.listed(kind, depth)})"

    def key_in(self, depth: int) -> str:
        self.used["in labels"] += 1
        owner = self.random.choice(("node", "request"))
        return f"({self.key(self.random.choice(LABEL_KEYS))} in {owner}.labels)"

    def has(self, depth: int) -> str:
        self.used["has"] += 1
        if self.random.random() < 0.5:
            owner, key = (
                self.random.choice(("node", "request")),
                self.random.choice(("zone", "gpu")),
            )
            return f"has({owner}.labels.{key})"
        facts = ("labels", *INT_FACTS, *DOUBLE_FACTS, *BOOL_FACTS, *STRING_FACTS)
        return f"has(node.{self.random.choice(facts)})"

    def text_test(self, depth: int) -> str:
        name = self.random.choice(("startsWith", "endsWith", "contains"))
        self.used[name] += 1
        return f"{self._target(depth)}.{name}({self.of(STRING, depth)})"

    def _target(self, depth: int) -> str:
        return self.of(STRING, depth)

    def matches(self, depth: int) -> str:
        self.used["matches"] += 1
        pattern = f'"{self.random.choice(PATTERNS)}"'
        subject = self.of(STRING, depth)
        if self.random.random() < 0.3:
            return f"matches({subject}, {pattern})"
        return f"{subject}.matches({pattern})"

    def macro(self, depth: int) -> str:
        name = self.random.choice(("exists", "all"))
        self.used[name] += 1
        kind = self.random.choice((INT, DOUBLE, STRING, BOOL))
        variable = self.random.choice(("x", "y", "size"))
        target = self.listed(kind, depth)
        self._scope.append((variable, kind))
        body = self.of(BOOL, depth)
        self._scope.pop()
        return f"{target}.{name}({variable}, {body})"

    def int_sum(self, depth: int) -> str:
        sign = self.random.choice("+-*/%")
        self.used[f"{sign} int"] += 1
        return f"({self.of(INT, depth)} {sign} {self.of(INT, depth)})"

    def int_negated(self, depth: int) -> str:
        self.used["- of int"] += 1
        return f"-({self.of(INT, depth)})"

    def size(self, depth: int) -> str:
        self.used["size"] += 1
        if self.random.random() < 0.2:
            return f"{self.listed(self.random.choice((INT, STRING)), depth)}.size()"
        subject = self.of(STRING, depth)
        return f"size({subject})" if self.random.random() < 0.5 else f"{subject}.size()"

    def to_int(self, depth: int) -> str:
        kind = self.random.choice((DOUBLE, STRING, STRING, INT))
        self.used[f"int({kind})"] += 1
        return f"int({self.of(kind, depth)})"

    def double_sum(self, depth: int) -> str:
        sign = self.random.choice("+-*/")
        self.used[f"{sign} double"] += 1
        return f"({self.of(DOUBLE, depth)} {sign} {self.of(DOUBLE, depth)})"

    def double_negated(self, depth: int) -> str:
        self.used["- of double"] += 1
        return f"-({self.of(DOUBLE, depth)})"

    def to_double(self, depth: int) -> str:
        kind = self.random.choice((INT, STRING, STRING, DOUBLE))
        self.used[f"double({kind})"] += 1
        return f"double({self.of(kind, depth)})"

    def joined(self, depth: int) -> str:
        self.used["+ string"] += 1
        parts = [self.of(STRING, depth), self.literal(self.random.choice(TEXTS))]
        self.random.shuffle(parts)
        return f"({parts[0]} + {parts[1]})"

    def to_string(self, depth: int) -> str:
        kind = self.random.choice((INT, BOOL, BOOL, STRING))
        self.used[f"string({kind})"] += 1
        if kind == INT:
            return f"string(request.{self.random.choice(REQUEST_INTS)})"
        return f"string({self.of(kind, depth)})"

    def leaf_again(self, depth: int) -> str:
        return self.string_leaf()


_LEAVES: dict[str, tuple[Callable[[Generator], str], ...]] = {
    BOOL: (Generator.bool_leaf,),
    INT: (Generator.int_leaf,),
    DOUBLE: (Generator.double_leaf,),
    STRING: (Generator.string_leaf,),
}
_MAKERS: dict[str, tuple[Callable[[Generator, int], str], ...]] = {
    BOOL: (Generator.comparison, Generator.comparison, Generator.comparison, Generator.logic,
           Generator.logic, Generator.negated, Generator.member, Generator.key_in, Generator.has,
           Generator.text_test, Generator.text_test, Generator.matches, Generator.macro),
    INT: (Generator.int_sum, Generator.int_sum, Generator.int_sum, Generator.int_negated,
          Generator.size, Generator.to_int),
    DOUBLE: (Generator.double_sum, Generator.double_sum, Generator.double_sum,
             Generator.double_negated, Generator.to_double),
    STRING: (Generator.leaf_again, Generator.leaf_again, Generator.joined, Generator.to_string),
}  # fmt: skip


def mutated(text: str, rng: random.Random, other: str) -> str:
    """Return the text with one or two small things wrong, or still right."""
    for _ in range(rng.randint(1, 2)):
        text = rng.choice(_MUTATIONS)(text, rng, other)
    return text


def _drop(text: str, rng: random.Random, _: str) -> str:
    at = rng.randrange(len(text)) if text else 0
    return text[:at] + text[at + rng.randint(1, 3) :]


def _insert(text: str, rng: random.Random, _: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(_PIECES) + text[at:]


def _replace(text: str, rng: random.Random, _: str) -> str:
    old, new = rng.choice(_SWAPS)
    return text.replace(old, new, 1)


def _splice(text: str, rng: random.Random, other: str) -> str:
    return text[: rng.randint(0, len(text))] + other[rng.randint(0, len(other)) :]


_PIECES = (
    "1", "1.0", '"a"', "true", " ", "in", " in ", "-", "!", "(", ")", "[", "]", "{", "}", ".", ",", "'", '"',
    "\\", "r", "b", "u", "x", "null", "e5", "0x", "&&", "||", "?", ":", "==", "=", "//", "\n", "é", "node",
    "request", ".labels", ".size()", "as", "1u", "9223372036854775808", "dyn(", "{}", "[]", '"""', "\r", "\t",
    "`", "$", "\\d", "5.", "\u00a0", "\x00",
)  # fmt: skip
_SWAPS = (
    ("1", "1.0"), (".0", ""), ("node", "nodes"), ("creating", "creatin"), ("&&", "&"), ("||", "|"),
    ("==", "="), ("<", "=="), ("+", "%"), ("/", "%"), ("true", "1"), ("false", '"false"'), ('"', ""),
    ("int(", "double("), ("double(", "int("), ("size", "length"), ("startsWith", "startswith"),
    ("exists", "exists_one"), ("all(", "map("), ("labels", "label"), ("(", "(("), ("in [", "in ["),
    ("string(", "bool("), ("x", "node"), ("?", "??"), ("'", '"'), ("-", "--"), (" in ", " inx "),
    ("node.", "."), ("zone", "true"), ("gpu", "as"), ("[", "[[]"), (",", ",,"),
)  # fmt: skip
_MUTATIONS = (_drop, _insert, _replace, _replace, _splice)
