"""One file a command: its flags, its frozen `Options`, `run(options)`."""
