// Drives an agent with the official TypeScript SDK: one line per step, exit code 1 if a step failed.
// Usage: client.mjs AGENT [ARG...] | client.mjs URL, with a token in ACP_TOKEN   (an agent that understands the words of acp-server)
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk";
import { Host } from "./host.mjs";
import { Steps, ofKind, refused, run, text, within } from "./steps.mjs";

const { initialize, session: methods } = acp.methods.agent;

/** The steps are the methods, in this order; a step fails by throwing. */
class Drive extends Steps {
  async initialize() {
    const fs = { readTextFile: true, writeTextFile: true };
    const session = { configOptions: { boolean: {} }, notices: {}, compaction: {} };
    const clientCapabilities = { fs, terminal: true, elicitation: { form: {}, url: {} }, session };
    const answer = await this.agent.request(initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities });
    assert.equal(answer.protocolVersion, 1);
    assert(answer.agentCapabilities.loadSession, "the agent does not load sessions");
    assert(answer.agentInfo?.name, "the agent has no name");
  }

  async new_session() {
    this.created = await this.agent.request(methods.new, { cwd: this.folder, mcpServers: [] });
    this.sessionId = this.created.sessionId;
    assert(this.sessionId, "an empty session id");
  }

  async echo() {
    await this.says("Hello, wörld 🦀", "Hello, wörld 🦀");
  }

  async content_blocks() {
    const resource = { uri: "file:///a.txt", mimeType: "text/plain", text: "embedded" };
    const blocks = [
      { type: "text", text: "first" },
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "audio", data: "aGk=", mimeType: "audio/wav" },
      { type: "resource_link", name: "a.txt", uri: "file:///a.txt" },
      { type: "resource", resource },
    ];
    const [, updates] = await this.prompt(blocks);
    assert.deepEqual(updates.map((update) => update.content), blocks);
  }

  async one_mebibyte() {
    const long = "line\n\u2028 \u00fc".repeat(1 << 17);
    await this.says(long, long);
  }

  async think() {
    const updates = await this.says("think");
    assert(text(updates, "agent_thought_chunk") && text(updates));
  }

  async plan() {
    const [plan] = ofKind(await this.says("plan"), "plan");
    const states = plan.entries.map((entry) => entry.status);
    assert.deepEqual(states, ["completed", "in_progress", "pending"]);
  }

  async tool() {
    const updates = await this.says("tool");
    const [call] = ofKind(updates, "tool_call");
    const later = ofKind(updates, "tool_call_update");
    assert(later.every((update) => update.toolCallId === call.toolCallId));
    assert.equal(later.at(-1).status, "completed");
    const shown = later.filter((update) => update.content).at(-1).content;
    assert.deepEqual(shown.slice(0, 2).map((content) => content.type), ["content", "diff"]);
  }

  async permission() {
    for (const [kind, expected] of Object.entries({ reject_once: "reject", allow_once: "allow" })) {
      this.host.permission = kind;
      await this.says("permission", expected);
    }
  }

  async files() {
    const path = join(this.folder, "file.txt");
    await this.says(`write ${path} written by the agent`);
    assert.equal(await readFile(path, "utf8"), "written by the agent");
    await writeFile(path, "read by the agent, ünïcode\n");
    await this.says(`read ${path}`, "read by the agent, ünïcode");
  }

  async terminal() {
    await this.says("terminal echo from-a-terminal", "from-a-terminal");
    assert.equal(this.host.terminals.size, 0, "a terminal was not released");
  }

  async elicitation() {
    for (const words of ["elicit form", "elicit url"]) assert.match(text(await this.says(words)), /accept/i);
    // Over HTTP the completion may come on another stream than the answer, and after it.
    for (let waits = 0; waits < 500 && !this.host.completed.length; waits++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(this.host.completed.length, 1);
  }

  async other_updates() {
    const kinds = { usage: "usage_update", commands: "available_commands_update", "title New": "session_info_update" };
    for (const [word, kind] of Object.entries({ ...kinds, notice: "notice", compact: "compaction_update" })) {
      assert(ofKind(await this.says(word), kind).length, `${word}: no ${kind}`);
    }
  }

  async stream() {
    const [stop, updates] = await this.prompt("stream 1000");
    const chunks = ofKind(updates, "agent_message_chunk").map((update) => update.content.text);
    assert.deepEqual([stop, chunks.length], ["end_turn", 1000], `${chunks.length} chunks before the answer (${stop})`);
    assert.deepEqual(chunks, [...new Set(chunks)].sort(), "the chunks are out of order");
  }

  async two_sessions() {
    const other = await this.agent.request(methods.new, { cwd: this.folder, mcpServers: [] });
    const ids = [this.sessionId, other.sessionId];
    this.host.updates = [];
    await Promise.all(ids.map((id) => this.ask("stream 300", id)));
    assert.deepEqual(ids.map((id) => this.seen(id).length), [300, 300], "the sessions got mixed up");
  }

  async cancel() {
    const turn = this.prompt("slow");
    while (!text(this.seen())) await pause(10);
    await this.agent.notify(methods.cancel, { sessionId: this.sessionId });
    assert.equal((await turn)[0], "cancelled");
    await this.says("still here", "still here");
  }

  async cancel_request() {
    const giveUp = new AbortController();
    this.host.updates = [];
    const turn = this.ask("slow", this.sessionId, { cancellationSignal: giveUp.signal });
    while (!text(this.seen())) await pause(10);
    giveUp.abort();
    const stop = await turn.then((answer) => answer.stopReason).catch((error) => error.code);
    assert(stop === "cancelled" || stop === -32800, `answered with ${stop}`);
  }

  async fail() {
    await refused(this.ask("fail"), -32603);
  }

  async mode() {
    const { availableModes, currentModeId } = this.created.modes;
    const modeId = availableModes.find(({ id }) => id !== currentModeId).id;
    await this.agent.request(methods.setMode, { sessionId: this.sessionId, modeId });
    const [update] = ofKind(await this.says("mode"), "current_mode_update");
    assert.equal(update.currentModeId, modeId);
    await refused(this.agent.request(methods.setMode, { sessionId: this.sessionId, modeId: "none" }), -32602);
  }

  async config() {
    for (const { id, type, currentValue, options } of this.created.configOptions) {
      // One may stand under a heading.
      const last = options?.at(-1);
      const chosen = type === "boolean" ? { type, value: !currentValue } : { value: (last.options?.at(-1) ?? last).value };
      assert.notEqual(chosen.value, currentValue, `${id} has one value only`);
      const params = { sessionId: this.sessionId, configId: id, ...chosen };
      const { configOptions } = await this.agent.request(methods.setConfigOption, params);
      assert.equal(configOptions.find((option) => option.id === id).currentValue, chosen.value);
    }
  }

  async list() {
    const { sessions } = await this.agent.request(methods.list, {});
    assert(sessions.some(({ sessionId }) => sessionId === this.sessionId));
  }

  async load() {
    this.host.updates = [];
    await this.agent.request(methods.load, { sessionId: this.sessionId, cwd: this.folder, mcpServers: [] });
    for (const kind of ["user_message_chunk", "agent_message_chunk"]) {
      assert(text(this.seen(), kind).includes("Hello, wörld 🦀"), `the first ${kind} is not replayed`);
    }
  }

  async unknown() {
    const nowhere = { sessionId: "nowhere", cwd: this.folder, mcpServers: [] };
    await refused(this.ask("echo", "nowhere"), -32002);
    await refused(this.agent.request(methods.load, nowhere), -32002);
    await refused(this.agent.request("_no/such/method", {}), -32601);
  }

  async close_and_delete() {
    const { sessionId } = this;
    await this.agent.request(methods.resume, { sessionId, cwd: this.folder, mcpServers: [] });
    await this.agent.request(methods.close, { sessionId });
    await this.agent.request(methods.delete, { sessionId });
    await refused(this.ask("echo"), -32002);
  }
}

