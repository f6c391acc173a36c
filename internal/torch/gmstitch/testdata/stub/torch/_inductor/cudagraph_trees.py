"""Stands for torch._inductor.cudagraph_trees."""
