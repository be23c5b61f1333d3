"""The public names of the package and of its doors, as pinned in ``tests/public_names.txt``.

Run by ``poe names``, which writes that file anew.
"""

import importlib
from pathlib import Path

PINNED = Path(__file__).parents[1] / "public_names.txt"


def public_names() -> list[str]:
    """All of them with the door that they come through, sorted."""
    import speechlab

    (source,) = speechlab.__path__
    doors = ["speechlab", *(f"speechlab.{path.parent.name}" for path in Path(source).glob("*/__init__.py"))]
    return sorted(
        f"{door}.{name}" for door in doors for name in getattr(importlib.import_module(door), "__all__", ())
    )


if __name__ == "__main__":
    PINNED.write_text("\n".join(public_names()) + "\n", "utf-8")
