"""What one expression may cost, so that none can stall a decision.

Static: length, nesting, list sizes and the sum of what its operations cost on 5,000 nodes.
At run time: how much text that was never seen before one decision reads.
"""

from __future__ import annotations

from typing import Final

MAX_CHARACTERS: Final = 4096
MAX_NESTING: Final = 32
"""Brackets within brackets."""
MAX_DEPTH: Final = 50
"""Operations within operations: `1 + 1 + 1` is two deep, `a && b && c` one."""
MAX_LIST: Final = 100
"""Values in one list."""
MAX_MACROS: Final = 2
"""`exists` and `all` within one another."""
MAX_COST_US: Final = 2000.0
"""What all operations together may take on 5,000 nodes, by their nominal costs."""
MAX_ERRORS: Final = 200
"""Different ways in which one expression can fail."""
MAX_PROBLEMS: Final = 10
"""Errors that are listed for one expression."""
MAX_PATTERN_CHARACTERS: Final = 256
MAX_PATTERN_SIZE: Final = 1000
"""Instructions that RE2 makes of a pattern."""
MAX_MATCHED_CHARACTERS: Final = 1024
"""`matches` is an error on longer text."""

SCALAR_COST_US: Final = 1.0
"""An operation on values that are the same for every node."""
FRESH_NS: Final = 2_500_000
"""Text that one evaluation may newly read on 5,000 nodes, in nominal nanoseconds; more on more."""
FRESH_ROWS: Final = 5_000
FRESH_START_NS: Final = 50_000
"""Finding which texts of a column are new."""
TEXT_NS: Final = 200
"""A cheap operation on one new text, beside what its length adds."""
MATCH_NS: Final = 1_500
"""`matches` on one new text; what it really takes, where that is longer."""
