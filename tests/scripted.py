"""A chat model that says what a test wrote down, and agents around it."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType] - generics
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool


class ScriptedModel(BaseChatModel):
    """The nth reply of a conversation is the nth of `replies`, and "Done." after the last."""

    replies: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    def reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """What it says to a conversation."""
        said = sum(isinstance(message, AIMessage) for message in messages)
        return self.replies[said].model_copy() if said < len(self.replies) else AIMessage("Done.")


class ProposingModel(ScriptedModel):
    """Proposes calls of tools, whatever the conversation is, and is done when they have results."""

    replies: list[AIMessage] = []
    proposed: Callable[[Sequence[BaseMessage]], list[ToolCall]]

    def reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        done = any(isinstance(message, ToolMessage) for message in messages)
        return AIMessage("Done.") if done else AIMessage("", tool_calls=self.proposed(messages))


def agent(tools: Sequence[BaseTool], *replies: AIMessage, **options: Any) -> Any:
    """An agent of `create_agent` whose model says these replies."""
    return create_agent(ScriptedModel(replies=list(replies)), tools, **options)
