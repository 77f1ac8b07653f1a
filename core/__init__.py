"""The subject: MCP, LangGraph agents, and the rounds of questions kept in Postgres.

Nothing here knows HTTP, Lambda or the environment; `handler` does. Time, keys and settings
arrive as arguments.
"""
