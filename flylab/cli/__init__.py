"""The command line: `flylab doctor`, `lab`, `compile`, `run`, `env`, each in a file of its own."""
