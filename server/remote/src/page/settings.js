// The modes and options of a session as controls.

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
