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

// Entries that are in the document at most, and that stay when there are more.
const MOST_ENTRIES = 1500, FEWER_ENTRIES = 1000;

// Milliseconds after a key, wheel or touch in which scrolling is the user's.
const SCROLLING = 1000;

class Conversation {
  constructor(element) {
    this.element = element;
    this.frames = new Frames((run) => { run(); this.shorten(); this.follow(2); });
    this.earlier = make("button", { type: "button", className: "earlier", onclick: () => this.showEarlier() });
    this.isAtEnd = true;
    this.touched = -Infinity; // when the user did something that scrolls
    element.addEventListener("scroll", () => this.scrolled());
    for (const name of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      element.addEventListener(name, () => { this.touched = performance.now(); }, { passive: true });
    }
    this.clear();
  }

  // The user goes up to read, and to the end to follow. Changes of the content scroll, too.
  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.element;
    if (scrollHeight - scrollTop - clientHeight < 80) this.isAtEnd = true;
    else if (performance.now() - this.touched < SCROLLING) this.isAtEnd = false;
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
    this.entries = []; // all elements, by the number of their event
    this.hidden = 0; // so many of the first are not in the document
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
    this.remove(element);
    let low = 0, high = this.entries.length;
    if (high && this.entries[high - 1].event <= at) low = high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.entries[middle].event <= at) low = middle + 1; else high = middle;
    }
    element.event = at;
    this.entries.splice(low, 0, element);
    if (low < this.hidden) this.hidden++;
    else this.element.insertBefore(element, this.entries[low + 1] ?? null);
    this.frames.ask();
    return element;
  }

  remove(element) {
    element.remove();
    const at = this.entries.lastIndexOf(element);
    if (at >= 0) this.entries.splice(at, 1);
    if (at >= 0 && at < this.hidden) this.hidden--;
  }

  // Takes early entries out of the document, unless the user reads them: its cost grows with their number.
  shorten() {
    const count = this.entries.length - this.hidden;
    if (count <= MOST_ENTRIES || !this.isAtEnd) return;
    for (const end = this.entries.length - FEWER_ENTRIES; this.hidden < end; this.hidden++) this.entries[this.hidden].remove();
    this.showCount();
  }

  showEarlier() {
    const shown = this.entries[this.hidden];
    this.isAtEnd = false;
    for (const end = Math.max(0, this.hidden - FEWER_ENTRIES); this.hidden > end; this.hidden--) {
      this.element.insertBefore(this.entries[this.hidden - 1], this.entries[this.hidden]);
    }
    this.showCount();
    shown.scrollIntoView();
  }

  showCount() {
    this.earlier.textContent = `Show earlier entries (${number(this.hidden)})`;
    if (this.hidden) this.element.prepend(this.earlier); else this.earlier.remove();
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
      case "plan": return this.planned(update.entries || [], at);
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

  planned(entries, at) {
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
