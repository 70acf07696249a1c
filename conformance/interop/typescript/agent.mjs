// An agent on the official TypeScript SDK that understands words of acp-server; see words.mjs.
import { isAbsolute } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { follow } from "./words.mjs";

const { initialize, authenticate, session: methods } = acp.methods.agent;
// How the agent differs from the one that has all: see the README of this folder.
const kind = process.env.INTEROP ?? "full";
const CHOICES = { mode: ["ask", "code"], model: ["small", "large"] };
const title = (id) => id[0].toUpperCase() + id.slice(1);

/** What one session remembers. Its turns run one after the other. */
class Session {
  mode = "ask";
  model = "small";
  verbose = false;
  history = [];
  turns = new Set();
  last = Promise.resolve();

  constructor(sessionId, cwd) {
    this.sessionId = sessionId;
    this.cwd = cwd;
  }

  /** The options, of the kinds that the client is able to show. */
  config(able) {
    const selects = Object.entries(CHOICES).map(([id, values]) => {
      const options = values.map((value) => ({ value, name: title(value) }));
      return { id, name: title(id), category: id, type: "select", currentValue: this[id], options };
    });
    const verbose = { id: "verbose", name: "Verbose", type: "boolean", currentValue: this.verbose };
    return able.session?.configOptions?.boolean ? [...selects, verbose] : selects;
  }

  state(able) {
    const availableModes = CHOICES.mode.map((id) => ({ id, name: title(id) }));
    const modes = { currentModeId: this.mode, availableModes };
    if (kind === "bare") return {};
    return { ...(kind !== "options" && { modes }), ...(kind !== "modes" && { configOptions: this.config(able) }) };
  }

  cancel() {
    for (const turn of this.turns) turn.abort();
  }
}

const sessions = new Map();
let created = 0;

function find({ sessionId }) {
  const session = sessions.get(sessionId);
  if (!session) throw acp.RequestError.resourceNotFound(sessionId);
  return session;
}

function checkCwd({ cwd }) {
  if (!isAbsolute(cwd)) throw acp.RequestError.invalidParams({ cwd: `${cwd} is not an absolute path` });
}

function open(params) {
  checkCwd(params);
  return find(params);
}

/** Sets an option of the session; yields them all. A mode is an option too. */
async function change(client, able, sessionId, id, value) {
  const session = find({ sessionId });
  if (!CHOICES[id]?.includes(value) && !(id === "verbose" && typeof value === "boolean")) {
    throw acp.RequestError.invalidParams({ [id]: value });
  }
  session[id] = value;
  if (id === "mode" && kind !== "options") {
    const update = { sessionUpdate: "current_mode_update", currentModeId: value };
    await client.notify(acp.methods.client.session.update, { sessionId, update });
  }
  return session.config(able);
}

async function prompt({ params, client, signal }, able) {
  const session = find(params);
  if (kind === "busy" && session.turns.size) throw acp.RequestError.invalidRequest({ reason: "a turn is running" });
  // Made before the first wait: a cancel that arrives from now on is for this prompt too.
  const turn = new AbortController();
  signal.addEventListener("abort", () => turn.abort());
  session.turns.add(turn);
  const before = session.last;
  const done = before.then(() => follow(client, able, session, params.prompt, turn.signal));
  session.last = done.catch(() => {});
  try {
    const cancelled = new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    await Promise.race([done, cancelled]);
    return { stopReason: turn.signal.aborted ? "cancelled" : "end_turn" };
  } finally {
    session.turns.delete(turn);
  }
}

/** Makes the agent of one connection. Sessions belong to all connections. */
function makeAgent() {
  let able = {};
  let isKnown = kind !== "login";
  const app = acp
    .agent({ name: "typescript-agent" })
    .onRequest(initialize, ({ params }) => {
      able = params.clientCapabilities ?? {};
      return {
        protocolVersion: acp.PROTOCOL_VERSION,
        agentInfo: { name: "typescript-agent", version: "1.0.0" },
        authMethods: kind === "login" ? [{ id: "word", name: "With a word" }] : [],
        agentCapabilities: kind === "bare" ? {} : {
          loadSession: true,
          promptCapabilities: { image: true, audio: true, embeddedContext: true },
          sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
        },
      };
    })
    .onRequest(methods.new, ({ params }) => {
      if (!isKnown) throw acp.RequestError.authRequired();
      checkCwd(params);
      const sessionId = `session-${String(++created).padStart(8, "0")}`;
      const session = new Session(sessionId, params.cwd);
      sessions.set(sessionId, session);
      return { sessionId, ...session.state(able) };
    })
    .onRequest(methods.prompt, (context) => prompt(context, able))
    .onNotification(methods.cancel, ({ params }) => find(params).cancel());
  if (kind === "login") {
    app.onRequest(authenticate, ({ params: { methodId } }) => {
      if (methodId !== "word") throw acp.RequestError.invalidParams({ methodId });
      isKnown = true;
      return {};
    });
  }
  if (!["bare", "modes"].includes(kind)) {
    app.onRequest(methods.setConfigOption, async ({ params, client }) => {
      return { configOptions: await change(client, able, params.sessionId, params.configId, params.value) };
    });
  }
  if (!["bare", "options"].includes(kind)) {
    app.onRequest(methods.setMode, async ({ params: { sessionId, modeId }, client }) => {
      const configOptions = await change(client, able, sessionId, "mode", modeId);
      if (kind === "modes") return {};
      const update = { sessionUpdate: "config_option_update", configOptions };
      await client.notify(acp.methods.client.session.update, { sessionId, update });
      return {};
    });
  }
  return kind === "bare" ? app : keepsSessions(app, () => able);
}

/** Adds the methods for sessions that exist. */
function keepsSessions(app, able) {
  return app
    .onRequest(methods.load, async ({ params, client }) => {
      const session = open(params);
      for (const update of session.history) {
        await client.notify(acp.methods.client.session.update, { sessionId: session.sessionId, update });
      }
      return session.state(able());
    })
    .onRequest(methods.resume, ({ params }) => open(params).state(able()))
    .onRequest(methods.close, ({ params }) => {
      find(params).cancel();
      return {};
    })
    .onRequest(methods.delete, ({ params }) => {
      sessions.get(params.sessionId)?.cancel();
      sessions.delete(params.sessionId);
      return {};
    })
    .onRequest(methods.list, ({ params }) => {
      if (params.cursor != null) throw acp.RequestError.invalidParams({ cursor: "there is one page only" });
      const listed = [...sessions.values()].filter(({ cwd }) => !params.cwd || params.cwd === cwd);
      return { sessions: listed.map(({ sessionId, cwd }) => ({ sessionId, cwd })) };
    });
}

if (process.argv.includes("--serve")) {
  (await import("./serve.mjs")).serve(makeAgent);
} else {
  makeAgent().connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
}
