// MCP Inspector's command line, which can not be asked.

import assert from "node:assert/strict";
import { test } from "node:test";

import { url } from "./person.mjs";
import { program } from "./program.mjs";

const run = program("mcp-inspector");

function inspect(era, ...args) {
  return run("--cli", url, "--protocol-era", era, ...args);
}

function call(era, name, ...args) {
  return inspect(era, "--method", "tools/call", "--tool-name", name, ...args);
}

for (const era of ["modern", "auto", "legacy"]) {
  test(`${era}: every tool is listed`, async () => {
    const { code, stdout } = await inspect(era, "--method", "tools/list");
    assert.equal(code, 0);
    const names = JSON.parse(stdout).tools.map((tool) => tool.name);
    for (const name of ["region", "echo", "failing"]) assert.ok(names.includes(name), name);
  });

  test(`${era}: a tool that asks nothing answers`, async () => {
    const { code, stdout } = await call(era, "echo", "--tool-arg", "message=hello");
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout).structuredContent, { echo: "hello" });
  });

  test(`${era}: an agent's failure is told without its inside`, async () => {
    const { stdout, stderr } = await call(era, "failing");
    assert.match(stdout + stderr, /failing failed \(error [0-9a-f]+\)\./);
    assert.doesNotMatch(stdout + stderr, /inside/);
  });

  test(`${era}: an unknown tool is an error`, async () => {
    const { code } = await call(era, "nobody");
    assert.notEqual(code, 0);
  });
}

test("modern: a tool that asks says what it needs", async () => {
  const { code, stdout, stderr } = await call("modern", "region");
  assert.notEqual(code, 0);
  assert.match(stdout + stderr, /needs form elicitation/);
});

test("legacy: a tool that asks says that this client can't answer", async () => {
  const { stdout, stderr } = await call("legacy", "region");
  assert.match(stdout + stderr, /this client can't answer it/);
});
