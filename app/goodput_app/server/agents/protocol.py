"""The tools over the Model Context Protocol: the one module that imports its package, an extra."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from goodput_app.access.current import NotAllowedError
from goodput_app.distribution import version
from goodput_app.server.agents import tools
from goodput_app.server.agents.arguments import schema_of
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError, MissingExtraError, QueryError

try:
    import mcp_types as types
    from mcp.server.lowlevel.server import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.shared.exceptions import MCPError
except ImportError as error:
    raise MissingExtraError("an MCP server", "mcp") from error


log = logging.getLogger(__name__)

JSON: Final = "application/json"
REQUEST_MAX_BYTES: Final = 1 << 18
INSTRUCTIONS: Final = (
    "Where the GPU time of a cluster went, what it cost, why, and what to do first. All tools only "
    "read. Each answer has its time range, the evidence it rests on, unit and meaning of each "
    "column, and the page that shows it. null is unknown, never zero. gpu_ms are milliseconds of "
    f"one GPU. {tools.AS_DATA} Resources: {tools.MARTS_URI} lists the marts; with /NAME, columns."
)


def server(
    opened: Callable[[], AbstractContextManager[Store]], base_url: str | None = None
) -> Server[Any]:
    """Return the server of the tools. opened: gives the store of one call; base_url: for links."""
    answers = _Answers(opened, base_url)
    return Server(
        "goodput",
        version=version(),
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=answers.call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=answers.read_resource,
    )


class _Answers:
    """What is answered from a store, in a thread."""

    def __init__(
        self, opened: Callable[[], AbstractContextManager[Store]], base_url: str | None
    ) -> None:
        self._opened = opened
        self._base_url = base_url

    async def call_tool(
        self, _context: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Answer the call of a tool; a refusal is a sentence for the model."""
        given = params.arguments or {}
        call = partial(tools.answer, params.name, given, base_url=self._base_url)
        try:
            text, is_error = await run_in_threadpool(self._answered, call), False
        except QueryError as error:
            text, is_error = str(error), True
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)

    async def read_resource(
        self, _context: object, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer with the marts or the columns of one."""
        call = partial(tools.catalogue_of, uri=str(params.uri))
        try:
            text = await run_in_threadpool(self._answered, call)
        except QueryError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        part = types.TextResourceContents(uri=params.uri, text=text, mime_type=JSON)
        return types.ReadResourceResult(contents=[part])

    def _answered(self, answer: Callable[[Store], str]) -> str:
        """Return an answer; raises QueryError with a sentence for whoever asked."""
        try:
            with self._opened() as store:
                return answer(store)
        except QueryError:
            raise
        except NotAllowedError as error:
            raise QueryError(str(error)) from error
        except GoodputError as error:  # its text names the file
            log.error("%s", error)
            raise QueryError("the database does not answer; its log says why.") from error


async def _list_tools(_context: object, _params: object) -> types.ListToolsResult:
    reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    listed = [
        types.Tool(
            name=name,
            description=tools.description(name),
            input_schema=schema_of(arguments),
            annotations=reads,
        )
        for name, (_, arguments) in tools.TOOLS.items()
    ]
    return types.ListToolsResult(tools=listed)


async def _list_resources(_context: object, _params: object) -> types.ListResourcesResult:
    marts = types.Resource(
        uri=tools.MARTS_URI, name="marts", description="All marts.", mime_type=JSON
    )
    return types.ListResourcesResult(resources=[marts])


async def _list_templates(_context: object, _params: object) -> types.ListResourceTemplatesResult:
    columns = types.ResourceTemplate(
        uri_template=f"{tools.MARTS_URI}/{{name}}",
        name="mart",
        description="The columns of a mart with type, meaning and unit.",
        mime_type=JSON,
    )
    return types.ListResourceTemplatesResult(resource_templates=[columns])


async def over_stdio(served: Server[Any]) -> None:
    """Serve on standard input and output until the client closes them."""
    async with stdio_server() as (read, write):
        await served.run(read, write, served.create_initialization_options())


async def over_http(served: Server[Any], scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request: nothing is kept between requests, so that each has its own asker."""
    manager = StreamableHTTPSessionManager(
        served, json_response=True, stateless=True, max_request_body_size=REQUEST_MAX_BYTES
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)
