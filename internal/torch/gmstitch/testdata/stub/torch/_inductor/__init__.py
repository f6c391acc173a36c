"""Stands for torch._inductor."""
