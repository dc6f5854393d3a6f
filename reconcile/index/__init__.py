"""Caches that tell what has not changed; losing one costs time, nothing else."""
