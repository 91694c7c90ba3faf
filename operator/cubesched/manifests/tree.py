"""YAML documents with the place of every field.

Built from the parser's events, never by PyYAML's own constructors: positions and duplicate keys
stay, and neither depth nor aliases can make more of a document than its bounds allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from cubesched.manifests.nodes import (
    MAX_DEPTH,
    MAX_DOCUMENT_CHARS,
    Broken,
    Document,
    Flaw,
    Node,
    Place,
)
from cubesched.manifests.scalars import Scalar, as_json, key, plain

MAX_BROKEN: Final = 20
"""Documents of one file that cannot be read, before the rest is given up."""
MAX_REPEATED: Final = 20
"""Keys that stand twice in one document, before the rest is not told."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_HINTS: Final = {
    "mapping values are not allowed in this context": '; put a text with ": " in it in quotes',
}
"""What most often helps: an expression with `? :` is easily left bare."""
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_TAG: Final = "tag:yaml.org,2002:"
_TAGS: Final[Mapping[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
}
_TOO_DEEP: Final = f"more than {MAX_DEPTH} levels deep"
_TOO_LARGE: Final = f"more than {MAX_DOCUMENT_CHARS:,} characters in one document, aliases followed"


def read_documents(text: str) -> Iterator[Document | Flaw]:
    """Yield every document, and a Flaw in the place of each that cannot be read; never raises.

    Reading goes on with the next line that starts a document.
    """
    if odd := yaml.reader.Reader.NON_PRINTABLE.search(text):
        line = text.count("\n", 0, odd.start()) + 1
        yield Flaw(Place(line, 1), f"not YAML: the character {odd[0]!a} is not allowed")
        return
    start, first_line = 0, 1
    for _ in range(MAX_BROKEN):
        composer = Composer(text[start:], first_line)
        try:
            yield from composer.documents()
        except Broken as broken:
            yield broken.flaw
            after = max(broken.flaw.place.line, composer.document_line + 1)
        else:
            return
        following = _next_separator(text, after)
        if following is None:
            return
        start, first_line = following
    yield Flaw(Place(first_line, 1), "too many errors: the rest of the file is not read")


def _next_separator(text: str, line: int) -> tuple[int, int] | None:
    """Return offset and number of the first line at or after `line` that begins a document."""
    offset = 0
    for _ in range(line - 1):
        offset = text.find("\n", offset) + 1
        if not offset:
            return None
    found = _SEPARATOR.search(text, offset)
    return found and (found.start(), line + text.count("\n", offset, found.start()))


class Composer:
    """Makes documents of the events of one stream."""

    def __init__(self, text: str, first_line: int) -> None:
        self._first_line = first_line
        self._events = self._parsed(text)
        self._anchors: dict[str, Node | None] = {}
        self._repeated: list[Flaw] = []
        self.document_line = first_line
        """Where the document begins that is being read."""

    def documents(self) -> Iterator[Document]:
        """Yield each document; raise Broken where one cannot be read."""
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                self.document_line = self._place(event).line
                self._anchors.clear()
                self._repeated.clear()
                root = self._node(next(self._events), MAX_DEPTH)
                yield Document(root, tuple(self._repeated))

    def _parsed(self, text: str) -> Iterator[Event]:
        try:
            yield from yaml.parse(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = self._at(mark.line, mark.column) if mark is not None else self._at(0, 0)
            told = ", ".join(filter(None, (error.context, error.problem)))
            told += _HINTS.get(error.problem or "", "")
            raise Broken(place, f"not YAML: {told}") from None
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            # PyYAML without its C library meets characters beyond Unicode with chr().
            raise Broken(self._at(0, 0), f"not YAML: {' '.join(str(error).split())}") from None

    def _at(self, line: int, column: int) -> Place:
        return Place(self._first_line + line, column + 1)

    def _place(self, event: Event) -> Place:
        mark = event.start_mark
        assert mark is not None, event  # only events that a program made have none
        return self._at(mark.line, mark.column)

    def _node(self, event: Event, levels_left: int) -> Node:
        """Return what begins with this event; `levels_left` counts it in."""
        if isinstance(event, AliasEvent):
            return self._alias(event, levels_left)
        assert isinstance(event, NodeEvent)
        if levels_left == 0:
            raise Broken(self._place(event), _TOO_DEEP)
        if event.anchor:
            self._anchors[event.anchor] = None
        node = self._built(event, levels_left - 1)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _built(self, event: NodeEvent, levels_left: int) -> Node:
        if isinstance(event, SequenceStartEvent):
            return self._sequence(event, levels_left)
        if isinstance(event, MappingStartEvent):
            return self._mapping(event, levels_left)
        assert isinstance(event, ScalarEvent)
        chars = self._sum(0, len(event.value) + 1, self._place(event))
        return Node(self._scalar(event), self._place(event), chars, is_literal=event.style == "|")

    def _alias(self, event: AliasEvent, levels_left: int) -> Node:
        place = self._place(event)
        if event.anchor not in self._anchors:
            raise Broken(place, f"there is no anchor &{event.anchor} before this")
        node = self._anchors[event.anchor]
        if node is None:
            raise Broken(place, f"*{event.anchor} is part of what it stands for")
        if node.height >= levels_left:
            raise Broken(place, _TOO_DEEP)
        return node

    def _sequence(self, event: NodeEvent, levels_left: int) -> Node:
        items: list[Node] = []
        places: list[Place] = []
        chars = 1
        for inner in self._until(SequenceEndEvent):
            items.append(self._node(inner, levels_left))
            places.append(self._place(inner))
            chars = self._sum(chars, items[-1].chars, places[-1])
        return Node(
            [item.value for item in items],
            self._place(event),
            chars,
            _height(items),
            dict(enumerate(items)),
            dict(enumerate(places)),
        )

    def _mapping(self, event: NodeEvent, levels_left: int) -> Node:
        below: dict[str | int, Node] = {}
        keys: dict[str | int, Place] = {}
        merged: list[Node] = []
        chars = 1
        for inner in self._until(MappingEndEvent):
            name, place = self._key(inner), self._place(inner)
            node = self._node(next(self._events), levels_left)
            chars = self._sum(chars, len(name) + node.chars, place)
            if name == "<<" and _is_plain(inner):
                merged += _maps(node, place)
            else:
                self._note_repeated(name, place, keys)
                below[name], keys[name] = node, place
        for each in merged:
            for inherited, inner_node in each.below.items():
                below.setdefault(inherited, inner_node)
                keys.setdefault(inherited, each.keys[inherited])
        value = {name: node.value for name, node in below.items()}
        return Node(value, self._place(event), chars, _height(below.values()), below, keys)

    def _note_repeated(self, name: str, place: Place, keys: Mapping[str | int, Place]) -> None:
        if name in keys and len(self._repeated) < MAX_REPEATED:
            message = f'the key "{name}" stands twice, first in line {keys[name].line}'
            self._repeated.append(Flaw(place, message))

    def _until(self, end: type[Event]) -> Iterator[Event]:
        while not isinstance(event := next(self._events), end):
            yield event

    def _sum(self, chars: int, more: int, place: Place) -> int:
        """Add, or stop where aliases make a small text huge."""
        if chars + more > MAX_DOCUMENT_CHARS:
            raise Broken(place, _TOO_LARGE)
        return chars + more

    def _key(self, event: Event) -> str:
        is_readable = isinstance(event, ScalarEvent | AliasEvent)
        value = self._node(event, 1).value if is_readable else None
        if value is None or isinstance(value, dict | list):
            raise Broken(self._place(event), "a key must be text")
        return key(value, event.value if isinstance(event, ScalarEvent) else str(value))

    def _scalar(self, event: ScalarEvent) -> Scalar:
        tag, text = event.tag, event.value
        if tag is None:
            return plain(text) if _is_plain(event) else text
        name = tag.removeprefix(_TAG)
        if name in ("str", "!"):
            return text
        value = plain(text)
        if not isinstance(value, _TAGS.get(name, ())):
            raise Broken(self._place(event), f"the tag {tag} cannot be read here")
        return as_json(float(value)) if name == "float" and value is not None else value


def _is_plain(event: Event) -> bool:
    """Tell whether a scalar stands there without quotes and without a tag."""
    return isinstance(event, ScalarEvent) and not event.style and event.tag is None


def _maps(node: Node, place: Place) -> list[Node]:
    """Return what `<<` is given: the first of several maps wins."""
    nodes = list(node.below.values()) if isinstance(node.value, list) else [node]
    if not all(isinstance(each.value, dict) for each in nodes):
        raise Broken(place, "<< must be given a map, or a list of maps")
    return nodes


def _height(nodes: Iterable[Node]) -> int:
    return max((node.height + 1 for node in nodes), default=0)
