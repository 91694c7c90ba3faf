"""What nodes report each second, in Redis: written by agents, read whole by replicas."""
