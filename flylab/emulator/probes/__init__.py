"""Probes: native code in front of an instruction's handler, for launches that are watched (checks, counters, log)."""
