from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cubesched.policy.patterns import PatternInvalid, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("gpu-.*", "gpu-a100"),
        ("gpu-.*", "xgpu-a100"),
        ("^cube(box|vm)$", "cubebox"),
        ("^cube(box|vm)$", "cubeboxes"),
        (r"(?i)GPU\d{1,3}", "gpu12"),
        (r"(?i)GPU\d{1,3}", "gpu1234"),
        ("(?i)[^a]b", "Ab"),
        ("[^a-c]+", "def"),
        (r"[\w.]+-\d", "a_1.x-7"),
        ("a|b|", ""),
        ("(ab)*c??", "ababc"),
        ("$|x", "x"),
        ("", "a"),
    ],
)
def test_matches_whole_texts_as_python_does(pattern: str, text: str) -> None:
    expected = re.fullmatch(pattern, text) is not None

    assert compile_pattern(pattern).fullmatch(text) is expected


@settings(max_examples=400, deadline=None)
@given(
    pattern=st.from_regex(
        r"([ab.]|[ab][*+?]|\(a\|b\)[*?]?|\[ab\]|a{1,3}|\^|\$){0,6}", fullmatch=True
    ),
    text=st.text(alphabet="ab", max_size=8),
)
def test_agrees_with_python_on_random_patterns(pattern: str, text: str) -> None:
    expected = re.fullmatch(pattern, text) is not None

    assert compile_pattern(pattern).fullmatch(text) is expected


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a?){60}a{60}", ".*.*.*.*.*.*b"])
def test_no_pattern_takes_more_than_linear_time(pattern: str) -> None:
    compiled = compile_pattern(pattern)

    started = time.perf_counter()
    compiled.fullmatch("a" * 200)

    assert time.perf_counter() - started < 0.5


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a)\1", "backreferences"),
        (r"(?P<x>a)(?P=x)", "backreferences"),
        ("(?=a)b", "lookarounds"),
        ("(?<!a)b", "lookarounds"),
        ("(?>a)", "atomic"),
        ("a++", "possessive"),
        (r"\bgpu", "word boundaries"),
        ("(gpu", "position 0"),
        ("a{900}{900}", "position"),
        ("((a{100}){100}){100}", "too large"),
        ("(" * 500 + "a" + ")" * 500, "regular expression"),
    ],
)
def test_what_re2_does_not_have_is_refused_with_its_name(pattern: str, reason: str) -> None:
    with pytest.raises(PatternInvalid, match=reason):
        compile_pattern(pattern)
