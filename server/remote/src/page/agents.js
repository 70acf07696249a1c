// The agents of the server, where it has several: who gets a new session, and which connection a session needs.

class Agents {
  constructor(element, link) {
    Object.assign(this, { element, link });
    this.names = [];
  }

  get areSeveral() { return this.names.length > 1; }

  // The agent that is chosen for a new session; `undefined` where there is one.
  get chosen() { return this.areSeveral ? this.element.value : undefined; }

  // The agent at the other end of the connection.
  get connected() { return this.link.agent ?? this.names[0]; }

  async load() {
    if (this.isKnown) return;
    let agents = [];
    try {
      ({ agents } = await this.link.request("agents"));
    } catch (error) {
      // A token of one session may not read them, and other servers have none. All else is tried again.
      if (![401, 403, 404].includes(error.status)) return;
    }
    this.isKnown = true;
    this.names = agents.map((agent) => agent.name);
    this.element.replaceChildren(...agents.map(({ name, description }) =>
      make("option", { value: name, textContent: visible(description ? `${name}: ${line(description)}` : name) })));
    $("agents").hidden = !this.areSeveral;
  }
}
