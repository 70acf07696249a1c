// The page: the session that is open, its connection, and its controls.

const $ = (id) => document.getElementById(id);
const conversation = new Conversation($("log"));
let current = null; // { id, cwd, last: the number of the last update, newest: of the last event, loaded }
let isReady = false; // whether the session is up to date over an open connection
let isBusy = false;
let wanted = null; // the working directory of a new session, until the connection to its agent is open

const link = new Link({
  opened: () => greet().catch(failed),
  lost: () => { isReady = false; questions.forget(); show("connection lost"); $("cancel").disabled = true; },
  waiting: (until) => offline(until),
  signIn(reason) {
    offline(null);
    show("not signed in");
    $("refused").textContent = reason;
    if (!$("sign-in").open) $("sign-in").showModal();
  },
  notification(method, params) {
    if (method === "session/update") return updated(params);
    if (method === "_acp-sdk/session/state_changed" && current && params.sessionId === current.id) return turned(params);
    if (method === "$/cancel_request") questions.withdraw(params.requestId);
  },
  request(method, params, id) {
    if (params.sessionId !== undefined && params.sessionId !== current?.id) return;
    if (method === "session/request_permission") return questions.permission(id, params);
    if (method === "elicitation/create") return questions.elicitation(id, params);
    link.refuse(id, -32601, "this page has no " + method);
  },
});
const questions = new Questions(conversation, link);
const agents = new Agents($("agent"), link);
const sessions = new Sessions($("sessions"), link, agents, open);
const history = new History(link, logged);
const prompts = new Prompts(conversation, link, {
  isReady: () => isReady,
  async ended(answer, prompt) {
    if (prompt.session !== current?.id) return;
    await history.read();
    prompts.place(prompt, history.turn ? history.turn + 1 : conversation.top);
    if (!history.isOffered && answer.stopReason !== "end_turn") conversation.notice("Ended: " + words(answer.stopReason) + ".");
    sessions.load().catch(() => {});
  },
  async failed(error, prompt) {
    if (prompt.session !== current?.id) return;
    const failures = history.failures;
    await history.read();
    if (history.failures === failures) failed(error);
  },
});

function put(id, text) { $(id).textContent = visible(text); }
function show(text) { put("state", text); }
function failed(error) { conversation.notice(error.message, "error"); }

async function greet() {
  const hello = await link.call("initialize", {
    protocolVersion: 1,
    clientInfo: { name: "acp-server-page", title: "Web page", version: "1" },
    clientCapabilities: {
      elicitation: { form: {}, url: {} },
      session: { notices: {}, compaction: {}, configOptions: { boolean: {} } },
      _meta: { "acp-sdk": { sessionState: true } },
    },
  });
  const info = hello.agentInfo || {}, can = hello.agentCapabilities?.sessionCapabilities ?? {};
  $("close").hidden = !can.close;
  $("delete").hidden = !can.delete;
  document.title = visible(info.title || info.name || "Agent");
  if (!current) put("title", document.title);
  link.ready();
  offline(null);
  show("connected");
  await agents.load();
  const cwd = wanted;
  wanted = null;
  try {
    if (cwd !== null) await create(cwd);
    else if (current) await (current.loaded ? resume() : load());
  } catch (error) { failed(error); }
  await sessions.load();
  if (current) name();
  else if (location.hash.length > 1) await openNamed(decodeURIComponent(location.hash.slice(1)));
}

// Says when the next attempt is, or that the connection is back.
let countdown;
function offline(until) {
  clearInterval(countdown);
  $("offline").hidden = until === null;
  if (until === null) return;
  const count = () => { $("seconds").textContent = `Next attempt in ${Math.max(0, Math.ceil((until - Date.now()) / 1000))} s.`; };
  count();
  countdown = setInterval(count, 1000);
}

async function openNamed(id) {
  const found = await sessions.find(id);
  if (found) open(found.id, found.cwd, found.agent);
  else conversation.notice("There is no session " + id + ".", "error");
}

// Shows another session, over a connection of its own: the server sends this page no other then.
function open(id, cwd, agent) {
  link.agent = agent ?? null;
  wanted = null;
  select({ id, cwd, last: 0, newest: 0, loaded: false });
  isReady = false;
  link.open();
}

function select(session) {
  current = session;
  window.history.replaceState(null, "", "#" + encodeURIComponent(session.id));
  begin();
  $("composer").hidden = $("about").hidden = false;
  put("usage", "");
  put("commands", "");
  settings({});
  sessions.select(session.id);
  name();
  drawer(false);
}

// Shows the session from its beginning.
function begin() {
  conversation.clear();
  questions.forget();
  questions.clear();
  history.start(current.id);
  current.last = 0;
}

function name() {
  put("title", sessions.name(current.id));
  $("title").title = visible(current.id);
}

async function load() {
  begin();
  show("loading");
  const params = { sessionId: current.id, cwd: current.cwd, mcpServers: [] };
  const answer = await link.call("session/load", params);
  current.loaded = true;
  settings(answer || {});
  prompts.restore(current.id);
  await upToDate();
}

// Goes on after the last event that is shown.
async function resume() {
  const params = { sessionId: current.id, sinceEventId: current.last };
  const answer = await link.call("_acp-sdk/session/resume", params);
  if (answer.truncated) conversation.notice("Some of what happened meanwhile is no longer kept.");
  await upToDate();
}

async function upToDate() {
  isReady = true;
  $("cancel").disabled = false;
  prompts.recover(current.id);
  turned(await link.call("_acp-sdk/session/state", { sessionId: current.id }));
}

