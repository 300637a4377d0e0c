"""The command line: parse, call one function, emit one report."""
