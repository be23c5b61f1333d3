"""Reports of scores: tables of errors, print-outs and files in NIST's formats, alignments as HTML."""
