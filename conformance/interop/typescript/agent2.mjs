// An agent of version 2 on the official TypeScript SDK that understands some words of acp-server.
import { randomUUID } from "node:crypto";
import { isAbsolute } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const { session: methods } = acp.methods.agent;
const textBlock = (text) => ({ type: "text", text });
// How the agent differs from the one that has all: see the README of this folder.
const kind = process.env.INTEROP ?? "full";
const offers = { prompt: { image: {}, audio: {}, embeddedContext: {} }, delete: {} };
const capabilities = { session: kind === "bare" ? {} : offers };
let isKnown = kind !== "login";
const plain = ["text", "resource_link"];
const blockTypes = kind === "bare" ? plain : [...plain, "image", "audio", "resource"];
const sessions = new Map();

/** What one session remembers. Its turns run one after the other. */
class Session {
  mode = "ask";
  state = "idle";
  closed = false;
  history = [];
  turns = new Set();
  last = Promise.resolve();

  constructor(sessionId, cwd) {
    Object.assign(this, { sessionId, cwd });
  }

  config() {
    if (kind === "bare") return [];
    const options = ["ask", "code"].map((value) => ({ value, name: value }));
    return [{ configId: "mode", name: "Mode", category: "mode", type: "select", currentValue: this.mode, options }];
  }

  cancel() {
    for (const turn of this.turns) turn.abort();
  }
}

function find({ sessionId }) {
  const session = sessions.get(sessionId);
  if (!session) throw new acp.RequestError(-32002, "Resource not found", { sessionId });
  return session;
}

function checkParams({ cwd, mcpServers }) {
  if (!isAbsolute(cwd)) throw acp.RequestError.invalidParams({ cwd: `${cwd} is not an absolute path` });
  acp.assertSupportedMcpServers(mcpServers, capabilities.session.mcp);
}

/** Sends an update; with `keep` also to those that resume the session later. */
async function tell(client, session, update, keep = true) {
  if (keep) session.history.push(update);
  await client.notify(acp.methods.client.session.update, { sessionId: session.sessionId, update });
}

async function be(client, session, state, more = {}) {
  session.state = state;
  await tell(client, session, { sessionUpdate: "state_update", state, ...more }, false);
}

/** Inserts the prompt once it is its turn, and answers; the work goes on after that. */
async function prompt({ params, client, signal }) {
  const session = find(params);
  if (params.prompt.length === 0) throw acp.RequestError.invalidParams({ prompt: "empty" });
  const unknown = params.prompt.find(({ type }) => !blockTypes.includes(type));
  if (unknown) throw acp.RequestError.invalidParams({ prompt: `no content blocks of the type ${unknown.type}` });
  const turn = new AbortController();
  const withdraw = () => turn.abort();
  signal.addEventListener("abort", withdraw);
  session.turns.add(turn);
  const before = session.last;
  let end;
  session.last = new Promise((resolve) => (end = resolve));
  await before;
  signal.removeEventListener("abort", withdraw);
  // A prompt may be handled after the request that was read after it.
  if (turn.signal.aborted || session.closed) {
    session.turns.delete(turn);
    end();
    throw new acp.RequestError(-32800, "Request cancelled");
  }
  const messageId = randomUUID();
  await tell(client, session, { sessionUpdate: "user_message", messageId, content: params.prompt });
  // After the answer is on its way.
  setImmediate(async () => {
    await be(client, session, "running");
    let outcome = { stopReason: "end_turn" };
    try {
      await follow(client, session, params.prompt, turn.signal);
    } catch (error) {
      outcome = { stopReason: "error", error: { code: error.code ?? -32603, message: String(error.message) } };
    }
    if (turn.signal.aborted) outcome = { stopReason: "cancelled" };
    session.turns.delete(turn);
    await be(client, session, "idle", outcome);
    end();
  });
  return { messageId };
}

