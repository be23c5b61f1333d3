"""Tables in files: read in pieces, and written without loss, as CSV, TSV, JSON Lines, Parquet and folders of Parquet.

The room knows files, formats and types, but no operations and no meaning of columns. Batches, studies, data sets and
segments use it.
"""

from __future__ import annotations

from speechlab.tables._delimited import HELD_ROWS as HELD_ROWS
from speechlab.tables._delimited import has_enclosing_quotes as has_enclosing_quotes
from speechlab.tables._delimited import has_unsplit_rows as has_unsplit_rows
from speechlab.tables._delimited import parse_delimited as parse_delimited
from speechlab.tables._delimited import read_delimited as read_delimited
from speechlab.tables._delimited import read_text as read_text
from speechlab.tables._delimited import unquote_tsv_cell as unquote_tsv_cell
from speechlab.tables._files import FILES_ALLOWED as FILES_ALLOWED
from speechlab.tables._files import TableFormat as TableFormat
from speechlab.tables._files import check_table_path as check_table_path
from speechlab.tables._files import has_table as has_table
from speechlab.tables._files import read_column_names as read_column_names
from speechlab.tables._files import read_pieces as read_pieces
from speechlab.tables._files import resolve_table_format as resolve_table_format
from speechlab.tables._formulas import escape_formula as escape_formula
from speechlab.tables._formulas import escape_frame_formulas as escape_frame_formulas
from speechlab.tables._formulas import unescape_formula as unescape_formula
from speechlab.tables._lines import parse_json_lines as parse_json_lines
from speechlab.tables._lines import split_csv_lines as split_csv_lines
from speechlab.tables._parquet import check_parquet_unpacked_size as check_parquet_unpacked_size
from speechlab.tables._storable import cell_to_text as cell_to_text
from speechlab.tables._storable import read_stored_table as read_stored_table
from speechlab.tables._storable import to_parquet_bytes as to_parquet_bytes
from speechlab.tables._writing import write_table as write_table

__all__: list[str] = []
