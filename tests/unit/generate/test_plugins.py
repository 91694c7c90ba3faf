from __future__ import annotations

from cubesched.generate.plugins import plugins_page
from cubesched.plugins.registry import CONSTRAINTS, FILTERS, GUARDS, SCORES


def test_every_plugin_has_its_section_in_the_order_of_the_pipeline() -> None:
    headings = [line[4:] for line in plugins_page().splitlines() if line.startswith("### ")]

    stages = [stage.name for stage in (*GUARDS, *CONSTRAINTS)]
    assert headings == [*stages, *FILTERS, *SCORES]


def test_arguments_show_their_defaults_as_a_profile_spells_them() -> None:
    page = plugins_page()

    assert "| `imbalance_penalty` | number | `0.5` |" in page
    assert "| `include_local_create` | boolean | `true` |" in page
    assert "| `matchLabels` | map of strings | **required** |" in page
    assert "| `labels` | list of strings | `gpu` |" in page


def test_a_section_opens_with_the_sentence_of_the_module() -> None:
    assert "### mem\n\nQuota x over-commit - used >= requested, in bytes" in plugins_page()
