"""Writes as the scheduler relies on them; see `semantics`."""

from __future__ import annotations

from tests.model.http import Http, a_node, a_request, placed, version_of

from cubesched.api import NODES


async def a_status_preset_on_create_is_dropped(http: Http, name: str) -> None:
    code, created = await http.create({**a_request(name), "status": {"phase": "Failed"}})

    assert code == 201
    assert created["status"] == {"phase": "Pending", "attempts": 0}, "only what is the default"


async def a_name_is_created_once(http: Http, name: str) -> None:
    await http.create(a_request(name))

    code, status = await http.create(a_request(name))

    assert (code, status["reason"]) == (409, "AlreadyExists")


async def a_status_write_is_conditional(http: Http, name: str) -> None:
    _, old = await http.create(a_request(name))
    _, new = await http.put_status(old, placed("Reserved"))
    bound = placed("Bound")

    assert (await http.put_status(old, bound))[0] == 409, "stale version"
    assert (await http.put_status(new, bound, resourceVersion=None))[0] == 422, "no version"
    assert (await http.put_status(new, bound, uid="0000"))[0] == 409, "another object's uid"
    assert (await http.put_status(new, bound))[0] == 200
    await http.delete(name)
    assert (await http.put_status(new, bound))[0] == 404, "gone"


async def a_lean_status_write_keeps_spec_and_metadata(http: Http, name: str) -> None:
    _, created = await http.create(a_request(name, priority=7))

    await http.put_status(created, {"phase": "Pending"})

    _, stored = await http.get(name)
    assert stored["spec"] == created["spec"]
    assert stored["metadata"]["labels"] == {"workload": "test"}
    assert stored["metadata"]["generation"] == 1


async def a_write_of_the_object_leaves_its_status(http: Http, name: str) -> None:
    _, created = await http.create(a_request(name))
    _, reserved = await http.put_status(created, placed("Reserved"))
    labelled = {**reserved, "metadata": {**reserved["metadata"], "labels": {"a": "b"}}}

    code, stored = await http.replace({**labelled, "status": {"phase": "Failed"}})

    assert code == 200
    assert stored["status"]["phase"] == "Reserved"
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert (await http.put_status(reserved, {"phase": "Failed"}))[0] == 409, "metadata moved on"


async def a_name_used_again_is_another_object(http: Http, name: str) -> None:
    _, first = await http.create(a_request(name))
    await http.delete(name)
    _, second = await http.create(a_request(name))

    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    stale = {"resourceVersion": version_of(second), "uid": first["metadata"]["uid"]}
    assert (await http.put_status(second, {"phase": "Failed"}, **stale))[0] == 409
    assert (await http.put_status(first, {"phase": "Failed"}, uid=None))[0] == 409


async def a_merge_patch_is_unconditional_and_does_not_look_at_the_uid(
    http: Http, name: str
) -> None:
    _, created = await http.create(a_request(name))
    await http.put_status(created, placed("Reserved"))
    patch = {"metadata": {"uid": "0000"}, "status": {"phase": "Failed", "nodeName": None}}

    code, stored = await http.patch(name, patch, subresource="status")

    assert code == 200
    assert stored["status"]["phase"] == "Failed"
    assert "nodeName" not in stored["status"]
    stale = {"metadata": {"resourceVersion": version_of(created)}, "status": {"phase": "Succeeded"}}
    assert (await http.patch(name, stale, subresource="status"))[0] == 409


async def a_deletion_can_be_bound_to_a_uid(http: Http, name: str) -> None:
    _, created = await http.create(a_request(name))
    uid = created["metadata"]["uid"]

    assert (await http.delete(name, {"preconditions": {"uid": "0000"}}))[0] == 409
    assert (await http.delete(name, {"preconditions": {"uid": uid}}))[0] == 200
    assert (await http.delete(name))[0] == 404


async def managers_apply_their_own_part_of_a_status(http: Http, name: str) -> None:
    nodes = Http(http.transport, NODES)
    meta = {"metadata": {"name": name}}
    ready = {"type": "Ready", "status": "True", "reason": "Up", "message": ""}
    stamp = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    accepted = {**ready, "type": "Accepted", "reason": "Valid"}
    try:
        await nodes.create(a_node(name))
        by_agent = {"conditions": [{**ready, **stamp}], "templates": ["t1"]}
        by_operator = {"conditions": [{**accepted, **stamp}]}
        for manager, status in (("agent", by_agent), ("operator", by_operator)):
            code, _ = await nodes.apply(
                {**meta, "status": status}, manager=manager, subresource="status", force=True
            )
            assert code == 200
        await nodes.apply(
            {**meta, "status": {"conditions": [{**ready, **stamp}]}},
            manager="agent",
            subresource="status",
            force=True,
        )

        _, stored = await nodes.get(name)

        kinds = {condition["type"] for condition in stored["status"]["conditions"]}
        assert kinds == {"Ready", "Accepted"}
        assert "templates" not in stored["status"], "what its manager no longer names is gone"
    finally:
        await nodes.delete(name)


async def a_broken_write_is_told_from_a_lost_race(http: Http, name: str) -> None:
    _, created = await http.create(a_request(name))
    other = {"metadata": {**created["metadata"], "name": f"{name}-2"}}

    assert (await http.create({"spec": {}, "metadata": {"name": name}}))[0] == 400, "no kind"
    assert (await http.send("PUT", http.path(name), {**created, **other}))[0] == 400
    assert (await http.create({**created, **other}))[0] == 500, "a version preset"
    assert (await http.replace({**created, **other}))[0] == 404


async def a_lease_is_created_by_a_put_and_then_conditional(http: Http, name: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{http.namespace}/leases"
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": "a"},
    }
    renewed = {**lease, "spec": {"holderIdentity": "b"}}

    code, first = await http.send("PUT", f"{path}/{name}", lease)
    conditional = {**renewed, "metadata": {"name": name, "resourceVersion": version_of(first)}}

    assert code == 201
    assert (await http.send("PUT", f"{path}/{name}", renewed))[0] == 422
    assert (await http.send("PUT", f"{path}/{name}", conditional))[0] == 200
    assert (await http.send("PUT", f"{path}/{name}", conditional))[0] == 409
    assert (await http.send("DELETE", f"{path}/{name}"))[0] == 200


async def an_object_is_pruned_defaulted_and_checked(http: Http, name: str) -> None:
    _, created = await http.create({**a_request(name, nonsense=1)})
    _, pending = await http.put_status(created, {"nonsense": 1})

    assert "nonsense" not in created["spec"]
    assert created["spec"]["priority"] == 0
    assert pending["status"] == {"phase": "Pending", "attempts": 0}
    assert (await http.put_status(pending, {"phase": "Bound"}))[0] == 422, "bound to nothing"
    assert (await http.put_status(pending, {"phase": "Nowhere"}))[0] == 422
    assert (await http.put_status(pending, {"attempts": "many"}))[0] == 422
