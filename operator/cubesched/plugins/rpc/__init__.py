"""Filters and scores in other processes: servers on Unix sockets, asked over gRPC.

`plugin.proto` is the protocol. On the operator's side one `RpcHost` a socket keeps connected, in
the background, and asks; on the plugin's side `server` is all that its author imports.
"""
