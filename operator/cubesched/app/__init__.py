"""The composition root: every part of one replica, wired once, with no globals."""
