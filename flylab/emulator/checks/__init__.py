"""What a watched launch is checked for, one file a check; `flylab.emulator.watch` lists them."""
