"""Which registers and bytes of LDS hold a value: how definedness goes through instructions, and where it is looked at.

Vector registers have a bit for each lane, scalar ones a bit for each bit, LDS a byte for each byte.
"""
