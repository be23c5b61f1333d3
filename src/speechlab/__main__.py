"""``python -m speechlab``: the same as the command ``speechlab``, which imports nothing from the working folder."""

from __future__ import annotations

from speechlab._require import remove_cwd_from_path

if __name__ == "__main__":
    remove_cwd_from_path()
    from speechlab.cli import main

    main()
