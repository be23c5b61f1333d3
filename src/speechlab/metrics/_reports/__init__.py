"""Scores on paper: errors as a table, print-outs and files as of NIST's sclite, alignments as HTML."""
