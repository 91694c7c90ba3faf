from __future__ import annotations

from cubesched.agent.runtime import Limits
from cubesched.agent.simulated import SimulatedRuntime
from cubesched.agent.stored import Stored, stored_on
from cubesched.api.v1alpha1 import MAX_IMAGES, SandboxNodeStatus
from cubesched.fleet.entries import Weight


def stored(images: dict[str, int]) -> Stored:
    return stored_on(
        SimulatedRuntime(
            "n", limits=Limits(1, 1), capacity=Weight(1, 1), templates=("t",), images=images
        )
    )


def test_the_same_images_in_another_order_are_no_change() -> None:
    assert stored({"b": 1, "a": 2}) == stored({"a": 2, "b": 1})
    assert stored({"b": 1, "a": 2}) != stored({"b": 1, "a": 3})


def test_of_too_many_images_the_smallest_are_left_out() -> None:
    images = {f"image-{number:03}": 1000 - number for number in range(MAX_IMAGES + 5)}

    kept = stored(images).images

    assert kept == tuple(list(images.items())[:MAX_IMAGES])


def test_what_is_written_is_what_the_schema_takes() -> None:
    status = stored({"registry.example/app:1": 5}).status()

    assert SandboxNodeStatus.model_validate(status).images[0].size_bytes == 5
    assert status["templates"] == ["t"]
