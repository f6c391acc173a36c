"""Which of several sizes make up a number of bytes."""


def fitting(sized, nbytes):
    """Returns the fewest of tensors with their sizes that have so many bytes together, nearly: the largest, and the smallest that will do as the last one."""
    chosen, left = [], sorted(sized, key=lambda pair: pair[0])
    while left and nbytes > 0:
        size, tensor = next((pair for pair in left if pair[0] >= nbytes), left[-1])
        left = [pair for pair in left if pair[1] is not tensor]
        chosen.append(tensor)
        nbytes -= size
    return chosen
