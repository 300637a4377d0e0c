"""Tables as frames, views and SQL names."""
