"""How a run trains: phases, resuming, checkpoints, optimizer stack."""
