// The client's side of the protocol on the official TypeScript SDK: real files, real processes.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import * as acp from "@agentclientprotocol/sdk";

const { session, fs, terminal, elicitation } = acp.methods.client;

/** Keeps every update, and chooses permissions by kind, never by position. */
export class Host {
  updates = [];
  completed = [];
  permission = "allow_once";
  terminals = new Map();

  app() {
    return acp
      .client({ name: "interop" })
      .onNotification(session.update, ({ params }) => void this.updates.push(params))
      .onNotification(elicitation.complete, ({ params }) => void this.completed.push(params.elicitationId))
      .onRequest(session.requestPermission, ({ params }) => this.choose(params.options))
      .onRequest(elicitation.create, () => ({ action: "accept", content: {} }))
      .onRequest(fs.readTextFile, async ({ params }) => ({ content: await readFile(params.path, "utf8") }))
      .onRequest(fs.writeTextFile, async ({ params }) => {
        await writeFile(params.path, params.content);
        return {};
      })
      .onRequest(terminal.create, ({ params }) => this.start(params))
      .onRequest(terminal.waitForExit, async ({ params }) => this.terminals.get(params.terminalId).exit)
      .onRequest(terminal.output, async ({ params }) => {
        const { output, exit } = this.terminals.get(params.terminalId);
        return { output: output.join(""), truncated: false, exitStatus: await exit };
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

  choose(options) {
    const chosen = options.find(({ kind }) => kind === this.permission);
    if (!chosen) return { outcome: { outcome: "cancelled" } };
    return { outcome: { outcome: "selected", optionId: chosen.optionId } };
  }

  start({ command, args = [], cwd }) {
    const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
    const output = [];
    child.stdout.on("data", (data) => output.push(data.toString()));
    const exit = new Promise((resolve, reject) => {
      child.on("close", (exitCode, signal) => resolve({ exitCode, signal }));
      child.on("error", reject);
    });
    const terminalId = `terminal-${this.terminals.size}`;
    this.terminals.set(terminalId, { process: child, output, exit });
    return { terminalId };
  }
}
