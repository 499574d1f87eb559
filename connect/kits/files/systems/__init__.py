"""File systems, local and remote: lists, reads, moves and atomic writes of whole files."""