const host = new Host();
const folder = await mkdtemp(join(tmpdir(), "interop-"));
const { stream, end } = await connect(process.argv[2], process.argv.slice(3));
const failed = await host.app({ files: true, terminals: true, forms: true }).connectWith(stream, (agent) => run(new Drive(host, agent, folder)));
const problem = await end();
await rm(folder, { recursive: true });
process.exit(failed || problem ? 1 : 0);

/** Opens the URL of an agent, or starts the command of one. `end` tells whether it ended as it should. */
async function connect(target, args) {
  const { ACP_TOKEN } = process.env;
  const headers = ACP_TOKEN ? { Authorization: `Bearer ${ACP_TOKEN}` } : {};
  if (/^https?:/.test(target)) {
    const { createHttpStream } = await import("@agentclientprotocol/sdk/experimental/http-client");
    return { stream: createHttpStream(target, { headers }), end: async () => false };
  }
  if (/^wss?:/.test(target)) {
    const { createWebSocketStream } = await import("@agentclientprotocol/sdk/experimental/ws-client");
    const { WebSocket } = await import("ws");
    return { stream: createWebSocketStream(target, { WebSocket, headers }), end: async () => false };
  }
  const child = spawn(target, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exit = new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const end = async () => {
    child.stdin.end();
    const code = await within(5_000, exit).catch((error) => error.message);
    console.log(code === 0 ? "ok  " : "FAIL", "exit of the agent:", code);
    return code !== 0;
  };
  return { stream, end };
}
