"""What each document says: a table of claims per document, declared here and judged by `sim.reproduce.<document>`.

Nothing is measured by importing these, so the suite can compare them with the ledger that ships.
"""

from importlib import import_module

from sim.reproduce.rules import Told
from sim.reproduce.tables.unpublished import CONSTANTS, SUBSTITUTIONS

__all__ = ["CONSTANTS", "SUBSTITUTIONS", "declared"]


def declared(document: str) -> dict[str, Told]:
    """The claims of a document by id, in the order of the document."""
    found: dict[str, Told] = import_module(f"sim.reproduce.tables.{document}").CLAIMS
    return found
