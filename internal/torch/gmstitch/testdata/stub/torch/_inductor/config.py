"""Stands for torch._inductor.config."""


class triton(object):
    cudagraph_trees = True
