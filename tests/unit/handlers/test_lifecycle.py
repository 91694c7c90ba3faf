from __future__ import annotations

import itertools

import kopf

from cubesched.handlers.lifecycle import EndlessBackoffs, configure


def test_nothing_that_matters_is_left_to_kopfs_defaults() -> None:
    settings = kopf.OperatorSettings()

    configure(settings)

    assert not settings.posting.enabled
    assert settings.scanning.disabled
    assert settings.peering.standalone
    assert settings.watching.server_timeout == 600
    assert settings.watching.client_timeout == 660
    assert settings.watching.inactivity_timeout == 75


def test_the_delays_between_tries_never_end_and_start_afresh_for_each_call() -> None:
    backoffs = EndlessBackoffs()

    first = list(itertools.islice(backoffs, 1000))
    second = list(itertools.islice(backoffs, 3))

    assert max(first) == first[-1] == 10.0
    assert first[:3] == second
