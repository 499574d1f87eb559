"""Equipment for tests of whole workers."""
