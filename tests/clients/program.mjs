// Programs that npm has installed here, run with a home of their own.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

const BIN = fileURLToPath(new URL("node_modules/.bin/", import.meta.url));

/** A function that runs a program to its end: its exit code, and what it printed. */
export function program(name, variables = {}) {
  const home = mkdtempSync(join(tmpdir(), "client-"));
  after(() => rmSync(home, { recursive: true, force: true }));
  const env = { ...process.env, NO_COLOR: "1", HOME: home, ...variables };
  return (...args) =>
    new Promise((resolve) => {
      const words = [join(BIN, name), ...args];
      const options = { env, timeout: 30_000 };
      const child = execFile(process.execPath, words, options, (error, stdout, stderr) =>
        resolve({ code: error ? error.code : 0, stdout, stderr }),
      );
      child.stdin.end();
    });
}
