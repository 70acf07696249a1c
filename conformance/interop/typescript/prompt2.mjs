// The same as prompt.mjs in version 2: node prompt2.mjs PROMPT AGENT [ARG...]
import * as acp from "@agentclientprotocol/sdk/experimental/v2";
import { finish, launch } from "./launch.mjs";

const { initialize, session: methods } = acp.methods.agent;
const [prompt, ...command] = process.argv.slice(2);
const { agent: started, stream } = launch(command, acp.ndJsonStream);
let cancelled = false;
let work;

const { agent } = acp
  .client({ name: "typescript-prompt" })
  .onNotification(acp.methods.client.session.update, ({ params: { sessionId, update } }) => work?.take(sessionId, update))
  .onRequest(acp.methods.client.session.requestPermission, ({ params: { options } }) => {
    const chosen = cancelled ? undefined : options.find(({ kind }) => kind === "allow_once");
    return { outcome: chosen ? { outcome: "selected", optionId: chosen.optionId } : { outcome: "cancelled" } };
  })
  .connect(stream);

/** The work on one prompt, of which the updates may come before its answer. */
class Work {
  running = false;
  ended = new Promise((resolve) => (this.end = resolve));

  constructor(sessionId) {
    this.sessionId = sessionId;
  }

  take(sessionId, update) {
    if (sessionId !== this.sessionId) return;
    if (update.sessionUpdate === "agent_message_chunk") process.stdout.write(update.content.text ?? "");
    if (update.sessionUpdate !== "state_update") return;
    if (update.state !== "idle") this.running = true;
    else if (this.running || update.stopReason) this.end(update.stopReason);
  }
}

async function run() {
  const { protocolVersion, authMethods } = await agent.request(initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "typescript-prompt", version: "1.0.0" },
    capabilities: {},
  });
  if (protocolVersion !== acp.PROTOCOL_VERSION) throw new Error(`the agent speaks version ${protocolVersion}`);
  if (authMethods?.length) await agent.request(acp.methods.agent.auth.login, { methodId: authMethods[0].methodId });
  const { sessionId } = await agent.request(methods.new, { cwd: process.cwd(), mcpServers: [] });
  work = new Work(sessionId);
  process.once("SIGINT", () => {
    cancelled = true;
    agent.notify(methods.cancel, { sessionId });
  });
  await agent.request(methods.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
  const stopReason = await work.ended;
  return stopReason === "cancelled" ? 130 : stopReason === "error" ? 1 : 0;
}

await finish(started, run);
