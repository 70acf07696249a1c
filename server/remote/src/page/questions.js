// Questions of the agent: each is a card until it is answered, here or elsewhere.

class Questions {
  constructor(conversation, link) {
    this.conversation = conversation;
    this.link = link;
    this.cards = new Map();
  }

  // A question that another client has answered, or that the agent has withdrawn.
  withdraw(id) { this.finish(id, "answered elsewhere"); }

  // The connection was lost: what is open will be asked again.
  forget() {
    for (const card of this.cards.values()) card.remove();
    this.cards.clear();
  }

  finish(id, words) {
    const card = this.cards.get(id);
    this.cards.delete(id);
    if (!card) return;
    for (const control of card.querySelectorAll("button, input, select")) control.disabled = true;
    card.append(make("div", { className: "notice", textContent: words }));
  }

  card(id, title, ...children) {
    const card = make("section", { className: "card question" }, make("h2", { textContent: title }), ...children);
    this.cards.set(id, card);
    this.conversation.open = null;
    this.conversation.add(card);
    // No control gets the focus: an agent could ask at the moment in which the user presses Enter.
  }

  permission(id, params) {
    // The request has what the announced call has not, or what has changed.
    const call = { ...this.conversation.tools.get(params.toolCall?.toolCallId) };
    for (const [name, value] of Object.entries(params.toolCall || {})) if (value !== null) call[name] = value;
    // Whoever cannot read it cannot allow it.
    const whole = isWhole(call);
    const rejects = (option) => /^reject_(once|always)$/.test(option.kind);
    // The name is the agent's; what the option does is its kind.
    const buttons = (params.options || []).map((option) => make("button", {
      type: "button", className: /^allow_(once|always)$/.test(option.kind) ? "allow" : "", disabled: !whole && !rejects(option),
      onclick: () => {
        this.link.answer(id, { outcome: { outcome: "selected", optionId: option.optionId } });
        this.finish(id, `you chose: ${option.name} (${words(option.kind)})`);
      },
    }, make("bdi", { textContent: option.name }), make("small", { textContent: words(option.kind ?? "unknown kind") })));
    const notice = whole ? "" : make("div", { className: "notice", textContent: "The input is too long to be shown: it can only be rejected here." });
    this.card(id, "Permission: " + (call.title || "a tool call"), ...details(call), ...contents(call), notice,
      make("div", { className: "options" }, ...buttons));
  }

  elicitation(id, params) {
    const reply = (action, content) => {
      this.link.answer(id, content === undefined ? { action } : { action, content });
      this.finish(id, "you answered: " + action);
    };
    const refuse = make("button", { type: "button", textContent: "Decline", onclick: () => reply("decline") });
    if (params.mode === "url") {
      const done = make("button", { type: "button", className: "allow", textContent: "Done", onclick: () => reply("accept") });
      this.card(id, params.message || "Open a page", anchor(params.url, params.url),
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
    this.card(id, params.message || "The agent asks", form);
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
