"""Writers and readers agree on where a node's report lives, now and in any later version."""

from cubesched.adapters.nodemetrics.keys import key_of, shard_of


def test_a_node_has_one_place_that_does_not_change() -> None:
    assert key_of(0) == "cubesched:metrics:0"
    assert shard_of("node-17", 1) == 0
    assert shard_of("node-17", 4) == 3


def test_nodes_spread_over_the_shards() -> None:
    shards = [shard_of(f"node-{number}", 4) for number in range(1_000)]

    assert all(200 < shards.count(shard) < 300 for shard in range(4))
