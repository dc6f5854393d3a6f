"""The walk through a plan: the decisions about it, and the views that ask for them (`reconcile review`)."""
