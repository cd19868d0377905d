"""The Python side of Batchwright: tokenising (prepare)."""
