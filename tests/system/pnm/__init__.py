"""The near-memory unit's arithmetic and the flow files, read from their pages alone, with nothing but Python itself."""
