"""Kopf comes in here and goes no further: parse, call, return None.

Handlers are closed over an `App` (`ports`) and attached by `operator.register`. They never write
to users' objects beyond server-side apply of the operator's own status fields: no finalizers, no
annotations. What an event announces is done by background loops (`policy_reconciler`,
`node_statuses`) that read the state anew.
"""
