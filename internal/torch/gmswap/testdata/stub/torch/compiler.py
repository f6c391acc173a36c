"""Stands for torch.compiler."""

compiling = False


def is_compiling():
    return compiling
