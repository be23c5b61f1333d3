"""``python -m speechlab``: the same as the command ``speechlab``."""

from __future__ import annotations

from speechlab.cli import main

if __name__ == "__main__":
    main()
