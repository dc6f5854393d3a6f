"""Everything that touches the file system, except the writing of plans (`reconcile.apply`)."""
