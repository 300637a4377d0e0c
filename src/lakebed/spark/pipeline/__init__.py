"""Flows run on Spark."""
