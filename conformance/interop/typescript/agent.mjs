// An agent on the official TypeScript SDK that understands words of acp-server; see words.mjs.
import { isAbsolute } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { follow } from "./words.mjs";

const { initialize, session: methods } = acp.methods.agent;
const MODES = ["ask", "code"];
const MODELS = ["small", "large"];
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

  config() {
    const options = MODELS.map((value) => ({ value, name: title(value) }));
    return [
      { id: "model", name: "Model", category: "model", type: "select", currentValue: this.model, options },
      { id: "verbose", name: "Verbose", type: "boolean", currentValue: this.verbose },
    ];
  }

  state() {
    const availableModes = MODES.map((id) => ({ id, name: title(id) }));
    return { modes: { currentModeId: this.mode, availableModes }, configOptions: this.config() };
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

async function prompt({ params, client, signal }) {
  const session = find(params);
  // Made before the first wait: a cancel that arrives from now on is for this prompt too.
  const turn = new AbortController();
  signal.addEventListener("abort", () => turn.abort());
  session.turns.add(turn);
  const before = session.last;
  const done = before.then(() => follow(client, session, params.prompt, turn.signal));
  session.last = done.catch(() => {});
  try {
    const cancelled = new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    await Promise.race([done, cancelled]);
    return { stopReason: turn.signal.aborted ? "cancelled" : "end_turn" };
  } finally {
    session.turns.delete(turn);
  }
}

acp
  .agent({ name: "typescript-agent" })
  .onRequest(initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentInfo: { name: "typescript-agent", version: "1.0.0" },
    authMethods: [],
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, audio: true, embeddedContext: true },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
    },
  }))
  .onRequest(methods.new, ({ params }) => {
    checkCwd(params);
    const sessionId = `session-${String(++created).padStart(8, "0")}`;
    const session = new Session(sessionId, params.cwd);
    sessions.set(sessionId, session);
    return { sessionId, ...session.state() };
  })
  .onRequest(methods.load, async ({ params, client }) => {
    const session = open(params);
    for (const update of session.history) {
      await client.notify(acp.methods.client.session.update, { sessionId: session.sessionId, update });
    }
    return session.state();
  })
  .onRequest(methods.resume, ({ params }) => open(params).state())
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
    const listed = [...sessions.values()].filter(({ cwd }) => !params.cwd || params.cwd === cwd);
    return { sessions: listed.map(({ sessionId, cwd }) => ({ sessionId, cwd })) };
  })
  .onRequest(methods.setMode, async ({ params, client }) => {
    const session = find(params);
    const { sessionId, modeId } = params;
    if (!MODES.includes(modeId)) throw acp.RequestError.invalidParams({ modeId });
    session.mode = modeId;
    const update = { sessionUpdate: "current_mode_update", currentModeId: modeId };
    await client.notify(acp.methods.client.session.update, { sessionId, update });
    return {};
  })
  .onRequest(methods.setConfigOption, ({ params }) => {
    const session = find(params);
    const { configId, value } = params;
    if (configId === "model" && MODELS.includes(value)) session.model = value;
    else if (configId === "verbose" && typeof value === "boolean") session.verbose = value;
    else throw acp.RequestError.invalidParams({ configId, value });
    return { configOptions: session.config() };
  })
  .onRequest(methods.prompt, prompt)
  .onNotification(methods.cancel, ({ params }) => find(params).cancel())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
