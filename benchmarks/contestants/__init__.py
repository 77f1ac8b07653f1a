"""Servers that a team would use instead, each written as its own documentation has it.

Each is started with a port, serves on it with uvicorn over uvloop and httptools, and answers in
JSON. `sdk` and `fast` run no LangGraph: their tools hold the same questions as plain code.
"""
