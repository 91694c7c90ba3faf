"""The pure half: frozen columns in, a decision out.

No clock, randomness, logging, asyncio, I/O or third-party client may be imported here;
the import contract in pyproject.toml checks it.
"""
