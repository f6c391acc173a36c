"""What is in a program's modules."""


def parts(module):
    """Returns a module and all that are in it, each once: what modules() returns, in another order and a third of the time."""
    found = {id(module): module}
    more = [module]
    while more:
        for m in more.pop()._modules.values():
            if m is not None and id(m) not in found:
                found[id(m)] = m
                more.append(m)
    return list(found.values())


def gathered(modules):
    """Returns the parameters that FSDP gathers, of both its versions."""
    sharded = {cls for cls in set(map(type, modules)) if hasattr(cls, "_get_fsdp_state")}
    for m in modules:
        flat = getattr(m.__dict__.get("_handle"), "flat_param", None)
        if flat is not None:
            yield flat
        if type(m) not in sharded:
            continue
        state = m._get_fsdp_state()
        groups = getattr(state, "_fsdp_param_groups", None)
        if groups is None:
            groups = [state._fsdp_param_group]
        for group in groups:
            for parameter in getattr(group, "fsdp_params", ()):
                yield parameter


def targets(parameter):
    """Returns what a parameter is gathered into."""
    found = [t for name in ("all_gather_outputs", "_unsharded_inner_tensors") for t in getattr(parameter, name, ())]
    for name in ("_full_param_padded", "_full_prec_full_param_padded"):
        t = getattr(parameter, name, None)
        if t is not None:
            found.append(t)
    return found
