"""Stands for torch.compile's backend: its estimate of memory, and what its scheduler keeps for that."""
