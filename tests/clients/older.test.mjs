// Clients that begin with `initialize`: the TypeScript SDK v1, and v2 unless it is told otherwise.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as v2 from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { output, texts, url } from "./person.mjs";

const INFO = { name: "test", version: "1.0.0" };
const OPTIONS = { capabilities: { elicitation: {} } };

async function never() {
  throw new Error("an older client can't be asked");
}

const KINDS = {
  "SDK v1": () => {
    const client = new ClientV1(INFO, OPTIONS);
    client.setRequestHandler(ElicitRequestSchema, never);
    return [client, new TransportV1(new URL(url))];
  },
  "client v2": () => {
    const client = new v2.Client(INFO, OPTIONS);
    client.setRequestHandler("elicitation/create", never);
    return [client, new v2.StreamableHTTPClientTransport(new URL(url))];
  },
};

for (const [kind, make] of Object.entries(KINDS)) {
  const connected = async (use) => {
    const [client, transport] = make();
    await client.connect(transport);
    try {
      assert.equal(transport.sessionId, undefined);
      return await use(client);
    } finally {
      await client.close();
    }
  };
  const call = (name, args = {}) =>
    connected((client) => client.callTool({ name, arguments: args }));

  test(`${kind}: every tool is listed`, async () => {
    const { tools } = await connected((client) => client.listTools());
    const names = tools.map((tool) => tool.name);
    for (const name of ["region", "echo", "failing"]) assert.ok(names.includes(name), name);
  });

  test(`${kind}: a tool that asks nothing answers`, async () => {
    const result = await connected(async (client) => {
      await client.listTools();
      return client.callTool({ name: "echo", arguments: { message: "é" } });
    });
    assert.deepEqual(output(result), { echo: "é" });
    assert.deepEqual(result.structuredContent, { echo: "é" });
    assert.equal(result.resultType, undefined);
  });

  // Accept, decline, cancel, a wrong answer, rounds, parallel questions: none is ever asked for.
  for (const name of ["region", "deployment", "survey", "pair", "greeter", "calendar"]) {
    test(`${kind}: ${name} paused, and the two texts say so`, async () => {
      const result = await call(name);
      const [first, second] = texts(result);
      assert.equal(result.isError, true);
      assert.equal(
        first,
        "This tool paused to ask for human input, and this client can't answer it.",
      );
      assert.ok(JSON.parse(second).length > 0);
    });
  }

  test(`${kind}: an agent's failure is an error result without its inside`, async () => {
    const result = await call("failing");
    assert.equal(result.isError, true);
    assert.match(texts(result)[0], /^failing failed \(error [0-9a-f]+\)\.$/);
  });

  test(`${kind}: an unknown tool is an error of the protocol`, async () => {
    await assert.rejects(call("nobody"), (error) => {
      assert.equal(error.code, -32602);
      assert.match(error.message, /Unknown tool: nobody/);
      return true;
    });
  });

  test(`${kind}: progress reaches the callback`, async () => {
    const reports = [];
    const onprogress = ({ progress }) => reports.push(progress);
    await connected((client) =>
      kind === "SDK v1"
        ? client.callTool({ name: "telling", arguments: {} }, undefined, { onprogress })
        : client.callTool({ name: "telling", arguments: {} }, { onprogress }),
    );
    assert.deepEqual(reports, [0, 50, 100]);
  });
}
