// What the first word of a prompt makes the agent do.
import { setTimeout as pause } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk";

const { session: methods, fs, terminal: terminals } = acp.methods.client;
const textBlock = (text) => ({ type: "text", text });

/** Does what `prompt` says until `signal` aborts; all that is sent is kept for replay, but for `stream`. */
export async function follow(client, able, session, prompt, signal) {
  const { sessionId, history } = session;
  const fleeting = async (update) => {
    signal.throwIfAborted();
    await client.notify(methods.update, { sessionId, update });
  };
  const send = async (update) => {
    history.push(update);
    await fleeting(update);
  };
  const chunk = (text) => ({ sessionUpdate: "agent_message_chunk", content: textBlock(text) });
  const say = (text) => send(chunk(text));

  signal.throwIfAborted();
  history.push(...prompt.map((content) => ({ sessionUpdate: "user_message_chunk", content })));
  const [word, ...rest] = (prompt[0]?.text ?? "").split(" ");
  if (!offered(able, word)) return say(`The client does not offer what ${word} needs.`);
  const { modes, configOptions } = session.state(able);
  if ((word === "mode" && !modes) || (word === "config" && !configOptions)) return say(`This agent has no ${word}.`);
  switch (word) {
    case "ping":
      return;
    case "think":
      await send({ sessionUpdate: "agent_thought_chunk", content: textBlock("Let me think.") });
      return say("I have thought.");
    case "plan": {
      const states = Object.entries({ Read: "completed", Change: "in_progress", Test: "pending" });
      const entries = states.map(([content, status]) => ({ content, status, priority: "medium" }));
      return send({ sessionUpdate: "plan", entries });
    }
    case "tool": {
      const call = { sessionUpdate: "tool_call_update", toolCallId: "call-1" };
      const diff = { type: "diff", path: `${session.cwd}/example.txt`, oldText: "old\n", newText: "new\n" };
      const content = [{ type: "content", content: textBlock("One line changed.") }, diff];
      await send({ ...call, sessionUpdate: "tool_call", title: "Edit example.txt", kind: "edit", status: "pending" });
      await send({ ...call, status: "in_progress" });
      return send({ ...call, status: "completed", content });
    }
    case "permission": {
      const call = { sessionUpdate: "tool_call_update", toolCallId: "call-2" };
      await send({ ...call, sessionUpdate: "tool_call", title: "Run a command", kind: "execute", status: "pending" });
      const chosen = await ask(client, sessionId);
      for (const status of chosen === "allow" ? ["in_progress", "completed"] : ["failed"]) {
        await send({ ...call, status });
      }
      return say(`Permission: ${chosen}`);
    }
    case "perm":
      for (let asked = 0; asked < Number(rest[0]); asked++) await ask(client, sessionId);
      return;
    case "read":
      return say((await client.request(fs.readTextFile, { sessionId, path: rest.join(" ") })).content);
    case "write": {
      const [path, ...words] = rest;
      await client.request(fs.writeTextFile, { sessionId, path, content: words.join(" ") });
      return say(`Wrote ${path}`);
    }
    case "terminal":
      return say(await runIn(client, sessionId, rest));
    case "mode":
      return send({ sessionUpdate: "current_mode_update", currentModeId: modes.currentModeId });
    case "config":
      return send({ sessionUpdate: "config_option_update", configOptions });
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
        const counted = String(number).padStart(8, "0");
        await fleeting(chunk(`${counted} the quick brown fox jumps over the lazy dog, and so`));
      }
      return;
    default:
      for (const content of prompt) await send({ sessionUpdate: "agent_message_chunk", content });
  }
}

/** Whether the client declares what a word needs. */
function offered(able, word) {
  const needs = { read: able.fs?.readTextFile, write: able.fs?.writeTextFile, terminal: able.terminal };
  return !(word in needs) || needs[word];
}

/** Asks for permission; yields the id of the chosen option, or `cancelled`. */
async function ask(client, sessionId) {
  const { outcome } = await client.request(methods.requestPermission, {
    sessionId,
    toolCall: { toolCallId: "call-2", title: "Run a command" },
    options: [
      { optionId: "allow", name: "Allow", kind: "allow_once" },
      { optionId: "reject", name: "Reject", kind: "reject_once" },
    ],
  });
  return outcome.outcome === "selected" ? outcome.optionId : "cancelled";
}

/** Runs a command in a terminal of the client; yields what it printed and its exit code. */
async function runIn(client, sessionId, [command, ...args]) {
  const { terminalId } = await client.request(terminals.create, { sessionId, command, args });
  const { exitCode } = await client.request(terminals.waitForExit, { sessionId, terminalId });
  const { output } = await client.request(terminals.output, { sessionId, terminalId });
  await client.request(terminals.release, { sessionId, terminalId });
  return `${output}exit code: ${exitCode}`;
}
