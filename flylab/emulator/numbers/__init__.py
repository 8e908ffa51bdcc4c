"""What numbers are on the chips: small floats, rounding, the float mode, approximations."""
