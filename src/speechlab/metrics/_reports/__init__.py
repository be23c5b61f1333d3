"""Reports of scores: tables of errors, transcripts in NIST's format, alignments as HTML."""
