"""The edge: HTTP, Lambda and the environment. What a call means is decided in `core`."""

__version__ = "0.1.0"
