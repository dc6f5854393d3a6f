"""Brings two file trees of AI conversations together: a durable store and a workspace under git."""

__version__ = "0.1.0"
