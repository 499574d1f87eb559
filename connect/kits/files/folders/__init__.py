"""Folders that tasks read file by file: what is in them, how far each file is read, and what becomes of it then."""
