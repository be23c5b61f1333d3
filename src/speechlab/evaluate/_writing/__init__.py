"""The outputs of a report: page, folder, tables for papers, methods and record."""
