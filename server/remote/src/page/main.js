// The page: the list of sessions, the one that is open, and its settings.

const $ = (id) => document.getElementById(id);
const conversation = new Conversation($("log"));
let current = null; // { id, cwd, last: the number of the last event, loaded }
let cursor; // of the next page of the list
let phase = "idle";

const link = new Link({
  opened: () => greet().catch(failed),
  lost: () => { questions.forget(); show("connection lost, trying again"); },
  signIn: (reason) => { show("not signed in"); $("refused").textContent = reason; if (!$("sign-in").open) $("sign-in").showModal(); },
  notification(method, params) {
    if (method === "session/update") return updated(params);
    if (method === "_acp-sdk/session/state_changed" && current && params.sessionId === current.id) return turned(params);
    if (method === "$/cancel_request") questions.withdraw(params.requestId);
  },
  request(method, params, id) {
    if (current && params.sessionId !== undefined && params.sessionId !== current.id) return;
    if (method === "session/request_permission") return questions.permission(id, params);
    if (method === "elicitation/create") return questions.elicitation(id, params);
    link.refuse(id, -32601, "this page has no " + method);
  },
});
const questions = new Questions(conversation, link);

function put(id, text) { $(id).textContent = visible(text); }
function show(text) { put("state", text); }
function failed(error) { conversation.notice(error.message, "error"); }

async function greet() {
  const hello = await link.call("initialize", {
    protocolVersion: 1,
    clientInfo: { name: "acp-server-page", title: "Web page", version: "1" },
    clientCapabilities: { elicitation: { form: {}, url: {} }, _meta: { "acp-sdk": { sessionState: true } } },
  });
  const info = hello.agentInfo || {};
  document.title = visible(info.title || info.name || "Agent");
  if (!current) put("title", document.title);
  link.ready();
  show("connected");
  await list();
  if (current && current.loaded) await resume();
  else if (current) await load();
  else if (location.hash.length > 1) await openNamed(decodeURIComponent(location.hash.slice(1)));
}

async function list(more = false) {
  const page = await link.call("session/list", more && cursor ? { cursor } : {});
  cursor = page.nextCursor;
  $("more").hidden = !cursor;
  const items = page.sessions.map((session) => {
    const name = session.title || session.sessionId;
    const button = make("button", { type: "button", onclick: () => open(session.sessionId, session.cwd) },
      name, make("small", { textContent: session.cwd }));
    button.dataset.id = session.sessionId;
    return make("li", {}, button);
  });
  if (more) $("sessions").append(...items);
  else $("sessions").replaceChildren(...items);
  mark();
}

