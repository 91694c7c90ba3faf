"""The API server: connection, list-watch, conditional writes, events, Leases."""
