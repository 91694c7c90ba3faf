"""Policy objects become one compiled, immutable set that attempts lease: the whole set or nothing.

`compiler` turns SchedulerProfiles and the SchedulerConfig into a `PolicySet` or into every error
at once; `active` holds the set in force and swaps it whole; `verdicts` says what should stand on
each object. No I/O and no clock here: whoever calls passes objects in and writes statuses out.
"""
