// The client's side of the protocol on the official TypeScript SDK: real files, real processes.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
import * as acp from "@agentclientprotocol/sdk";

const { session, fs, terminal, elicitation } = acp.methods.client;

function checkPath(path) {
  if (!isAbsolute(path)) throw acp.RequestError.invalidParams({ path: `${path} is not an absolute path` });
}

/** The lines from `line` on, `limit` at most. */
function lines(text, line, limit) {
  if (line == null && limit == null) return text;
  const from = Math.max(line ?? 1, 1) - 1;
  return text.split(/(?<=\n)/).slice(from, limit == null ? undefined : from + limit).join("");
}

/** The end of `output` that takes `limit` bytes at most, from the start of a character on. */
function tail(output, limit) {
  if (limit == null || output.length <= limit) return output;
  let from = output.length - limit;
  while (from < output.length && (output[from] & 0xc0) === 0x80) from++;
  return output.subarray(from);
}

/** Keeps every update, and chooses permissions by kind, never by position. */
export class Host {
  updates = [];
  completed = [];
  permission = "allow_once";
  terminals = new Map();

  /** The client with the methods of what it offers. */
  app({ files = false, terminals = false, forms = false }) {
    const app = acp
      .client({ name: "interop" })
      .onNotification(session.update, ({ params }) => void this.updates.push(params))
      .onRequest(session.requestPermission, ({ params }) => this.choose(params.options));
    if (forms) {
      app
        .onNotification(elicitation.complete, ({ params }) => void this.completed.push(params.elicitationId))
        .onRequest(elicitation.create, () => ({ action: "accept", content: {} }));
    }
    if (files) {
      app
        .onRequest(fs.readTextFile, async ({ params: { path, line, limit } }) => {
          checkPath(path);
          return { content: lines(await readFile(path, "utf8"), line, limit) };
        })
        .onRequest(fs.writeTextFile, async ({ params }) => {
          checkPath(params.path);
          await writeFile(params.path, params.content);
          return {};
        });
    }
    if (terminals) {
      app
        .onRequest(terminal.create, ({ params }) => this.start(params))
        .onRequest(terminal.waitForExit, async ({ params }) => this.terminals.get(params.terminalId).exit)
        .onRequest(terminal.output, ({ params }) => {
          const { output, limit, exitStatus } = this.terminals.get(params.terminalId);
          const kept = tail(Buffer.concat(output), limit);
          return { output: kept.toString(), truncated: kept.length < Buffer.concat(output).length, exitStatus };
        })
        .onRequest(terminal.kill, ({ params }) => {
          this.terminals.get(params.terminalId).process.kill();
          return {};
        })
        .onRequest(terminal.release, ({ params }) => {
          this.terminals.get(params.terminalId).process.kill();
          this.terminals.delete(params.terminalId);
          return {};
        });
    }
    return app;
  }

  /** From now on every question is answered `cancelled`. */
  cancel() {
    this.permission = undefined;
  }

  choose(options) {
    const chosen = options.find(({ kind }) => kind === this.permission);
    if (!chosen) return { outcome: { outcome: "cancelled" } };
    return { outcome: { outcome: "selected", optionId: chosen.optionId } };
  }

  start({ command, args = [], env = [], cwd, outputByteLimit: limit }) {
    const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    const child = spawn(command, args, { cwd, env: { ...process.env, ...variables }, stdio: ["ignore", "pipe", "inherit"] });
    const terminal = { process: child, output: [], limit };
    child.stdout.on("data", (data) => terminal.output.push(data));
    terminal.exit = new Promise((resolve, reject) => {
      child.on("close", (exitCode, signal) => resolve((terminal.exitStatus = { exitCode, signal })));
      child.on("error", reject);
    });
    const terminalId = `terminal-${this.terminals.size}`;
    this.terminals.set(terminalId, terminal);
    return { terminalId };
  }
}
