"""Supply and demand as this replica knows them.

Node objects, the ledger of requests, metrics and assumptions are filled into the columns that
decisions read. One owner: the event loop.
"""
