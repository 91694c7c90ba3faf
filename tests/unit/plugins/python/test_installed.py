"""Finding, importing and making plugins: every fault is a problem of the Profile, with its path."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest
from tests.unit.plugins.python.samples import (
    HERE,
    InZone,
    Scripted,
    Slow,
    an_offer,
    installed,
    problems,
)

from cubesched.plugins.python.installed import Installed, offers

WHERE = f"{HERE}:%s of samples 1.0"
ASK_STRICT = 'unknown argument; did you mean "strict"?'


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    Scripted.made = 0
    Slow.gate.clear()
    yield
    Slow.gate.set()


def test_a_plugin_is_made_with_its_arguments_checked() -> None:
    _, plugin = installed(an_offer("zone", "InZone")).plugin("zone", "filter", {"zone": "a"})

    assert isinstance(plugin, InZone)
    assert plugin.args.zone == "a"


def test_an_instance_is_made_once_for_each_set_of_arguments() -> None:
    found = installed(an_offer("any", "Scripted"), an_offer("zone", "InZone"))

    assert found.plugin("any", "filter", {})[1] is found.plugin("any", "score", {})[1]
    assert Scripted.made == 1
    one = found.plugin("zone", "filter", {"zone": "a", "strict": False})[1]
    assert found.plugin("zone", "filter", {"strict": False, "zone": "a"})[1] is one
    assert found.plugin("zone", "filter", {"zone": "b", "strict": False})[1] is not one


NAMES = [
    ("zon", 'no installed package offers the python filter "zon"; did you mean "zone"?'),
    ("twice", '"twice" is offered more than once: by one 1.0 and two 2.0; uninstall all but one'),
    ("idle", '"idle" is a score, not a filter'),
    (
        "import",
        (
            '"import" (tests.unit.plugins.python.broken_module:Any of samples 1.0) cannot be'
            " imported: ImportError: No module named 'inventory'"
        ),
    ),
    (
        "nowhere",
        (
            f"\"nowhere\" ({WHERE % 'Nowhere'}) cannot be imported: AttributeError: module '{HERE}'"
            " has no attribute 'Nowhere'"
        ),
    ),
    (
        "function",
        (
            f'"function" ({WHERE % "a_function"}) is a function, not a class made from'
            " ColumnFilter, NodeFilter, ColumnScore, NodeScore"
        ),
    ),
    (
        "refusing",
        (
            f'"refusing" ({WHERE % "Refusing"}) cannot be made: ValueError: no such zone in the'
            " inventory"
        ),
    ),
    ("exiting", f'"exiting" ({WHERE % "Exiting"}) cannot be made: SystemExit: 3'),
    (
        "elsewhere",
        f'"elsewhere" ({WHERE % "Elsewhere"}) cannot be made: TypeError: the class made a str',
    ),
]
ARGS: list[tuple[str, dict[str, object], str, str]] = [
    ("zone", {}, "args.zone", "Field required"),
    ("zone", {"zone": 1}, "args.zone", "Input should be a valid string"),
    ("zone", {"zone": "a", "strickt": 1}, "args.strickt", ASK_STRICT),
    ("any", {"x": 1}, "args.x", "unknown argument; there are none"),
    (
        "zone",
        {"zone": "broken"},
        "name",
        f"\"zone\" ({WHERE % 'InZone'}) cannot be made: KeyError: 'broken'",
    ),
]


@pytest.mark.parametrize(("name", "message"), NAMES)
def test_a_plugin_that_cannot_be_had_is_a_problem_of_its_name(name: str, message: str) -> None:
    args = {"zone": "a"} if name in ("refusing", "elsewhere") else {}

    assert problems(lambda: several().plugin(name, "filter", args)) == (("name", message),)


@pytest.mark.parametrize(("name", "args", "path", "message"), ARGS)
def test_wrong_arguments_are_named_with_their_path(
    name: str, args: dict[str, object], path: str, message: str
) -> None:
    assert problems(lambda: several().plugin(name, "filter", args)) == ((path, message),)


def test_a_filter_is_no_score() -> None:
    assert problems(lambda: several().plugin("zone", "score", {"zone": "a"})) == (
        ("name", '"zone" is a filter, not a score'),
    )


def several() -> Installed:
    """Return plugins of which most cannot be had."""
    return installed(
        an_offer("zone", "InZone"),
        an_offer("idle", "Idle"),
        an_offer("any", "Scripted"),
        an_offer("twice", "InZone", "two 2.0"),
        an_offer("twice", "InZone", "one 1.0"),
        an_offer("import", "tests.unit.plugins.python.broken_module:Any"),
        an_offer("nowhere", "Nowhere"),
        an_offer("function", "a_function"),
        an_offer("refusing", "Refusing"),
        an_offer("exiting", "Exiting"),
        an_offer("elsewhere", "Elsewhere"),
    )


def test_a_class_without_its_method_is_refused() -> None:
    found = installed(an_offer("bare", "WithoutMethods"))

    [(path, message)] = problems(lambda: found.plugin("bare", "filter", {}))

    assert path == "name"
    assert "cannot be made: TypeError: Can't instantiate abstract class" in message


def test_making_a_plugin_is_waited_for_only_so_long_and_used_once_it_is_done() -> None:
    found = installed(an_offer("slow", "Slow"))
    offered = found._one("slow", "filter")
    offered.plugin_class()
    offered.seconds = 0.03
    late = "cannot be made: its thread has not returned for 0.03 s"

    def make() -> object:
        return found.plugin("slow", "filter", {"zone": "a"})[1]

    for _ in range(2):
        assert problems(make) == (("name", f'"slow" ({WHERE % "Slow"}) {late}'),)
    Slow.gate.set()
    next(iter(offered._instances.values())).job.done.result(5)
    assert isinstance(make(), Slow)


def test_only_the_latest_instances_are_kept() -> None:
    found = installed(an_offer("zone", "InZone"))
    for number in range(70):
        found.plugin("zone", "filter", {"zone": f"z{number}"})

    assert len(found._offered["zone"]._instances) == 64


def a_package(folder: Path, name: str, entry_points: str, version: str = "1.0") -> Distribution:
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)
    return PathDistribution(info)


def test_packages_offer_what_their_entry_points_say(tmp_path: Path) -> None:
    one = a_package(tmp_path, "zones", "[cubesched.plugins]\nzone = zones:InZone\n[other]\na = b\n")
    two = a_package(tmp_path, "other", "[console_scripts]\nrun = other:main\n")

    assert [(o.package, o.entry.name, o.entry.value) for o in offers([one, two])] == [
        ("zones 1.0", "zone", "zones:InZone")
    ]


def test_the_first_of_two_copies_of_one_package_counts(tmp_path: Path) -> None:
    text = "[cubesched.plugins]\nzone = zones:InZone\n"
    one = a_package(tmp_path / "a", "my-zones", text, "2.0")
    two = a_package(tmp_path / "b", "my_zones", text, "1.0")

    assert [offer.package for offer in offers([one, two])] == ["my-zones 2.0"]


def test_a_package_that_cannot_be_read_hides_its_own_plugins_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = a_package(tmp_path, "bad", "[cubesched.plugins]\nno equals sign\n")
    good = a_package(tmp_path, "good", "[cubesched.plugins]\nzone = zones:InZone\n")

    assert [offer.package for offer in offers([bad, good])] == ["good 1.0"]
    assert "the entry points of a package cannot be read" in caplog.text
