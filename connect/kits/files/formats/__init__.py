"""Writers of files of records, one for each format."""
