// MCP Inspector's `mcpdo`: a question is what a command prints, and another command answers it.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { output, texts, url } from "./person.mjs";
import { program } from "./program.mjs";

const daemon = mkdtempSync(join(tmpdir(), "mcpdo-"));
const run = program("mcpdo", {
  MCP_INSPECTOR_DAEMON_DIR: daemon,
  MCP_INSPECTOR_DAEMON_TOKEN: randomBytes(32).toString("base64url"),
  MCP_INSPECTOR_SECRET_STORE: "memory",
});

before(async () => {
  const { code, stderr } = await run("connect", url, "--era", "modern");
  assert.equal(code, 0, stderr);
});

after(async () => {
  await run("daemon", "stop");
  rmSync(daemon, { recursive: true, force: true });
});

async function command(...args) {
  const { code, stdout, stderr } = await run("--format", "json", "--connection", url, ...args);
  return { code, stderr, printed: stdout ? JSON.parse(stdout) : undefined };
}

async function call(name, ...args) {
  return (await command("tools/call", name, ...args)).printed;
}

async function respond(asked, ...answer) {
  const id = asked.elicitationPending.elicitationId;
  return command("elicitation/respond", id, ...answer);
}

test("an accepted answer resumes the agent", async () => {
  const asked = await call("region");
  assert.equal(
    asked.elicitationPending.message,
    "Which region should the service deploy to?",
  );
  const { printed } = await respond(asked, "response:=eu-west-1");
  assert.deepEqual(output(printed), { region: "eu-west-1" });
});

test("a declined question ends the call", async () => {
  const { printed, stderr } = await respond(await call("region"), "--decline");
  assert.match(
    printed ? texts(printed)[0] : stderr,
    /The request for input was declined\./,
  );
});

test("a cancelled question ends the call", async () => {
  const { printed, stderr } = await respond(await call("region"), "--cancel");
  assert.match(
    printed ? texts(printed)[0] : stderr,
    /The request for input was cancelled\./,
  );
});

test("a wrong answer is told by its text", async () => {
  const wrong = JSON.stringify({ region: "eu-west-1", replicas: 20 });
  const { code, stderr } = await respond(await call("deployment"), wrong);
  assert.notEqual(code, 0);
  assert.match(stderr, /Form content does not match requestedSchema|replicas/);
});

test("several rounds are asked one after another", async () => {
  let { printed } = await respond(await call("survey"), "response:=tea");
  assert.equal(printed.elicitationPending.message, "How do you rate it?");
  ({ printed } = await respond(printed, "response:=5"));
  assert.equal(printed.elicitationPending.message, "Why 5 for tea?");
  ({ printed } = await respond(printed, "response:=warm"));
  assert.deepEqual(output(printed), { topic: "tea", rating: 5, reason: "warm" });
});

test("parallel questions of one round are shown one at a time", async () => {
  const first = await call("pair");
  assert.equal(first.elicitationPending.message, "What goes on the left?");
  const second = (await respond(first, "response:=salt")).printed;
  assert.equal(second.elicitationPending.message, "What goes on the right?");
  const { printed } = await respond(second, "response:=pepper");
  assert.equal(output(printed).pair, "salt | pepper");
});

test("a page is opened and confirmed", async () => {
  const asked = await call("calendar");
  assert.equal(asked.elicitationPending.url, "https://example.com/oauth/calendar/start");
  const { printed } = await respond(asked, "--done");
  assert.deepEqual(output(printed), { status: "connected" });
});

test("an agent's failure is told without its inside", async () => {
  const { printed, stderr } = await command("tools/call", "failing");
  const told = JSON.stringify(printed) + stderr;
  assert.match(told, /failing failed \(error [0-9a-f]+\)\./);
  assert.doesNotMatch(told, /inside/);
});

test("an unknown tool is an error", async () => {
  const { code } = await command("tools/call", "nobody");
  assert.notEqual(code, 0);
});
