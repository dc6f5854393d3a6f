"""The actions of ``reconcile remote``, and one sync: the commands themselves are in `commands.remote`."""
