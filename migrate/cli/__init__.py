"""The command line: options, printing, exit codes. No logic of its own."""
