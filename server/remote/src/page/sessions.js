// The list of sessions.

// Sessions whose prompt, time and cost are asked for, and that are loaded for a search.
const MOST_SESSIONS = 1000;

class Sessions {
  constructor(element, link, agents, open) {
    Object.assign(this, { element, link, agents, open });
    this.sessions = new Map(); // by id: { id, cwd, agent, title, prompt, touched }
    this.current = null;
    this.isSummarized = true;
  }

  // Reads the first page anew, or the next one.
  async load(more = false) {
    if (this.agents.areSeveral && this.isSummarized && await this.loadAll()) return this.render();
    const page = await this.link.call("session/list", more && this.cursor ? { cursor: this.cursor } : {});
    const read = new Map(page.sessions.map((it) => [it.sessionId, {
      id: it.sessionId, cwd: it.cwd, title: it.title, touched: it.updatedAt, prompt: this.sessions.get(it.sessionId)?.prompt }]));
    if (more) {
      this.sessions = new Map([...this.sessions, ...read]);
      this.cursor = page.nextCursor;
    } else {
      // Further pages that were read stay.
      const isAll = !page.nextCursor, rest = isAll ? [] : [...this.sessions].filter(([id]) => !read.has(id));
      if (isAll || !rest.length) this.cursor = page.nextCursor;
      this.sessions = new Map([...read, ...rest]);
      await this.summarize();
    }
    this.render();
  }

  // Reads the sessions of all agents; the protocol's list has those of one.
  async loadAll() {
    // A list that cannot be read now stays as it is.
    if (!await this.summarize()) return this.isSummarized;
    this.cursor = undefined;
    this.sessions = new Map([...this.summaries.values()].map((it) => [it.session_id, { id: it.session_id, cwd: it.working_dir,
      agent: it.agent, title: it.title, touched: new Date(it.last_touched * 1000).toISOString(), prompt: this.sessions.get(it.session_id)?.prompt }]));
    return true;
  }

  add(session) { this.sessions.set(session.id, session); }

  // Adds what the protocol's list has not, where the server offers it. Returns whether it was read.
  async summarize() {
    if (!this.isSummarized) return false;
    try {
      const { sessions } = await this.link.request(`sessions?limit=${MOST_SESSIONS}`);
      this.summaries = new Map(sessions.map((it) => [it.session_id, it]));
      return true;
    } catch (error) {
      // A token of one session may not read it, and other servers have none.
      this.isSummarized = ![401, 403, 404].includes(error.status);
      return false;
    }
  }

  async find(id) {
    for (let more = false; ; more = true) {
      await this.load(more);
      const found = this.sessions.get(id);
      if (found || !this.cursor) return found;
    }
  }

  name(id) {
    const session = this.sessions.get(id), summary = this.summaries?.get(id);
    return session?.title || line(session?.prompt || summary?.prompt) || "New session";
  }

  // The beginning of the first prompt names a session that has no title.
  begin(id, prompt) {
    const session = this.sessions.get(id);
    if (session && !session.prompt && !this.summaries?.get(id)?.prompt) session.prompt = prompt;
    this.render();
  }

  set search(text) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.render();
    if (this.words.length) this.loadRest().catch(() => {});
  }

  async loadRest() {
    while (this.cursor && this.words.length && this.sessions.size < MOST_SESSIONS) await this.load(true);
  }

  select(id) {
    this.current = id;
    this.render();
  }

  render() {
    const focused = document.activeElement?.dataset?.id;
    const shown = [...this.sessions.values()].filter(({ id, cwd, agent }) => {
      const text = `${this.name(id)} ${cwd} ${id} ${agent ?? ""}`.toLowerCase();
      return (this.words ?? []).every((word) => text.includes(word));
    });
    this.element.replaceChildren(...shown.map((session) => this.item(session)));
    $("found").textContent = this.words?.length ? `${shown.length} of ${this.sessions.size}${this.cursor ? "+" : ""} sessions` : "";
    $("more").hidden = !this.cursor;
    if (focused) this.element.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  item({ id, cwd, agent, touched }) {
    const summary = this.summaries?.get(id) ?? {};
    const numbers = [agent, touched ? time(touched) : "", summary.total_tokens ? `${number(summary.total_tokens)} tokens` : "", money(summary.costs)];
    const button = make("button", { type: "button", onclick: () => this.open(id, cwd, agent), dataset: { id }, title: visible(id) },
      make("span", { className: "name", textContent: this.name(id) }), make("small", { textContent: cwd }),
      make("small", { textContent: numbers.filter(Boolean).join(" · ") }));
    if (id === this.current) button.ariaCurrent = "true";
    return make("li", {}, button);
  }
}
