"""The front door: composes the floors below, decides nothing."""