function mark() {
  for (const button of $("sessions").querySelectorAll("button")) {
    if (current && button.dataset.id === current.id) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

async function openNamed(id) {
  let page = {};
  do {
    page = await link.call("session/list", page.nextCursor ? { cursor: page.nextCursor } : {});
    const found = page.sessions.find((session) => session.sessionId === id);
    if (found) return open(found.sessionId, found.cwd);
  } while (page.nextCursor);
  conversation.notice("There is no session " + id + ".", "error");
}

// Shows another session, over a connection of its own: the server sends this page no other then.
function open(id, cwd) {
  select({ id, cwd, last: 0, loaded: false });
  link.open();
}

function select(session) {
  current = session;
  history.replaceState(null, "", "#" + encodeURIComponent(session.id));
  conversation.clear();
  questions.forget();
  $("composer").hidden = false;
  put("title", session.id);
  put("usage", "");
  put("commands", "");
  settings({});
  mark();
  narrow(innerWidth < 704);
}

async function load() {
  conversation.clear();
  current.last = 0;
  const params = { sessionId: current.id, cwd: current.cwd, mcpServers: [] };
  const answer = await link.call("session/load", params);
  current.loaded = true;
  settings(answer || {});
  await state();
}

// Goes on after the last event that is shown.
async function resume() {
  const params = { sessionId: current.id, sinceEventId: current.last };
  const answer = await link.call("_acp-sdk/session/resume", params);
  if (answer.truncated) conversation.notice("Some of what happened meanwhile is no longer kept.");
  await state();
}

async function state() { turned(await link.call("_acp-sdk/session/state", { sessionId: current.id })); }

function turned(now) {
  phase = now.state;
  const queued = now.queued ? `, ${now.queued} waiting` : "";
  show(phase + queued);
  $("cancel").hidden = phase === "idle" || phase === "closed";
}

function updated(params) {
  if (!current || params.sessionId !== current.id) return;
  const number = params._meta?.["acp-sdk"]?.eventId;
  if (number !== undefined) {
    if (number <= current.last) return;
    current.last = number;
  }
  const update = params.update;
  if (update.sessionUpdate !== "user_message_chunk") conversation.mine = [];
  switch (update.sessionUpdate) {
    case "current_mode_update": return chosen("mode", update.currentModeId);
    case "config_option_update": return settings({ configOptions: update.configOptions });
    case "session_info_update": if (update.title) { put("title", update.title); list().catch(() => {}); } return;
    case "available_commands_update":
      put("commands", (update.availableCommands || []).map((command) => "/" + command.name).join("  "));
      return;
    case "usage_update": return usage(update);
  }
  conversation.update(update);
}

function usage({ used, size, cost }) {
  const tokens = size ? `${used} of ${size} tokens` : "";
  const price = cost ? `${cost.amount} ${cost.currency}` : "";
  put("usage", [tokens, price].filter(Boolean).join(", "));
}

// Shows modes and options as controls.
function settings({ modes, configOptions }) {
  const controls = [];
  const control = (label, id, value, choices, change) => controls.push(make("label", { className: "inline" }, label,
    make("select", { dataset: { id }, onchange: (event) => change(event.target.value) },
      ...choices.map((choice) => make("option", { value: choice.value, textContent: choice.name, selected: choice.value === value })))));
  // Options replace modes, where an agent has both.
  if (modes && !configOptions?.length) {
    const choices = modes.availableModes.map((mode) => ({ value: mode.id, name: mode.name }));
    control("Mode", "mode", modes.currentModeId, choices, (modeId) => set("session/set_mode", { modeId }));
  } else if (!configOptions) {
    $("settings").replaceChildren();
    return;
  } else {
    controls.push(...[...$("settings").children].filter((child) => child.querySelector('[data-id="mode"]')));
  }
  for (const option of configOptions || []) {
    const change = (value) => set("session/set_config_option", { configId: option.id, ...value });
    if (option.type === "boolean") {
      const box = make("input", { type: "checkbox", checked: option.currentValue,
        onchange: () => change({ type: "boolean", value: box.checked }) });
      controls.push(make("label", { className: "inline" }, box, option.name));
    } else {
      const choices = (option.options || []).flatMap((choice) => choice.options || [choice]);
      control(option.name, "option " + option.id, option.currentValue, choices, (value) => change({ value }));
    }
  }
  $("settings").replaceChildren(...controls);
}

function chosen(id, value) {
  const control = $("settings").querySelector(`[data-id="${CSS.escape(id)}"]`);
  if (control) control.value = value;
}

async function set(method, params) {
  try {
    const answer = await link.call(method, { sessionId: current.id, ...params });
    if (answer.configOptions) settings({ configOptions: answer.configOptions });
  } catch (error) { failed(error); }
}

async function send() {
  const text = $("prompt").value.trim();
  if (!text || !current) return;
  const to = current;
  $("prompt").value = "";
  conversation.said(text);
  try {
    const params = { sessionId: to.id, prompt: [{ type: "text", text }] };
    const answer = await link.call("session/prompt", params);
    if (to === current && answer.stopReason !== "end_turn") conversation.notice("Ended: " + words(answer.stopReason) + ".");
  } catch (error) {
    // A turn goes on without a connection; its end comes from the log.
    if (to === current && error.code !== undefined) failed(error);
    else if (to === current && !link.socket) {
      conversation.notice("The connection was lost. If the prompt does not appear again, send it again.");
    }
  }
}

function narrow(on) {
  document.body.classList.toggle("narrow", on);
  $("menu").setAttribute("aria-expanded", String(!on));
}

$("composer").onsubmit = (event) => { event.preventDefault(); send(); };
$("prompt").onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
};
$("cancel").onclick = () => link.notify("session/cancel", { sessionId: current.id });
$("more").onclick = () => list(true).catch(failed);
$("menu").onclick = () => narrow(!document.body.classList.contains("narrow"));
$("new").onsubmit = async (event) => {
  event.preventDefault();
  try {
    const cwd = $("cwd").value.trim();
    const made = await link.call("session/new", { cwd, mcpServers: [] });
    select({ id: made.sessionId, cwd, last: 0, loaded: true });
    settings(made);
    await state();
    await list();
    $("prompt").focus();
  } catch (error) { failed(error); }
};
$("sign-in").onsubmit = () => { sessionStorage.setItem("token", $("token").value.trim()); $("token").value = ""; link.open(); };
$("sign-in").oncancel = (event) => event.preventDefault();

// A token behind `#token=` is not sent to any server, and does not stay in the address.
const given = location.hash.match(/^#token=(.+)$/);
if (given) {
  sessionStorage.setItem("token", decodeURIComponent(given[1]));
  history.replaceState(null, "", location.pathname);
}
link.open();
