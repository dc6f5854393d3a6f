"""Planning only what a change concerns; the result equals that of a plan for everything."""
