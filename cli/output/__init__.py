"""What is printed: text, tables, colours, prompts."""
