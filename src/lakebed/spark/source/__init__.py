"""`format("lakebed")`: batch and stream, in Spark's own idiom."""
