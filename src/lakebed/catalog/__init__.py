"""The pointer and the log: one compare-and-swap, kept by memory, SQLite, PostgreSQL or a store."""
