"""One watch of all requests for the agents of a whole fleet, over the API server's own protocol.

    API server ─ one list-watch ─▶ fanout ─ window ─▶ watches ─ server ─▶ agents, one watch each
                     │                                   ▲
                     └──── probes ─▶ freshness ─ service ┘

An agent gets through the relay what its own field-selected watch would tell it: the same objects
in the same order at the same versions, or an end of the stream that makes it list again.
"""
