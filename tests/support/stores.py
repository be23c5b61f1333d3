"""What a store holds."""


def kept(store):
    """How many results of calls a store holds; what it knows of the service itself is none."""
    return len(store) - len(store.newest("voices", 100))