function turned(now) {
  const waits = (now.questions || []).some((it) => it.kind === "permission") ? "waiting for a permission"
    : now.questions?.length ? "waiting for an answer" : now.state;
  show(now.state === "running" ? waits + (now.queued ? `, ${now.queued} queued` : "") : now.state);
  isBusy = now.state === "running" || now.state === "cancelling";
  current.newest = Math.max(current.newest, now.lastEventId ?? 0);
  $("cancel").hidden = !isBusy;
  history.read();
}

// An event that the protocol has no update for. It may overtake updates.
function logged(event) {
  current.newest = Math.max(current.newest, event.eventId);
  switch (event.type) {
    case "turn_started": {
      const from = event.client && !event.client.startsWith("acp-server-page") ? " · " + event.client : "";
      conversation.add(make("p", { className: "turn start", textContent: (event.time ? time(event.time) : "") + from }), event.eventId);
      return;
    }
    case "turn_ended": conversation.add(turnEnd(event), event.eventId); return;
    case "permission_asked": case "elicitation_asked": return questions.asked(event);
    case "permission_answered": case "elicitation_answered": return questions.answered(event);
  }
}

function updated(params) {
  if (!current || params.sessionId !== current.id) return;
  const { eventId, promptId } = params._meta?.["acp-sdk"] ?? {};
  if (eventId !== undefined) {
    if (eventId <= current.last) return;
    current.last = eventId;
    current.newest = Math.max(current.newest, eventId);
  }
  const update = params.update;
  if (update.sessionUpdate === "user_message_chunk") prompts.logged(update, promptId, current.id);
  else prompts.began(promptId, eventId);
  switch (update.sessionUpdate) {
    case "current_mode_update": return chosen("mode", update.currentModeId);
    case "config_option_update": return settings({ configOptions: update.configOptions });
    case "session_info_update": if (update.title !== undefined) sessions.load().then(name).catch(() => {}); return;
    case "available_commands_update":
      put("commands", (update.availableCommands || []).map((command) => "/" + command.name).join("  "));
      return;
    case "usage_update": return usage(update);
  }
  conversation.update(update, eventId);
}

function usage({ used, size, cost }) {
  const tokens = size ? `${number(used)} of ${number(size)} tokens` : "";
  put("usage", [tokens, cost ? money({ [cost.currency]: cost.amount }) : ""].filter(Boolean).join(", "));
}

function send() {
  const text = $("prompt").value.trim();
  if (!text || !current) return;
  $("prompt").value = "";
  // The turn begins with the next event, and the prompt is the one after it.
  const waits = isBusy || !isReady || prompts.of(current.id).length > 0;
  prompts.send(current.id, text, waits ? Infinity : current.newest + 1.5);
  sessions.begin(current.id, text);
  name();
}

// Shows no session.
function none() {
  current = null;
  isReady = false;
  window.history.replaceState(null, "", location.pathname);
  conversation.clear();
  questions.clear();
  history.start(null);
  $("composer").hidden = $("about").hidden = true;
  sessions.select(null);
  put("title", document.title);
  put("usage", "");
}

// Closes or deletes the session that is shown.
async function leave(method) {
  try {
    await link.call(method, { sessionId: current.id });
    none();
    show("connected");
    conversation.notice("Open a session, or begin a new one.");
    await sessions.load();
  } catch (error) { failed(error); }
}

// On a narrow window the list is a drawer over the conversation.
function drawer(isOpen) {
  document.body.classList.toggle("drawer", isOpen);
  $("menu").ariaExpanded = String(isOpen);
  if (isOpen) $("search").focus();
}

$("composer").onsubmit = (event) => { event.preventDefault(); send(); };
$("prompt").onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
};
$("cancel").onclick = () => link.notify("session/cancel", { sessionId: current.id });
$("about").onclick = () => {
  const { agent } = sessions.sessions.get(current.id) ?? {};
  put("named", `${sessions.name(current.id)} (${[current.id, current.cwd, agent].filter(Boolean).join(", ")})`);
  $("session").returnValue = "";
  $("session").showModal();
};
$("session").onclose = () => {
  const methods = { close: "session/close", delete: "session/delete" };
  const method = methods[$("session").returnValue];
  if (method && current) leave(method);
};
$("more").onclick = () => sessions.load(true).catch(failed);
$("search").oninput = () => { sessions.search = $("search").value; };
$("retry").onclick = () => link.open();
$("menu").onclick = () => drawer(!document.body.classList.contains("drawer"));
$("shade").onclick = () => drawer(false);
document.onkeydown = (event) => {
  if (event.key !== "Escape" || !document.body.classList.contains("drawer")) return;
  drawer(false);
  $("menu").focus();
};
$("new").onsubmit = async (event) => {
  event.preventDefault();
  const cwd = $("cwd").value.trim(), agent = agents.chosen;
  if (agent === undefined || agent === agents.connected) return create(cwd).catch(failed);
  // The connection to another agent has to be opened first.
  none();
  link.agent = agent;
  wanted = cwd;
  link.open();
};

async function create(cwd) {
  const made = await link.call("session/new", { cwd, mcpServers: [] });
  const agent = agents.areSeveral ? agents.connected : undefined;
  sessions.add({ id: made.sessionId, cwd, agent });
  select({ id: made.sessionId, cwd, last: 0, newest: 0, loaded: true });
  settings(made);
  await upToDate();
  // Before the user can have gone elsewhere.
  $("prompt").focus();
  await sessions.load();
}
$("sign-in").onsubmit = () => { sessionStorage.setItem("token", $("token").value.trim()); $("token").value = ""; link.open(); };
$("sign-in").oncancel = (event) => event.preventDefault();

// A token behind `#token=` is not sent to any server, and does not stay in the address.
const given = location.hash.match(/^#token=(.+)$/);
if (given) {
  sessionStorage.setItem("token", decodeURIComponent(given[1]));
  window.history.replaceState(null, "", location.pathname);
}
link.open();
