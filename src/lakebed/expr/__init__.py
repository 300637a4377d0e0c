"""Predicates: read, bound to a schema, evaluated on rows, and on statistics without rows."""
