"""The built-in schemas, by the names of the quickstarts of Confluent's datagen connector."""

from typing import Final

from connectors.datagen.quickstarts.forms import Quickstart
from connectors.datagen.quickstarts.operations import OPERATIONS
from connectors.datagen.quickstarts.people import PEOPLE
from connectors.datagen.quickstarts.shops import SHOPS
from connectors.datagen.quickstarts.web import WEB

__all__ = ["QUICKSTARTS", "Quickstart"]

QUICKSTARTS: Final[dict[str, Quickstart]] = WEB | SHOPS | PEOPLE | OPERATIONS
