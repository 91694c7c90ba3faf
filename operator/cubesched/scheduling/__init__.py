"""Who is tried when, how a decision becomes a binding, and what is told to whom meanwhile.

stream event -> ledger -> reservations (evaluate what is met) and queueing (who is pending)
loop         -> decide -> reserve; the reservation is confirmed when it is met in the stream
"""
