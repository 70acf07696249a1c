// Questions of the agent: each is a card until it is answered, here or elsewhere.

class Questions {
  constructor(conversation, link) {
    this.conversation = conversation;
    this.link = link;
    this.clear();
  }

  clear() {
    this.cards = new Map(); // by the id of the request: those that can be answered here
    this.unlogged = new Set(); // cards whose event has not been read
    this.logged = new Map(); // by the number of the event: questions that wait for an answer
  }

  // A question that another client has answered, or that the agent has withdrawn.
  withdraw(id) { this.finish(id, "answered elsewhere"); }

  // The connection was lost: what is open will be asked again.
  forget() {
    for (const card of this.cards.values()) this.conversation.remove(card);
    this.cards.clear();
    this.unlogged.clear();
  }

  finish(id, words) {
    const card = this.cards.get(id);
    this.cards.delete(id);
    if (card) this.close(card, words);
  }

  close(card, words) {
    for (const control of card.querySelectorAll(".options button, input, select")) control.disabled = true;
    card.answer ??= card.appendChild(make("div", { className: "notice" }));
    card.answer.textContent = visible(words);
  }

  // `key`: what the same question has in the log.
  card(id, key, title, ...children) {
    const card = make("section", { className: "card question" }, make("h2", { textContent: title }), ...children);
    card.key = key;
    this.cards.set(id, card);
    this.conversation.open = null;
    // It may be in the log already, shown as one that is answered elsewhere.
    const open = [...this.cards.values()];
    const entry = [...this.logged.values()].find((it) => it.key === key && !open.includes(it.card));
    if (entry) {
      this.conversation.remove(entry.card);
      entry.card = card;
    } else this.unlogged.add(card);
    this.conversation.add(card, entry?.number);
    // No control gets the focus: an agent could ask at the moment in which the user presses Enter.
  }

  // An event of the log: a question, which this page may have been asked or not.
  asked({ type, eventId: number, request }) {
    const isPermission = type === "permission_asked";
    const call = this.call(request.toolCall);
    const key = isPermission ? keyOfCall(request) : keyOfForm(request);
    let card = [...this.unlogged].find((it) => it.key === key);
    this.unlogged.delete(card);
    if (!card) {
      const view = new View(false);
      card = make("section", { className: "card question past" },
        make("h2", { textContent: isPermission ? titleOf(call) : request.message || "Form" }),
        ...isPermission ? [...details(call, view), ...contents(call, view)] : []);
      this.close(card, "waits for an answer, where the prompt was sent");
      this.conversation.add(card, number);
    }
    this.logged.set(number, { number, key, card, options: request.options });
  }

  // An event of the log: how a question was answered.
  answered({ question, outcome, action, by }) {
    const entry = this.logged.get(question);
    if (!entry) return;
    this.logged.delete(question);
    for (const [id, card] of this.cards) if (card === entry.card) this.cards.delete(id);
    if (entry.card.isOurs) return;
    // It was answered elsewhere while the connection was lost.
    if (!this.conversation.entries.includes(entry.card)) this.conversation.add(entry.card, entry.number);
    const option = entry.options?.find((it) => it.optionId === outcome?.optionId);
    const fields = Object.entries(action?.content ?? {}).map(([name, value]) => `${name}: ${value}`);
    const content = fields.length ? ` (${line(fields.join(", "), 1000)})` : "";
    // A rule of the server, or the time that was over.
    const decided = by ? `, ${line(by, 300)}` : "";
    this.close(entry.card, option ? `chosen: ${option.name} (${words(option.kind)}${decided})`
      : action ? `answered: ${action.action}${content}` : outcome ? `answered: ${outcome.outcome}${decided}` : "withdrawn");
  }

  // The call of a request: it has what the announced call has not, or what has changed.
  call(request) {
    const call = { ...this.conversation.tools.get(request?.toolCallId)?.call };
    for (const [name, value] of Object.entries(request || {})) if (value !== null) call[name] = value;
    return call;
  }

  ours(id, words) {
    const card = this.cards.get(id);
    if (card) card.isOurs = true;
    this.finish(id, words);
  }

