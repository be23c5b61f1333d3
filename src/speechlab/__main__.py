"""``python -m speechlab``: the same as the command ``speechlab``, which imports nothing from the working folder."""

from __future__ import annotations

from speechlab._require import leave_working_folder

if __name__ == "__main__":
    leave_working_folder()
    from speechlab.cli import main

    main()
