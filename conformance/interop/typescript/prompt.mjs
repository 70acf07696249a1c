// A client on the official TypeScript SDK that sends one prompt and prints the answer: node prompt.mjs PROMPT AGENT [ARG...]
// An interrupt cancels the turn. `bare` in INTEROP: no files, no terminals.
import * as acp from "@agentclientprotocol/sdk";
import { Host } from "./host.mjs";
import { finish, launch } from "./launch.mjs";

const { initialize, session: methods } = acp.methods.agent;
const bare = process.env.INTEROP === "bare";
const [prompt, ...command] = process.argv.slice(2);
const { agent: started, stream } = launch(command, acp.ndJsonStream);
const host = new Host();
const { agent } = host
  .app(bare ? {} : { files: true, terminals: true })
  .connect(stream);

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

await finish(started, run);
