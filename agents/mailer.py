"""Sends mail, once a person has reviewed each message.

Try "Write to ada@example.com about Launch". The chat model is scripted, so that no key is needed:
it proposes one `send_email` call for each address in the last message. Swap it for a real one and
nothing else changes. A call may resume on another machine, so the model keeps nothing: what it says
follows from the conversation.

`graph` asks about all calls of a turn in one interrupt, `per_call` with one for each call.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType] - generics
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool


@tool
def send_email(to: str, subject: str) -> str:
    """Send an e-mail."""
    return f'Sent "{subject}" to {to}.'


class Secretary(BaseChatModel):
    """A chat model that follows a script."""

    @property
    def _llm_type(self) -> str:
        return "secretary"

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
        return ChatResult(generations=[ChatGeneration(message=_reply(messages))])


def _reply(messages: list[BaseMessage]) -> AIMessage:
    last = messages[-1]
    if isinstance(last, ToolMessage):
        done = [message for message in messages if isinstance(message, ToolMessage)]
        return AIMessage("\n".join(str(message.content) for message in done))
    text = str(last.content) if isinstance(last, HumanMessage) else ""
    subject = text.partition(" about ")[2].strip(" .") or "Hello"
    calls = [
        ToolCall(name="send_email", args={"to": to, "subject": subject}, id=f"call_{n}")
        for n, to in enumerate(re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", text), start=1)
    ]
    return AIMessage("" if calls else "Whom shall I write to?", tool_calls=calls)


def _mailer(mode: Literal["batched", "per_call"]) -> Any:
    review = HumanInTheLoopMiddleware({"send_email": True}, interrupt_mode=mode)
    return create_agent(Secretary(), [send_email], middleware=[review])


graph = _mailer("batched")
per_call = _mailer("per_call")
