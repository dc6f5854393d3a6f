"""From directories to snapshots: reading a side, in whole or in part."""
