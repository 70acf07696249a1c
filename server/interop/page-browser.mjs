// What the tests of the page share: a server, a way to cut its connections, and pages that are signed in.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const [binary, browserPath, pictures] = process.argv.slice(2);
export const TOKEN = "a-token-for-the-page";
const folder = mkdtempSync(join(tmpdir(), "acp-page-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export const step = (text) => console.log("ok  " + text);

// Starts the server, on the same port and store after the first time. `agent` is hosted; `agents` is a
// file of agents.
export async function serve(port, store = "store.db", agent = [], agents = "") {
  const args = ["serve", "--port", String(port), "--store", join(folder, store)];
  if (agents) {
    writeFileSync(join(folder, "agents.toml"), agents);
    args.push("--agents", join(folder, "agents.toml"));
  }
  if (agent.length) args.push("--", process.execPath, join(import.meta.dirname, agent[0]), ...agent.slice(1));
  const env = { ...process.env, XDG_RUNTIME_DIR: folder, ACP_SERVER_TOKEN: TOKEN };
  const server = spawn(binary, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  for await (const line of createInterface({ input: server.stderr })) {
    const found = line.match(/page: (http:\S+)/);
    if (found) { server.stderr.resume(); return { server, url: found[1] }; }
  }
  throw new Error("the server did not start");
}

export async function end(server, signal) {
  const ended = once(server, "exit");
  server.kill(signal);
  await ended;
}

// Stands before a server: `cut()` ends all connections and refuses further ones until `mend()`. After
// `lose()` nothing that the page sends arrives.
export async function proxy(url) {
  const sockets = new Set();
  let isCut = false, isLost = false;
  const proxy = createServer((client) => {
    if (isCut) return client.destroy();
    const server = connect(Number(new URL(url).port), "127.0.0.1");
    for (const [socket, other] of [[client, server], [server, client]]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => { sockets.delete(socket); other.destroy(); });
      socket.on("data", (data) => { if (socket === server || !isLost) other.write(data); });
    }
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    url: `http://127.0.0.1:${proxy.address().port}/`,
    cut() { isCut = true; for (const socket of sockets) socket.destroy(); },
    lose() { isLost = true; },
    mend() { isCut = isLost = false; },
    close() { this.cut(); proxy.close(); },
  };
}

// Opens the page in a window of its own, signed in. What the browser complains of is added to `complaints`.
export async function signedIn(browser, url, complaints, options = {}) {
  const context = await browser.newContext({ colorScheme: "light", viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  watch(page, complaints);
  await page.addInitScript(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((task) => task.duration))).observe({ type: "longtask" });
  });
  await page.goto(url + "#token=" + TOKEN);
  await page.locator("#state").getByText("connected").waitFor();
  return page;
}

export function watch(page, complaints) {
  page.on("pageerror", (error) => complaints.push(error.stack));
  page.on("console", (message) => { if (/Content Security/.test(message.text())) complaints.push(message.text()); });
}

// Opens the list of a narrow window.
export async function openList(page) {
  if (await page.locator("#menu").isVisible()) await page.click("#menu");
}

export async function newSession(page) {
  await openList(page);
  await page.fill("#cwd", "/tmp");
  await page.getByRole("button", { name: "New session" }).click();
  await page.locator("#composer").waitFor();
  await page.locator("#state").getByText("idle").waitFor();
}

export async function prompt(page, text) {
  await page.fill("#prompt", text);
  await page.press("#prompt", "Enter");
}

export const idle = (page) => page.locator("#state").getByText("idle", { exact: true }).waitFor();

// Fails if the page violates a rule of WCAG 2.2, level AA, that axe-core knows.
export async function accessible(page, name) {
  await page.evaluate(readFileSync(join(import.meta.dirname, "node_modules/axe-core/axe.min.js"), "utf8"));
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const { violations, passes } = await page.evaluate((tags) => window.axe.run(document, { runOnly: tags }), tags);
  assert.ok(passes.length > 10, `${name}: ${passes.length} rules apply`);
  assert.deepEqual(violations.flatMap((it) => it.nodes.map((node) => `${name}: ${it.help}: ${node.html}`)), []);
}

export async function shoot(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, name + ".png") });
}
