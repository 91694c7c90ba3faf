"""The built-in plugins, one a file; `plugins.registry` is their table."""
