"""From an instruction's text to its record: operands, modifiers, encodings, and what a chip has."""
