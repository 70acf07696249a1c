// A page in a real browser whose node is killed in the middle of an answer: the page goes on at another node, behind
// the same address. `failover_scenes.py` starts it and kills the node when it says `mid`.
// Usage: node failover-page.mjs CHROMIUM URL TOKEN

import { chromium } from "playwright-core";

const [browserPath, url, token] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: browserPath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update"],
});
const say = (fields) => console.log(JSON.stringify(fields));
try {
  const page = await browser.newPage();
  await page.goto(`${url}#token=${token}`);
  const state = page.locator("#state");
  await state.getByText("connected").waitFor();
  await page.fill("#cwd", "/tmp");
  await page.getByRole("button", { name: "New session" }).click();
  await page.locator("#composer").waitFor();
  await state.getByText("idle").waitFor();
  const log = page.locator("#log");
  const prompt = async (text) => {
    await page.fill("#prompt", text);
    await page.press("#prompt", "Enter");
  };
  await prompt("before the failure");
  await log.locator(".agent", { hasText: "before the failure" }).waitFor();
  await state.getByText("idle").waitFor();
  await prompt("slow");
  await log.locator(".agent", { hasText: "tick 12" }).waitFor();
  say({ at: "mid" });
  const began = Date.now();
  await state.getByText("connection lost").waitFor({ timeout: 60_000 });
  await state.getByText("idle", { exact: true }).waitFor({ timeout: 90_000 });
  const idle = Date.now() - began;
  await prompt("after the failure");
  await log.locator(".agent", { hasText: "after the failure" }).waitFor();
  say({ at: "end", idle, after: Date.now() - began, text: await log.innerText() });
} finally {
  await browser.close();
}
