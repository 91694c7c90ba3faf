"""`cubesched demo`: the main job, end to end, with real servers and separate processes."""
