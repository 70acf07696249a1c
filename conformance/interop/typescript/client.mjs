// Drives an agent with the official TypeScript SDK: one line per step, exit code 1 if a step failed.
// Usage: client.mjs AGENT [ARG...]   (an agent that understands the words of acp-server)
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk";
import { Host } from "./host.mjs";
import { ofKind, refused, run, text, within } from "./steps.mjs";

const { initialize, session: methods } = acp.methods.agent;
const host = new Host();
const folder = await mkdtemp(join(tmpdir(), "interop-"));

function steps(agent) {
  let created, sessionId;

  const seen = () => host.updates.filter((note) => note.sessionId === sessionId).map(({ update }) => update);
  const ask = (words, id = sessionId) =>
    agent.request(methods.prompt, { sessionId: id, prompt: [{ type: "text", text: words }] });

  async function prompt(words) {
    host.updates = [];
    const { stopReason } = await ask(words);
    return [stopReason, seen()];
  }

  async function says(words, expected = "") {
    const [stop, updates] = await prompt(words);
    assert.equal(stop, "end_turn");
    assert(text(updates).includes(expected), `${expected} is not in ${text(updates)}`);
    return updates;
  }

  return {
    async initialize() {
      const clientCapabilities = {
        fs: { readTextFile: true, writeTextFile: true },
        terminal: true,
        elicitation: { form: {}, url: {} },
      };
      const answer = await agent.request(initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities });
      assert.equal(answer.protocolVersion, 1);
      assert(answer.agentCapabilities.loadSession, "the agent does not load sessions");
      assert(answer.agentInfo?.name, "the agent has no name");
    },
    async new_session() {
      created = await agent.request(methods.new, { cwd: folder, mcpServers: [] });
      sessionId = created.sessionId;
      assert(sessionId, "an empty session id");
    },
    async echo() {
      await says("Hello, wörld 🦀", "Hello, wörld 🦀");
    },
    async think() {
      const updates = await says("think");
      assert(text(updates, "agent_thought_chunk") && text(updates));
    },
    async plan() {
      const [plan] = ofKind(await says("plan"), "plan");
      assert.deepEqual(
        plan.entries.map(({ status }) => status),
        ["completed", "in_progress", "pending"],
      );
    },
    async tool() {
      const updates = await says("tool");
      const [call] = ofKind(updates, "tool_call");
      const last = ofKind(updates, "tool_call_update").at(-1);
      assert.deepEqual([last.toolCallId, last.status], [call.toolCallId, "completed"]);
      assert.deepEqual(
        last.content.map(({ type }) => type),
        ["content", "diff"],
      );
    },
    async permission() {
      for (const [kind, expected] of [
        ["reject_once", "reject"],
        ["allow_once", "allow"],
      ]) {
        host.permission = kind;
        await says("permission", expected);
      }
    },
    async files() {
      const path = join(folder, "file.txt");
      await says(`write ${path} written by the agent`);
      assert.equal(await readFile(path, "utf8"), "written by the agent");
      await writeFile(path, "read by the agent, ünïcode\n");
      await says(`read ${path}`, "read by the agent, ünïcode");
    },
    async terminal() {
      await says("terminal echo from-a-terminal", "from-a-terminal");
      assert.equal(host.terminals.size, 0, "a terminal was not released");
    },
    async elicitation() {
      for (const words of ["elicit form", "elicit url"]) {
        assert.match(text(await says(words)), /accept/i);
      }
      assert.equal(host.completed.length, 1);
    },
    async other_updates() {
      const kinds = { usage: "usage_update", commands: "available_commands_update", "title New": "session_info_update" };
      for (const [word, kind] of Object.entries({ ...kinds, notice: "notice", compact: "compaction_update" })) {
        assert(ofKind(await says(word), kind).length, `${word}: no ${kind}`);
      }
    },
    async stream() {
      const [stop, updates] = await prompt("stream 1000");
      const chunks = ofKind(updates, "agent_message_chunk").map(({ content }) => content.text);
      assert.deepEqual([stop, chunks.length], ["end_turn", 1000], `${chunks.length} chunks before the answer (${stop})`);
      assert.deepEqual(chunks, [...new Set(chunks)].sort(), "the chunks are out of order");
    },
    async cancel() {
      const turn = prompt("slow");
      while (!text(seen())) await pause(10);
      await agent.notify(methods.cancel, { sessionId });
      assert.equal((await turn)[0], "cancelled");
      await says("still here", "still here");
    },
    async fail() {
      await refused(ask("fail"), -32603);
    },
    async mode() {
      const { availableModes, currentModeId } = created.modes;
      const other = availableModes.find(({ id }) => id !== currentModeId).id;
      await agent.request(methods.setMode, { sessionId, modeId: other });
      const [update] = ofKind(await says("mode"), "current_mode_update");
      assert.equal(update.currentModeId, other);
      await refused(agent.request(methods.setMode, { sessionId, modeId: "none" }), -32602);
    },
    async config() {
      for (const { id, type, currentValue, options } of created.configOptions) {
        const chosen = type === "boolean" ? { type, value: !currentValue } : { value: options.at(-1).value };
        assert.notEqual(chosen.value, currentValue, `${id} has one value only`);
        const answer = await agent.request(methods.setConfigOption, { sessionId, configId: id, ...chosen });
        assert.equal(answer.configOptions.find((option) => option.id === id).currentValue, chosen.value);
      }
    },
    async list() {
      const { sessions } = await agent.request(methods.list, {});
      assert(sessions.map((session) => session.sessionId).includes(sessionId));
    },
    async load() {
      host.updates = [];
      await agent.request(methods.load, { sessionId, cwd: folder, mcpServers: [] });
      for (const kind of ["user_message_chunk", "agent_message_chunk"]) {
        assert(text(seen(), kind).includes("Hello, wörld 🦀"), `the first ${kind} is not replayed`);
      }
    },
    async unknown() {
      await refused(ask("echo", "nowhere"), -32002);
      await refused(agent.request(methods.load, { sessionId: "nowhere", cwd: folder, mcpServers: [] }), -32002);
      await refused(agent.request("_no/such/method", {}), -32601);
    },
    async close_and_delete() {
      await agent.request(methods.resume, { sessionId, cwd: folder, mcpServers: [] });
      await agent.request(methods.close, { sessionId });
      await agent.request(methods.delete, { sessionId });
      await refused(ask("echo"), -32002);
    },
  };
}

const child = spawn(process.argv[2], process.argv.slice(3), { stdio: ["pipe", "pipe", "inherit"] });
const exit = new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const failed = await host.app().connectWith(stream, (agent) => run(steps(agent)));
child.stdin.end();
const code = await within(5_000, exit).catch((error) => error.message);
console.log(code === 0 ? "ok  " : "FAIL", "exit of the agent:", code);
await rm(folder, { recursive: true });
process.exit(failed || code !== 0 ? 1 : 0);