/** Does what a prompt says until `signal` aborts. */
async function follow(client, session, blocks, signal) {
  const messageId = randomUUID();
  const send = async (update, keep) => {
    signal.throwIfAborted();
    await tell(client, session, update, keep);
  };
  const say = (text, keep) => send({ sessionUpdate: "agent_message_chunk", messageId, content: textBlock(text) }, keep);
  const [word, ...rest] = (blocks[0]?.text ?? "").split(" ");
  const toolCallId = randomUUID();
  const call = (update) => send({ sessionUpdate: "tool_call_update", toolCallId, ...update });
  switch (word) {
    case "ping":
      return;
    case "think":
      await send({ sessionUpdate: "agent_thought_chunk", messageId: randomUUID(), content: textBlock("Let me think.") });
      return say("I have thought.");
    case "plan": {
      const entries = ["Read", "Test"].map((content) => ({ content, status: "pending", priority: "medium" }));
      return send({ sessionUpdate: "plan_update", plan: { type: "items", planId: "plan", entries } });
    }
    case "tool":
      await call({ title: "Edit example.txt", kind: "edit", status: "in_progress" });
      return call({ status: "completed", content: [{ type: "content", content: textBlock("One line changed.") }] });
    case "permission": {
      await call({ title: "Run a command", kind: "execute", status: "pending" });
      const options = ["allow", "reject"].map((id) => ({ optionId: id, name: id, kind: `${id}_once` }));
      const subject = { type: "tool_call", toolCall: { toolCallId } };
      const question = { sessionId: session.sessionId, title: "May I?", subject, options };
      await be(client, session, "requires_action");
      const answer = client.request(acp.methods.client.session.requestPermission, question, { cancellationSignal: signal });
      const { outcome } = await answer;
      await be(client, session, "running");
      const chosen = outcome.outcome === "selected" ? outcome.optionId : "cancelled";
      const statuses = { allow: ["in_progress", "completed"], reject: ["failed"], cancelled: ["cancelled"] };
      // An option that was not offered is no permission.
      for (const status of statuses[chosen] ?? statuses.reject) await call({ status });
      return say(`Permission: ${chosen}`);
    }
    case "slow":
      for (let tick = 0; tick < 300; tick++) {
        await say(`tick ${tick}\n`);
        await pause(100, undefined, { signal });
      }
      return;
    case "fail":
      throw acp.RequestError.internalError({ details: "the prompt asked for a failure" });
    case "stream":
      for (let number = 0; number < Number(rest[0]); number++) {
        await say(`${String(number).padStart(8, "0")} the quick brown fox jumps over the lazy dog, and so`, false);
      }
      return;
    default:
      for (const content of blocks) await send({ sessionUpdate: "agent_message_chunk", messageId, content });
  }
}

const app = acp
  .agent({ name: "typescript-agent" })
  .onRequest(acp.methods.agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "typescript-agent", version: "1.0.0" },
    authMethods: kind === "login" ? [{ methodId: "word", name: "With a word", type: "agent" }] : [],
    capabilities,
  }))
  .onRequest(methods.new, ({ params }) => {
    if (!isKnown) throw acp.RequestError.authRequired();
    checkParams(params);
    const session = new Session(randomUUID(), params.cwd);
    sessions.set(session.sessionId, session);
    return { sessionId: session.sessionId, configOptions: session.config() };
  })
  .onRequest(methods.resume, async ({ params, client }) => {
    const session = find(params);
    checkParams(params);
    session.closed = false;
    if (params.replayFrom && params.replayFrom.type !== "start") {
      throw acp.RequestError.invalidParams({ replayFrom: params.replayFrom.type });
    }
    for (const update of params.replayFrom ? [...session.history] : []) await tell(client, session, update, false);
    await be(client, session, session.state);
    return { configOptions: session.config() };
  })
  .onRequest(methods.close, async ({ params }) => {
    const session = sessions.get(params.sessionId);
    if (!session) return {};
    session.closed = true;
    session.cancel();
    await session.last;
    return {};
  })
  .onRequest(methods.list, ({ params }) => {
    if (params.cursor != null) throw acp.RequestError.invalidParams({ cursor: "there is one page only" });
    const listed = [...sessions.values()].filter(({ cwd }) => !params.cwd || params.cwd === cwd);
    return { sessions: listed.map(({ sessionId, cwd }) => ({ sessionId, cwd })) };
  })
  .onRequest(methods.setConfigOption, async ({ params: { sessionId, configId, type, value }, client }) => {
    const session = find({ sessionId });
    if (type !== "id") throw acp.RequestError.invalidParams({ type });
    if (configId !== "mode" || !["ask", "code"].includes(value)) throw acp.RequestError.invalidParams({ [configId]: value });
    session.mode = value;
    const configOptions = session.config();
    await tell(client, session, { sessionUpdate: "config_option_update", configOptions }, false);
    return { configOptions };
  })
  .onRequest(methods.prompt, prompt)
  .onNotification(methods.cancel, ({ params }) => sessions.get(params.sessionId)?.cancel());
if (kind !== "bare") {
  app.onRequest(methods.delete, ({ params }) => {
    sessions.get(params.sessionId)?.cancel();
    sessions.delete(params.sessionId);
    return {};
  });
}
if (kind === "login") {
  app
    .onRequest(acp.methods.agent.auth.login, ({ params: { methodId } }) => {
      if (methodId !== "word") throw acp.RequestError.invalidParams({ methodId });
      isKnown = true;
      return {};
    })
    .onRequest(acp.methods.agent.auth.logout, () => {
      isKnown = false;
      return {};
    });
}
app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
