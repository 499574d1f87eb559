"""Operations on one document, as they are sent to the server in bulks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne

from connectors.mongodb.sink.documents import Document

__all__ = ["Action", "DriverOperation", "Operation"]

DriverOperation: TypeAlias = "InsertOne[Document] | ReplaceOne[Document] | UpdateOne | DeleteOne"


class Action(Enum):
    """What is done with a document."""

    INSERT = "insert"
    REPLACE = "replace"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Operation:
    """What is to be done with the document that fulfils a condition; it is added if there is none, with ``upsert``."""

    action: Action
    condition: Document
    change: Document
    upsert: bool = False

    @classmethod
    def insert(cls, document: Document) -> Operation:
        """Add a document."""
        return cls(Action.INSERT, {}, document)

    @classmethod
    def replace(cls, condition: Document, document: Document, *, upsert: bool = False) -> Operation:
        """Replace the document."""
        return cls(Action.REPLACE, condition, document, upsert)

    @classmethod
    def update(cls, condition: Document, change: Document, *, upsert: bool = False) -> Operation:
        """Change the document by operators such as ``$set``."""
        return cls(Action.UPDATE, condition, change, upsert)

    @classmethod
    def delete(cls, condition: Document) -> Operation:
        """Delete the document."""
        return cls(Action.DELETE, condition, {})

    def for_driver(self) -> DriverOperation:
        """Return the operation of the driver."""
        match self.action:
            case Action.INSERT:
                return InsertOne(self.change)
            case Action.REPLACE:
                return ReplaceOne(self.condition, self.change, upsert=self.upsert)
            case Action.UPDATE:
                return UpdateOne(self.condition, self.change, upsert=self.upsert)
            case Action.DELETE:
                return DeleteOne(self.condition)
