// Takes an agent of version 2 through steps on the official TypeScript SDK: node client2.mjs AGENT [ARG...]
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const { initialize, session: methods } = acp.methods.agent;
const text = (words) => [{ type: "text", text: words }];
const process_ = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
const ended = once(process_, "exit");
const cwd = await mkdtemp(join(tmpdir(), "acp-"));

/** All updates, and those that wait for one. */
const updates = [];
const waiting = new Set();
let choice = "allow_once";

const app = acp
  .client({ name: "typescript-client" })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    updates.push(params);
    for (const look of waiting) look();
  })
  .onRequest(acp.methods.client.session.requestPermission, ({ params, signal }) => {
    if (choice === "never") {
      const cancelled = { outcome: { outcome: "cancelled" } };
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve(cancelled)));
    }
    const { optionId } = params.options.find(({ kind }) => kind === choice);
    return { outcome: { outcome: "selected", optionId } };
  });
const connection = app.connect(acp.ndJsonStream(Writable.toWeb(process_.stdin), Readable.toWeb(process_.stdout)));
const { agent } = connection;

/** Yields the first update after number `from` for which `is` holds. */
function update(sessionId, from, is) {
  return new Promise((resolve) => {
    const look = () => {
      const found = updates.slice(from).find((sent) => sent.sessionId === sessionId && is(sent.update));
      if (!found) return;
      waiting.delete(look);
      resolve(found.update);
    };
    waiting.add(look);
    look();
  });
}

const idle = (sent) => sent.sessionUpdate === "state_update" && sent.state === "idle";
const since = (from, sessionId) => updates.slice(from).filter((sent) => sent.sessionId === sessionId).map((sent) => sent.update);
const words = (sent) => sent.filter(({ sessionUpdate: kind }) => kind === "agent_message_chunk").map(({ content }) => content.text).join("");

/** Prompts until the session is idle; yields the stop reason and the updates. */
async function turn(sessionId, prompt) {
  const from = updates.length;
  const { messageId } = await agent.request(methods.prompt, { sessionId, prompt: text(prompt) });
  const { stopReason } = await update(sessionId, from, (sent) => idle(sent) && sent.stopReason);
  const sent = since(from, sessionId);
  assert.ok(sent.some((sent) => sent.sessionUpdate.startsWith("user_message") && sent.messageId === messageId));
  return { stopReason, sent };
}

async function refused(code, request) {
  await assert.rejects(request, (error) => error.code === code || assert.fail(`expected ${code}, got ${error.code}: ${error.message}`));
}

async function step(name, run) {
  await run();
  console.log(`ok ${name}`);
}

let session;
await step("initialize", async () => {
  const answer = await agent.request(initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "typescript-client", version: "1.0.0" },
    capabilities: {},
  });
  assert.equal(answer.protocolVersion, 2);
});
await step("new session", async () => {
  session = (await agent.request(methods.new, { cwd, mcpServers: [] })).sessionId;
});
await step("echo", async () => {
  const { stopReason, sent } = await turn(session, "hello there");
  assert.equal(stopReason, "end_turn");
  assert.match(words(sent), /hello there/);
});
for (const [kind, status] of [["allow_once", "completed"], ["reject_once", "failed"]]) {
  await step(`permission: ${kind}`, async () => {
    choice = kind;
    const { sent } = await turn(session, "permission");
    const statuses = sent.filter(({ sessionUpdate }) => sessionUpdate === "tool_call_update").map((call) => call.status);
    assert.equal(statuses.at(-1), status);
  });
}
await step("cancel, with a question open", async () => {
  choice = "never";
  const from = updates.length;
  await agent.request(methods.prompt, { sessionId: session, prompt: text("permission") });
  await update(session, from, ({ sessionUpdate }) => sessionUpdate === "tool_call_update");
  await agent.notify(methods.cancel, { sessionId: session });
  assert.equal((await update(session, from, (sent) => idle(sent) && sent.stopReason)).stopReason, "cancelled");
});
await step("1,000 chunks", async () => {
  const { sent } = await turn(session, "stream 1000");
  assert.match(words(sent), /00000999/);
});
await step("failure", async () => assert.equal((await turn(session, "fail")).stopReason, "error"));
await step("options", async () => {
  const { configOptions } = await agent.request(methods.setConfigOption, { sessionId: session, configId: "mode", type: "id", value: "code" });
  assert.equal(configOptions.find(({ configId }) => configId === "mode").currentValue, "code");
  await refused(-32602, agent.request(methods.setConfigOption, { sessionId: session, configId: "none", type: "id", value: "x" }));
});
await step("list", async () => {
  const { sessions } = await agent.request(methods.list, { cwd });
  assert.ok(sessions.some(({ sessionId }) => sessionId === session));
});
await step("replay, then the state, then the answer", async () => {
  await agent.request(methods.close, { sessionId: session });
  const from = updates.length;
  await agent.request(methods.resume, { sessionId: session, cwd, mcpServers: [], replayFrom: { type: "start" } });
  // The SDK may hand an update over after the answer that came behind it.
  await update(session, from, idle);
  assert.match(words(since(from, session)), /hello there/);
});
await step("resume without replay", async () => {
  await agent.request(methods.close, { sessionId: session });
  const from = updates.length;
  await agent.request(methods.resume, { sessionId: session, cwd, mcpServers: [] });
  await update(session, from, idle);
  assert.equal(words(since(from, session)), "");
});
await step("unknown session", () => refused(-32002, agent.request(methods.resume, { sessionId: "none", cwd, mcpServers: [] })));
await step("unknown method", () => refused(-32601, agent.request("_typescript/none", {})));
await step("unknown transport of MCP", () =>
  refused(-32602, agent.request(methods.new, { cwd, mcpServers: [{ type: "_none", name: "none" }] })));
await step("unknown calls and terminals", async () => {
  await refused(-32602, agent.request(acp.methods.agent.toolCall.cancel, { sessionId: session, toolCallId: "none" }));
  await refused(-32602, agent.request(acp.methods.agent.terminal.cancel, { sessionId: session, terminalId: "none" }));
});
await step("close and delete", async () => {
  await agent.request(methods.close, { sessionId: session });
  await agent.request(methods.delete, { sessionId: session });
});
process_.stdin.end();
await step("exit on end of input", async () => assert.equal((await ended)[0], 0));
await rm(cwd, { recursive: true });
