// What was said and done in a session, in the order of its events.

// A message, which grows.
class Message {
  constructor(kind, isPlain) {
    const names = { user: "You", agent: "Agent", thought: "Thought" };
    this.element = make("div", { className: kind + " text", role: "group", ariaLabel: names[kind] ?? kind });
    this.markdown = new Markdown(this.element, isPlain);
  }

  append(text) { this.markdown.append(text); }
  render(isLate) { return this.markdown.render(isLate); }
}

class Plan {
  constructor() { this.element = make("section", { className: "card plan" }); }

  render() {
    const step = ({ content, status }) => make("li", { className: status, textContent: content },
      status === "in_progress" ? make("span", { className: "notice", textContent: " (in progress)" }) : null);
    this.element.replaceChildren(make("h2", { textContent: "Plan" }),
      make("ol", {}, ...this.entries.slice(0, MOST_PARTS).map(step)));
    return true;
  }
}

class Compaction {
  constructor() {
    this.element = make("section", { className: "card" });
    this.blocks = [];
  }

  update({ status, summary, error, content }) {
    if (status) this.status = status;
    if (summary !== undefined) this.blocks = summary ?? [];
    if (content) this.blocks.push(content);
    if (error !== undefined) this.error = error;
  }

  render() {
    const text = this.blocks.filter((its) => its.type === "text").map((its) => its.text).join("");
    const isOpen = this.element.querySelector("details")?.open ?? false;
    this.element.replaceChildren(
      make("h2", {}, "Compaction of the conversation",
        this.status ? make("span", { className: "status " + this.status, textContent: words(this.status) }) : null),
      ...this.error ? [make("p", { className: "error", textContent: this.error })] : [],
      ...text ? [fold("summary", "Summary", isOpen, plainText(new View(false).text(text)))] : []);
    return true;
  }
}

class Conversation {
  constructor(element) {
    this.element = element;
    this.frames = new Frames((run) => { run(); this.follow(2); });
    this.isAtEnd = true;
    this.scrolledTo = 0;
    element.onscroll = () => this.scrolled();
    this.clear();
  }

  // The user goes up to read, and to the end to follow. What is added is no reason to stop following.
  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    const isNear = scrollHeight - scrollTop - clientHeight < 80;
    if (isNear || scrollTop < this.scrolledTo - 1) this.isAtEnd = isNear;
    this.scrolledTo = scrollTop;
  }

  // What comes into view has its real height in the next frame only.
  follow(frames) {
    if (!this.isAtEnd) return;
    this.element.scrollTop = this.element.scrollHeight;
    if (frames) requestAnimationFrame(() => this.follow(frames - 1));
  }

  clear() {
    this.element.replaceChildren();
    this.frames.clear();
    this.tools = new Map();
    this.compactions = new Map();
    this.plan = null;
    this.open = null;
    this.top = 0; // the number of the latest event that has an element
    this.isAtEnd = true;
  }

  // Puts an element behind those of earlier events. Without a number it belongs to now.
  add(element, at = this.top) {
    if (at !== Infinity) this.top = Math.max(this.top, at);
    element.event = at;
    let before = this.element.lastElementChild;
    while (before && (before === element || (before.event ?? 0) > at)) before = before.previousElementSibling;
    if (before) before.after(element); else this.element.prepend(element);
    this.frames.ask();
    return element;
  }

  notice(text, kind = "notice", at = undefined) {
    this.open = null;
    return this.add(make("p", { className: kind, textContent: text }), at);
  }

  // Shows the update of an event.
  update(update, at) {
    switch (update.sessionUpdate) {
      case "user_message_chunk": return this.chunk("user", update, at);
      case "agent_message_chunk": return this.chunk("agent", update, at);
      case "agent_thought_chunk": return this.chunk("thought", update, at);
      case "tool_call": case "tool_call_update": return this.tool(update, at);
      case "plan": return this.entries(update.entries || [], at);
      case "notice": return this.message(update, at);
      case "compaction_update": case "compaction_summary_chunk": return this.compaction(update, at);
    }
  }

  chunk(kind, update, at) {
    const content = update.content || {};
    const key = kind + " " + (update.messageId ?? "");
    if (content.type !== "text") {
      this.open = null;
      const element = block(content, new View(false));
      element.classList.add(kind);
      this.add(element, at);
      return;
    }
    if (this.open?.key !== key) {
      const message = new Message(kind, kind === "user");
      this.open = { key, message };
      this.add(message.element, at);
    }
    this.open.message.append(content.text);
    this.frames.touch(this.open.message);
  }

  // The user's own prompt, which the server does not send back.
  said(text, at) {
    this.open = null;
    this.isAtEnd = true;
    const message = new Message("user", true);
    message.append(text);
    message.render(() => false);
    return this.add(message.element, at);
  }

  tool(update, at) {
    this.open = null;
    let tool = this.tools.get(update.toolCallId);
    if (!tool) {
      tool = new Tool(update.toolCallId);
      this.tools.set(update.toolCallId, tool);
      this.add(tool.element, at);
    }
    tool.update(update);
    this.frames.touch(tool);
  }

  entries(entries, at) {
    this.open = null;
    if (!this.plan) {
      this.plan = new Plan();
      this.add(this.plan.element, at);
    }
    this.plan.entries = entries;
    this.frames.touch(this.plan);
  }

  message({ severity, title, description }, at) {
    this.open = null;
    this.add(make("div", { className: "card message " + (severity === "error" ? "error" : "") },
      make("strong", { textContent: title }), description ? make("div", { textContent: description }) : null), at);
  }

  compaction(update, at) {
    this.open = null;
    let compaction = this.compactions.get(update.compactionId);
    if (!compaction) {
      compaction = new Compaction();
      this.compactions.set(update.compactionId, compaction);
      this.add(compaction.element, at);
    }
    compaction.update(update);
    this.frames.touch(compaction);
  }
}
