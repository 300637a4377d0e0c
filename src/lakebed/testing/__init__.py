"""What tests of the library and of its users share: contracts, servers, faults.

Shipped, but never imported by the rest of the library.
"""
