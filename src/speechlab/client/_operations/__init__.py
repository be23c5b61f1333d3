"""Requests and replies of each operation, as data: nothing here sends."""
