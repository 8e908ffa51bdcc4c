"""What un-migrated kernels import from here; new ones need none of it."""
