"""The Fly dialect: its declaration in IRDL, its types as Python values, and how operations are built."""
