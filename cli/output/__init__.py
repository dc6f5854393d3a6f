"""Printing and asking: text, tables, colours, reports, errors, messages, questions."""
