"""What mirrored topics take over from their sources beside records."""
