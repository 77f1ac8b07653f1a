"""An agent whose tools sit on another MCP server, whose questions it passes on to its own client.

The address of that server is in the environment; a model would decide what to call, here each word
of the request that is a tool's name is called.
"""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType] - generics
from langchain.mcp import MCPAdapter
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool


class Dispatcher(BaseChatModel):
    """Calls a tool for each word of the last request that names one, and then is done."""

    names: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "dispatcher"

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        names = [tool.name for tool in tools if isinstance(tool, BaseTool)]
        return self.model_copy(update={"names": names})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        last = messages[-1]
        reply = AIMessage("Done.")
        if isinstance(last, HumanMessage):
            words = [word for word in str(last.content).split() if word in self.names]
            calls = [
                ToolCall(name=word, args={}, id=f"call_{number}")
                for number, word in enumerate(words, start=1)
            ]
            reply = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])


@asynccontextmanager
async def graph() -> AsyncGenerator[Any]:
    """The agent, as long as it is connected to the other server."""
    async with MCPAdapter(os.environ["CONCIERGE_TOOLS"]) as adapter:
        yield create_agent(Dispatcher(), await adapter.list_tools())
