"""Snapshots, manifests and data files, to and from storage."""
