"""How a Profile rates the nodes that are left, 0-100, higher is better."""