  permission(id, params) {
    const call = this.call(params.toolCall), view = new View(true);
    const shown = [...details(call, view), ...contents(call, view)];
    // Whoever cannot read it cannot allow it.
    const whole = view.isWhole;
    const rejects = (option) => /^reject_(once|always)$/.test(option.kind);
    // The name is the agent's; what the option does is its kind.
    const buttons = (params.options || []).map((option) => make("button", {
      type: "button", className: /^allow_(once|always)$/.test(option.kind) ? "allow" : "", disabled: !whole && !rejects(option),
      onclick: () => {
        this.link.answer(id, { outcome: { outcome: "selected", optionId: option.optionId } });
        this.ours(id, `you chose: ${option.name} (${words(option.kind)})`);
      },
    }, make("bdi", { textContent: option.name }), make("small", { textContent: words(option.kind ?? "unknown kind") })));
    const notice = whole ? "" : make("div", { className: "notice", textContent: "The input is too long to be shown: it can only be rejected here." });
    this.card(id, keyOfCall(params), titleOf(call), ...shown, notice,
      make("div", { className: "options" }, ...buttons));
  }

  elicitation(id, params) {
    const reply = (action, content) => {
      this.link.answer(id, content === undefined ? { action } : { action, content });
      this.ours(id, "you answered: " + action);
    };
    const refuse = make("button", { type: "button", textContent: "Decline", onclick: () => reply("decline") });
    if (params.mode === "url") {
      const done = make("button", { type: "button", className: "allow", textContent: "Done", onclick: () => reply("accept") });
      this.card(id, keyOfForm(params), params.message || "Open a page", anchor(params.url),
        make("div", { className: "options" }, done, refuse));
      return;
    }
    const schema = params.requestedSchema || {};
    const fields = Object.entries(schema.properties || {}).map(([name, property]) =>
      this.field(name, property, (schema.required || []).includes(name)));
    const form = make("form", {
      onsubmit: (event) => {
        event.preventDefault();
        const content = {};
        for (const field of fields) {
          const value = field.value();
          if (value !== undefined) content[field.name] = value;
        }
        reply("accept", content);
      },
    }, ...fields.map((field) => field.element),
    make("div", { className: "options" }, make("button", { className: "allow", textContent: "Submit" }), refuse));
    this.card(id, keyOfForm(params), params.message || "The agent asks", form);
  }

  field(name, property, required) {
    const title = (property.title || name) + (required ? "" : " (optional)");
    const choices = property.enum ? property.enum.map((value) => [value, value])
      : (property.oneOf || []).map((choice) => [choice.const, choice.title || choice.const]);
    if (property.type === "boolean") {
      const box = make("input", { type: "checkbox", checked: property.default === true });
      return { name, value: () => box.checked, element: make("label", { className: "inline" }, box, title) };
    }
    if (property.type === "array") {
      const items = property.items || {};
      const values = items.enum || (items.anyOf || items.oneOf || []).map((choice) => choice.const);
      const boxes = values.map((value) => [value, make("input", { type: "checkbox" })]);
      return {
        name, value: () => boxes.filter(([, box]) => box.checked).map(([value]) => value),
        element: make("fieldset", {}, make("legend", { textContent: title }),
          ...boxes.map(([value, box]) => make("label", { className: "inline" }, box, String(value)))),
      };
    }
    const numeric = property.type === "number" || property.type === "integer";
    const control = choices.length
      ? make("select", { required }, ...choices.map(([value, label]) => make("option", { value, textContent: label })))
      : make("input", { required, type: numeric ? "number" : "text", value: property.default ?? "" });
    if (numeric) control.step = property.type === "integer" ? "1" : "any";
    for (const [from, to] of [["minLength", "minLength"], ["maxLength", "maxLength"], ["minimum", "min"], ["maximum", "max"]]) {
      if (property[from] !== undefined) control[to] = property[from];
    }
    const value = () => control.value === "" && !required ? undefined : numeric ? Number(control.value) : control.value;
    return { name, value, element: make("label", {}, title, control) };
  }
}

const titleOf = (call) => "Permission: " + (call.title || "a tool call");
const keyOfCall = (request) => "call " + request.toolCall?.toolCallId;
const keyOfForm = (request) => "form " + request.message;
