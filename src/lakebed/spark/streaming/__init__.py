"""Streams into tables, each batch exactly once."""
