// The user's prompts until they are answered. One that did not reach the server stays, and can be sent again.

const RESOURCE_NOT_FOUND = -32002;

class Prompts {
  // `on`: { isReady(), ended(answer, prompt), failed(error, prompt) }, about prompts of the session that is shown.
  constructor(conversation, link, on) {
    Object.assign(this, { conversation, link, on });
    this.list = [];
    this.next = 0;
  }

  of(session) { return this.list.filter((prompt) => prompt.session === session); }

  // `at`: the place in the conversation, Infinity while its turn has not begun.
  send(session, text, at) {
    const prompt = { session, text, id: `page-${Date.now()}-${this.next++}` };
    this.list.push(prompt);
    this.show(prompt, at);
    this.deliver(prompt);
  }

  show(prompt, at) {
    prompt.element = this.conversation.said(prompt.text, at);
    prompt.footer = make("div", { className: "footer" });
    prompt.element.append(prompt.footer);
  }

  async deliver(prompt) {
    prompt.footer.replaceChildren();
    prompt.state = "sent";
    if (!this.on.isReady()) return this.unsent(prompt, "Not sent: there is no connection.");
    const params = {
      sessionId: prompt.session, prompt: [{ type: "text", text: prompt.text }],
      _meta: { "acp-sdk": { promptId: prompt.id } },
    };
    await this.wait(prompt, "session/prompt", params);
  }

  // Waits for the end of the turn.
  async wait(prompt, method, params) {
    try {
      const answer = await this.link.call(method, params);
      this.remove(prompt);
      this.on.ended(answer, prompt);
    } catch (error) {
      if (error.code === undefined) {
        // The turn goes on without a connection, if the prompt has arrived.
        prompt.state = "lost";
        prompt.wasLost = true;
        prompt.footer.textContent = prompt.isSeen ? "" : "The connection was lost. Whether the server has this prompt is checked when it is back.";
      } else if (method !== "session/prompt" && error.code === RESOURCE_NOT_FOUND) {
        if (prompt.isSeen) this.remove(prompt);
        else this.unsent(prompt, "Not sent: the connection was lost before.");
      } else {
        this.remove(prompt);
        this.on.failed(error, prompt);
      }
    }
  }

  remove(prompt) {
    this.list = this.list.filter((other) => other !== prompt);
    prompt.footer.replaceChildren();
  }

  unsent(prompt, reason) {
    prompt.state = "unsent";
    const button = (text, onclick) => make("button", { type: "button", textContent: text, onclick });
    prompt.footer.replaceChildren(make("span", { className: "error", textContent: reason }),
      button("Send now", () => this.deliver(prompt)),
      button("Discard", () => { this.remove(prompt); this.conversation.remove(prompt.element); }));
    // It comes behind everything that has happened.
    this.conversation.add(prompt.element, Infinity);
  }

  // The session is shown anew: what was not sent is still there.
  restore(session) {
    for (const prompt of this.of(session)) {
      if (prompt.state !== "unsent" && prompt.isSeen) continue;
      this.show(prompt, Infinity);
      if (prompt.state === "unsent") this.unsent(prompt, "Not sent.");
    }
  }

  // The connection is back and the session up to date.
  recover(session) {
    for (const prompt of this.of(session)) {
      if (prompt.state !== "lost") continue;
      prompt.state = "sent";
      this.wait(prompt, "_acp-sdk/session/prompt_result", { sessionId: session, promptId: prompt.id });
    }
  }

  // An update of a turn has arrived: its prompt has its place before it.
  began(id, at) {
    const prompt = id && this.list.find((it) => it.id === id);
    if (!prompt || prompt.isSeen) return;
    this.seen(prompt);
    this.place(prompt, at - 0.5);
  }

  seen(prompt) {
    prompt.isSeen = true;
    prompt.footer.replaceChildren();
  }

  // The prompt is answered; a turn without updates has not shown its place.
  place(prompt, at) {
    if (prompt.element.event === Infinity) this.conversation.add(prompt.element, at);
  }

  // A message of the user comes from the log, after a reconnection: it takes the place of ours.
  logged(update, id, session) {
    const prompt = this.of(session).find((it) => it.state !== "unsent" && !it.isLogged
      && (id ? it.id === id : it.wasLost && it.text === update.content?.text));
    if (!prompt) return;
    prompt.isLogged = true;
    this.seen(prompt);
    this.conversation.remove(prompt.element);
  }
}
