// A client on the official TypeScript SDK that sends one prompt and prints the answer: node prompt.mjs PROMPT AGENT [ARG...]
// An interrupt cancels the turn. `bare` in INTEROP: no files, no terminals.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { Host } from "./host.mjs";

const { initialize, session: methods } = acp.methods.agent;
const bare = process.env.INTEROP === "bare";
const [prompt, command, ...args] = process.argv.slice(2);
const started = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const host = new Host();
const { agent } = host
  .app(bare ? {} : { files: true, terminals: true })
  .connect(acp.ndJsonStream(Writable.toWeb(started.stdin), Readable.toWeb(started.stdout)));

async function run() {
  const { protocolVersion, authMethods } = await agent.request(initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientInfo: { name: "typescript-prompt", version: "1.0.0" },
    clientCapabilities: bare ? {} : { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
  });
  if (protocolVersion !== acp.PROTOCOL_VERSION) throw new Error(`the agent speaks version ${protocolVersion}`);
  if (authMethods?.length) await agent.request(acp.methods.agent.authenticate, { methodId: authMethods[0].id });
  const { sessionId } = await agent.request(methods.new, { cwd: process.cwd(), mcpServers: [] });
  process.once("SIGINT", () => {
    host.cancel();
    agent.notify(methods.cancel, { sessionId });
  });
  const { stopReason } = await agent.request(methods.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
  for (const { update } of host.updates) {
    if (update.sessionUpdate === "agent_message_chunk") process.stdout.write(update.content.text ?? "");
  }
  return stopReason === "cancelled" ? 130 : 0;
}

const died = new Promise((_, reject) => started.once("exit", () => reject(new Error("the agent has ended"))));
let code = 1;
try {
  code = await Promise.race([run(), died]);
} catch (error) {
  console.error(String(error.message ?? error));
}
started.stdin.end();
setTimeout(() => started.kill("SIGKILL"), 2000).unref();
process.exitCode = code;
