"""Counters of a watched launch: probes that count (`instrument.py`), and what they counted (`results.py`)."""
