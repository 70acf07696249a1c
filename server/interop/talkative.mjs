// An agent on standard input and output that does what the first word of its prompt says.

import { once } from "node:events";
import { createInterface } from "node:readline";

const markdown = `# Results

A paragraph with **bold**, *slanted* and \`code\`, and a [link](https://example.com/a?b=c).
Its second line, 2 * 3 * 4 and snake_case_name.

- first
- second
  1. nested
  2. nested too

| name | value |
|:-----|------:|
| a | 1 |
| b \\| c | **2** |

> quoted \u202e text

\`\`\`js
const x = "<b>no markup</b>";
# no heading
\`\`\`

[file](file:///etc/passwd) [script](javascript:alert(1)) <img src=x onerror=alert(1)>
[https://good.example](https://bad.example/) and https://example.org/plain.

---

The end.
`;

const options = [
  { optionId: "yes", name: "Allow it", kind: "allow_once" },
  { optionId: "no", name: "Reject it", kind: "reject_once" },
];
const schema = { type: "object", properties: { name: { type: "string", title: "Name" } }, required: ["name"] };

const pending = new Map(); // who waits for an answer, by the id of the request
let sessionId, cancel, next = 0;

async function send(message) {
  if (!process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n")) await once(process.stdout, "drain");
}
const update = (kind, members) => send({ method: "session/update", params: { sessionId, update: { sessionUpdate: kind, ...members } } });
const text = (text, messageId) => update("agent_message_chunk", { content: { type: "text", text }, messageId });
function ask(method, params) {
  const id = `question-${next++}`;
  const answered = new Promise((resolve) => pending.set(id, resolve));
  send({ id, method, params: { sessionId, ...params } });
  return answered;
}

const lines = {
  paragraphs: (at) => `Sentence ${at} of a long answer, with *marks* and \`code\`.\n${at % 9 ? "" : "\n"}`,
  words: (at) => `word ${at} `,
  items: (at) => `- item ${at}\n`,
  code: (at) => `${at ? "" : "\n\n```\n"}let line_${at} = ${at};\n`,
};

// Returns the answer of the prompt.
const does = {
  // In pieces that end anywhere.
  async markdown() { for (let at = 0; at < markdown.length; at += 7) await text(markdown.slice(at, at + 7)); },
  // One message of so many bytes, of different blocks.
  async long(bytes) {
    for (const line of Object.values(lines)) {
      for (let sent = 0, at = 0; sent < bytes / 4;) {
        let chunk = "";
        while (chunk.length < 200) chunk += line(at++);
        await text(chunk, "long");
        sent += chunk.length;
      }
    }
    await text("```\n\nThe last line.", "long");
  },
  // So many updates of all kinds.
  async updates(count) {
    for (let at = 0; at < count; at += 4) {
      await update("tool_call", { toolCallId: `call ${at}`, title: `Call ${at}`, kind: "execute", status: "pending", rawInput: { at } });
      await update("tool_call_update", { toolCallId: `call ${at}`, status: "completed", content: [{ type: "content", content: { type: "text", text: `done ${at}` } }] });
      await text(`After call ${at}.`, `message ${at}`);
      await update("plan", { entries: [{ content: `step ${at}`, priority: "low", status: "pending" }] });
    }
    await text("The last line.", "last");
  },
  async notice() { await update("notice", { severity: "warning", title: "The disk is almost full", description: "Delete something." }); },
  async compact() {
    await update("compaction_update", { compactionId: "c", status: "in_progress" });
    await update("compaction_summary_chunk", { compactionId: "c", content: { type: "text", text: "What was said before." } });
    await update("compaction_update", { compactionId: "c", status: "completed" });
  },
  async ask() {
    await update("tool_call", { toolCallId: "asked", title: "Run the tests", kind: "execute", status: "pending", rawInput: { command: "cargo test" } });
    const answer = await ask("session/request_permission", { toolCall: { toolCallId: "asked" }, options });
    await update("tool_call_update", { toolCallId: "asked", status: answer.outcome.optionId === "yes" ? "completed" : "failed" });
  },
  async form() { await ask("elicitation/create", { mode: "form", message: "What is your name?", requestedSchema: schema }); },
  async work() {
    await text("Working.");
    await new Promise((resolve) => { cancel = resolve; });
    return { stopReason: "cancelled" };
  },
  async cost() {
    await update("usage_update", { used: 1500, size: 200000, cost: { amount: 0.25, currency: "USD" } });
    return { stopReason: "end_turn", usage: { totalTokens: 4321, inputTokens: 4000, outputTokens: 321 } };
  },
  async edit() {
    const oldText = Array.from({ length: 60 }, (_, at) => `line ${at}\n`).join("");
    const content = [
      { type: "diff", path: "/work/src/main.rs", oldText, newText: oldText.replace("line 30\n", "changed 30\nand one more\n") },
      { type: "content", content: { type: "text", text: "output\n".repeat(400) } },
    ];
    await update("tool_call", { toolCallId: "edit", title: "Edit main.rs", kind: "edit", status: "completed", locations: [{ path: "/work/src/main.rs", line: 31 }], rawInput: { path: "/work/src/main.rs" }, content });
  },
  async title(...words) { await update("session_info_update", { title: words.join(" ") }); },
};

async function turn(id, params) {
  sessionId = params.sessionId;
  const [word, ...rest] = params.prompt[0].text.split(" ");
  const answer = await (does[word] ?? (() => text("You said: " + params.prompt[0].text)))(...rest);
  await send({ id, result: answer ?? { stopReason: "end_turn" } });
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods: [] } });
  else if (method === "session/new") send({ id, result: { sessionId: `talk-${next++}` } });
  else if (method === "session/prompt") turn(id, params);
  else if (method === "session/cancel") cancel?.();
  else if (result && pending.has(id)) pending.get(id)(result);
  else if (id !== undefined && method) send({ id, error: { code: -32601, message: "no such method" } });
}
