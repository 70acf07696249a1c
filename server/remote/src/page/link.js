// The connection to the server: JSON-RPC over WebSocket, opened again when it is lost.

const FIRST_WAIT = 500, LONGEST_WAIT = 15000, LONGEST_REQUEST = 30000, LONGEST_TASK = 10;

class Refused extends Error {}

class Link {
  // `on`: { request(method, params, id), notification(method, params), opened(), lost(),
  // waiting(until), signIn(reason) }
  constructor(on) {
    this.on = on;
    this.next = 1;
    this.calls = new Map();
    this.attempts = 0;
    this.agent = null; // the name of the agent to connect to; without it, the default
    this.epoch = 0;
    this.inbox = { data: [], next: 0 };
    // Unlike timers, it is not slowed down while the page is hidden.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => this.work();
    this.soon = port2;
  }

  // Opens the connection, or opens it anew.
  async open() {
    clearTimeout(this.timer);
    const epoch = ++this.epoch;
    this.drop();
    let ticket;
    try {
      ticket = await this.ticket();
    } catch (error) {
      if (epoch !== this.epoch) return;
      if (error instanceof Refused) this.on.signIn(error.message);
      else this.later();
      return;
    }
    if (epoch !== this.epoch) return;
    const url = new URL(this.path("acp"), location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    url.hash = "";
    url.search = ticket ? "?ticket=" + encodeURIComponent(ticket) : "";
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.onopen = () => this.on.opened();
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      if (this.inbox.data.push(event.data) === 1) this.soon.postMessage(null);
    };
    socket.onclose = () => {
      if (socket !== this.socket) return;
      this.drop();
      this.on.lost();
      this.later();
    };
  }

  // Returns the path of an endpoint of the agent.
  path(endpoint) { return this.agent ? `${endpoint}/${this.agent}` : endpoint; }

  // Sends a request of its own, without the connection.
  async request(path, body) {
    const token = sessionStorage.getItem("token");
    const headers = { ...token ? { Authorization: "Bearer " + token } : {}, ...body ? { "Content-Type": "application/json" } : {} };
    const response = await fetch(path, { method: body ? "POST" : "GET", headers, cache: "no-store", body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(LONGEST_REQUEST) });
    if (!response.ok) throw Object.assign(new Error(`${path}: status ${response.status}`), { status: response.status });
    return response.json();
  }

  // A ticket stands for the token in one URL, which ends in logs.
  async ticket() {
    try {
      return (await this.request("ticket", {})).ticket;
    } catch (error) {
      const isRefused = error.status === 401;
      throw isRefused ? new Refused(sessionStorage.getItem("token") ? "The server does not know this token." : "") : error;
    }
  }

  ready() { this.attempts = 0; }

  // Tries again after a while: longer each time, and never at the same moment as all others.
  later() {
    const longest = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.attempts++);
    const wait = longest / 2 + Math.random() * longest / 2;
    this.timer = setTimeout(() => this.open(), wait);
    this.on.waiting(Date.now() + wait);
  }

  drop() {
    const socket = this.socket;
    this.socket = null;
    this.inbox = { data: [], next: 0 };
    if (socket) socket.close();
    const calls = [...this.calls.values()];
    this.calls.clear();
    for (const call of calls) call.reject(new Error("the connection was lost"));
  }

  call(method, params) {
    return new Promise((resolve, reject) => {
      if (!this.socket || this.socket.readyState !== WebSocket.OPEN) {
        return reject(new Error("there is no connection"));
      }
      const id = this.next++;
      this.calls.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  notify(method, params) { this.send({ method, params }); }

  answer(id, result) { this.send({ id, result }); }

  refuse(id, code, message) { this.send({ id, error: { code, message } }); }

  send(message) {
    if (this.socket && this.socket.readyState === WebSocket.OPEN) {
      this.socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
    }
  }

  // Handles what has arrived in short tasks: the browser delivers many messages in one.
  work() {
    const deadline = performance.now() + LONGEST_TASK, { inbox } = this;
    while (inbox.next < inbox.data.length && performance.now() < deadline && inbox === this.inbox) {
      this.receive(JSON.parse(inbox.data[inbox.next++]));
    }
    if (inbox !== this.inbox) return;
    if (inbox.next < inbox.data.length) this.soon.postMessage(null);
    else this.inbox = { data: [], next: 0 };
  }

  receive(message) {
    if (message.method !== undefined) {
      if (message.id !== undefined) this.on.request(message.method, message.params || {}, message.id);
      else this.on.notification(message.method, message.params || {});
      return;
    }
    const call = this.calls.get(message.id);
    this.calls.delete(message.id);
    if (!call) return;
    if (message.error) call.reject(Object.assign(new Error(message.error.message), { code: message.error.code }));
    else call.resolve(message.result);
  }
}
