"""What a table is: values and their one byte form; nothing here does I/O."""
