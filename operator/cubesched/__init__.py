"""cubesched places sandboxes on Kubernetes nodes, by policies that are custom resources.

The path of one request, reading down the folders:

    watch line - adapters.cluster -> fleet.ledger (stream order) -> scheduling.queue
    scheduling loop   1 lease the active pipeline       policy.active
                      2 take the fleet's version        fleet.columns
                      3 decide                          core.cycle: guards, constraints, filters,
                                                        scores, selection
                      4 assume                          one row, undone when the write fails
                      5 reserve: a conditional write    adapters.cluster
                      6 confirm on meeting it in the stream, else move on to the next best
                      7 explain, count, notify          core.explaining, adapters.telemetry

Imports point down only, which import-linter checks:

    __main__ > cli > app | generate | local | manifests > handlers > agent | relay
             > scheduling | adapters > policy | fleet > plugins > core | api | settings
"""
