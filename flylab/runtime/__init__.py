"""Running what was compiled: the choice of a device, launch arguments, and the launch itself."""
