"""Cannot be imported, as a package whose dependency is missing."""

raise ImportError("No module named 'inventory'")
