"""What a report is written as: a page, a folder, tables for papers, words on method, and its record."""
