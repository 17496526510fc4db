"""One file per command: its flags, its frozen `Options`, `run(options)`."""
