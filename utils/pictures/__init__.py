"""Pictures of results, one drawing per file; each returns a matplotlib Axes."""
