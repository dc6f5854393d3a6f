"""The pure heart: values in, values out. No file system, no clock, no third-party package."""
