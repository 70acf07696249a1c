// The events that the protocol has no updates for: when turns began, how they ended, what was decided.

class History {
  // `on(event)` receives each event once, in order.
  constructor(link, on) {
    Object.assign(this, { link, on });
    this.isOffered = true;
    this.start(null);
  }

  start(session) {
    this.session = session;
    this.last = 0;
    this.failures = 0; // turns that have failed
    this.turn = 0; // the number of the event with which the turn began that ended last
  }

  // Reads what has happened since.
  async read() {
    this.isWanted = true;
    this.reading ??= this.readAll().finally(() => { this.reading = null; });
    return this.reading;
  }

  async readAll() {
    while (this.isWanted && this.isOffered && this.session) {
      this.isWanted = false;
      const session = this.session;
      let answer;
      try {
        answer = await this.link.request(this.link.path("rpc"), { jsonrpc: "2.0", id: 1, method: "session_events",
          params: { sessionId: session, after: this.last, only: "turns" } });
      } catch (error) {
        // A server without these calls; all else is tried again at the next event.
        if (error.status === 404) this.isOffered = false;
        return;
      }
      if (session !== this.session) { this.isWanted = true; continue; }
      if (!answer.result) return;
      if (answer.result.lastEventId > this.last) this.isWanted = true;
      this.last = answer.result.lastEventId;
      for (const event of answer.result.events) {
        if (event.type === "turn_ended") this.turn = event.turn;
        if (event.error !== undefined) this.failures++;
        this.on(event);
      }
    }
  }
}

// The line about the end of a turn.
function turnEnd({ stopReason, error, usage, durationMs, costs }) {
  const numbers = [durationMs === undefined || durationMs === null ? "" : duration(durationMs),
    usage?.totalTokens ? `${number(usage.totalTokens)} tokens` : "", money(costs)].filter(Boolean).join(" · ");
  const end = error !== undefined ? `Failed: ${error}` : stopReason && stopReason !== "end_turn" ? `Ended: ${words(stopReason)}.` : "";
  return make("p", { className: "turn" }, end ? make("span", { className: error === undefined ? "ended" : "error", textContent: end + " " }) : null,
    make("span", { textContent: numbers }));
}
