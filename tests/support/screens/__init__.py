"""The pictures of docs/screens/: what each command shows at a terminal of 80 columns, as text and as SVG."""
