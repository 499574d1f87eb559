"""What a package imports that brings the writer of another database."""

from connect.kits.sql.writer import Action, Encode, Reached, Row, Step, Target, Writer

__all__ = ["Action", "Encode", "Reached", "Row", "Step", "Target", "Writer"]
