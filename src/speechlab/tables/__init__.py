"""Tables in files: read in pieces, and written without loss, as CSV, TSV, JSON Lines, Parquet and folders of Parquet.

The room knows files, formats and types, but no operations and no meaning of columns. Batches, studies, data sets and
segments use it.
"""

from __future__ import annotations

from speechlab.tables._files import FILES_ALLOWED as FILES_ALLOWED
from speechlab.tables._files import TableFormat as TableFormat
from speechlab.tables._files import check_file as check_file
from speechlab.tables._files import columns_of as columns_of
from speechlab.tables._files import delimited as delimited
from speechlab.tables._files import guard as guard
from speechlab.tables._files import guarded as guarded
from speechlab.tables._files import json_lines as json_lines
from speechlab.tables._files import read_pieces as read_pieces
from speechlab.tables._files import read_texts as read_texts
from speechlab.tables._files import table_format as table_format
from speechlab.tables._files import text_of as text_of
from speechlab.tables._files import unguarded as unguarded
from speechlab.tables._storable import read_table as read_table
from speechlab.tables._storable import stand_in as stand_in
from speechlab.tables._storable import table_bytes as table_bytes
from speechlab.tables._writing import write_table as write_table

__all__: list[str] = []
