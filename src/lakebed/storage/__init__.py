"""Bytes at rest: one small contract, kept by local disk, memory and object stores."""
