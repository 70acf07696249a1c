// Runs the steps of a client, and what they assert with.
import assert from "node:assert/strict";

const STEP_MS = 30_000;

/** Calls the functions of `steps` in their order; yields how many of them failed. */
export async function run(steps) {
  let failed = 0;
  for (const [name, step] of Object.entries(steps)) {
    try {
      await within(STEP_MS, step());
      console.log("ok  ", name);
    } catch (error) {
      failed += 1;
      console.log("FAIL", name, `${error.name}: ${error.message}`.replace(/\s+/g, " "));
    }
  }
  return failed;
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
    .map(({ content }) => content.text)
    .join("");

export async function refused(call, code) {
  const answer = await call.catch((error) => {
    assert.equal(error.code, code, `error ${error.code} (${error.message}) instead of ${code}`);
  });
  assert.equal(answer, undefined, `no error but ${JSON.stringify(answer)}`);
}
