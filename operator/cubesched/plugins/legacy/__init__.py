"""CubeMaster's scores where they differ from ours: for SchedulerConfig.spec.legacy alone.

No Profile can list them. They place as the old ones did: nodes stand in the same order, though a
score may be the old one times a constant.
"""
