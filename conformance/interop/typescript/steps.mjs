// What the steps of a client share: one connection, one session, prompts in it, and assertions.
import assert from "node:assert/strict";
import { methods } from "@agentclientprotocol/sdk";

const STEP_MS = 30_000;

/** Calls the methods of `drive` in their order; yields how many of them failed. */
export async function run(drive) {
  let failed = 0;
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(drive));
  for (const name of names.filter((name) => name !== "constructor")) {
    try {
      await within(STEP_MS, drive[name]());
      console.log("ok  ", name);
    } catch (error) {
      failed += 1;
      console.log("FAIL", name, `${error.name}: ${error.message}`.replace(/\s+/g, " "));
    }
  }
  return failed;
}

export class Steps {
  constructor(host, agent, folder) {
    Object.assign(this, { host, agent, folder });
  }

  ask(words, sessionId = this.sessionId, options = {}) {
    const prompt = typeof words === "string" ? [{ type: "text", text: words }] : words;
    return this.agent.request(methods.agent.session.prompt, { sessionId, prompt }, options);
  }

  seen(sessionId = this.sessionId) {
    return this.host.updates.filter((note) => note.sessionId === sessionId).map((note) => note.update);
  }

  /** Prompts; yields the stop reason and the updates that came before it. */
  async prompt(words) {
    this.host.updates = [];
    const { stopReason } = await this.ask(words);
    return [stopReason, this.seen()];
  }

  async says(words, expected = "") {
    const [stop, updates] = await this.prompt(words);
    assert.equal(stop, "end_turn");
    assert(text(updates).includes(expected), `${expected.slice(0, 80)} is not in ${text(updates).slice(0, 80)}`);
    return updates;
  }
}

export function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export const ofKind = (updates, kind) => updates.filter(({ sessionUpdate }) => sessionUpdate === kind);

export const text = (updates, kind = "agent_message_chunk") =>
  ofKind(updates, kind)
    .map(({ content }) => content.text ?? "")
    .join("");

export async function refused(call, code) {
  const answer = await call.catch((error) => {
    assert.equal(error.code, code, `error ${error.code} (${error.message}) instead of ${code}`);
  });
  assert.equal(answer, undefined, `no error but ${JSON.stringify(answer)}`);
}
