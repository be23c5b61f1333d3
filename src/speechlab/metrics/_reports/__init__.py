"""Reports of scores: tables of errors, alignments as HTML."""
