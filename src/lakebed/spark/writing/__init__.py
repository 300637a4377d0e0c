"""Frames into tables, and rows in tables changed: each in one commit."""
