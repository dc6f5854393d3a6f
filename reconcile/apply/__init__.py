"""Carries a plan out, step by step, with everything that was replaced kept."""
