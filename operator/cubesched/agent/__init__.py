"""The node side: what runs on each machine that sandboxes are placed on.

    own requests ─ feed ─▶ requests ─▶ nodeagent ─▶ steps ─ statuses, writing ─▶ API server
                                          │           │
                             reporting ◀──┘           └──▶ runtime (yours)
                                 │
                                 ▼
                               Redis

A real node agent implements `runtime.Runtime` and calls `serving.serve`; simulated nodes
(`simulation`) do the same with a runtime that only pretends.
"""
