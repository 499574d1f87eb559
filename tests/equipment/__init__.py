"""What tests of whole workers are made with."""
