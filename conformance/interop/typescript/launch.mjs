// Starts an agent for a client of one prompt, and ends it.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

/** Starts an agent; yields its process and its messages, as `ndJsonStream` of a version of the SDK reads them. */
export function launch([command, ...args], ndJsonStream) {
  const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  return { agent, stream: ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)) };
}

/** Exits with what `run` yields, or with 1 if it fails or the agent ends meanwhile. */
export async function finish(agent, run) {
  const died = new Promise((_, reject) => agent.once("exit", () => reject(new Error("the agent has ended"))));
  let code = 1;
  try {
    code = await Promise.race([run(), died]);
  } catch (error) {
    console.error(String(error.message ?? error));
  }
  agent.stdin.end();
  setTimeout(() => agent.kill("SIGKILL"), 2000).unref();
  process.exitCode = code;
}
