"""The hash of bucket partitions: Murmur3, x86, 32 bits, seed 0, over many values at once.

The same hash as Iceberg's, so that its readers find the same buckets. All arithmetic is modulo
2**32, which is what numpy's unsigned integers do.
"""

from typing import Any

import numpy as np

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_BLOCK_BYTES = 4


def hash_longs(values: Any) -> Any:
    """Hash an int64 array, each value as its eight bytes, lowest first."""
    bits = values.astype(np.int64, copy=False).view(np.uint64)
    low, high = bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
    hashed = _mixed(np.zeros(len(values), np.uint32), low)
    return _finished(_mixed(hashed, high), np.uint32(8))


def hash_bytes(data: Any, starts: Any, lengths: Any) -> Any:
    """Hash each piece of a uint8 array, given by its start and length."""
    hashed = np.zeros(len(starts), np.uint32)
    if not len(starts):
        return hashed
    block_counts = lengths // _BLOCK_BYTES
    active = np.arange(len(starts))
    for number in range(int(block_counts.max())):
        active = active[block_counts[active] > number]
        at = starts[active] + _BLOCK_BYTES * number
        hashed[active] = _mixed(hashed[active], _little_endian(data, at, _BLOCK_BYTES))
    for rest in range(1, _BLOCK_BYTES):
        short = np.flatnonzero(lengths % _BLOCK_BYTES == rest)
        at = starts[short] + _BLOCK_BYTES * block_counts[short]
        hashed[short] ^= _scrambled(_little_endian(data, at, rest))
    return _finished(hashed, lengths.astype(np.uint32))


def _little_endian(data: Any, at: Any, width: int) -> Any:
    number = np.zeros(len(at), np.uint32)
    for place in range(width):
        number |= data[at + place].astype(np.uint32) << np.uint32(8 * place)
    return number


def _rotated(number: Any, bits: int) -> Any:
    return (number << np.uint32(bits)) | (number >> np.uint32(32 - bits))


def _scrambled(block: Any) -> Any:
    return _rotated(block * _C1, 15) * _C2


def _mixed(hashed: Any, block: Any) -> Any:
    return _rotated(hashed ^ _scrambled(block), 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finished(hashed: Any, lengths: Any) -> Any:
    hashed = hashed ^ lengths
    hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashed ^ (hashed >> np.uint32(16))
