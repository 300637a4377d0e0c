"""Which files a read needs, and why the others are not needed."""
