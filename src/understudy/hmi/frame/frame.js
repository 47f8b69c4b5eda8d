// The frame in the browser: stale data, emergency stop, keyboard.

import { dismissNotices, notice, order, refused, whenReady } from "./api.js";
import { feed } from "./feed.js";
import { listen, showKeys } from "./keys.js";
import "./slider.js";

const PRELOAD_MS = 3000;
const CHECK_MS = 200;
const STOP_TIMEOUT_MS = 1500;
const YEAR_S = 31536000;

function remember(name, value) {
  document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=${YEAR_S}; SameSite=Strict`;
}

// ── stale data: the page turns grey ──

function showStale() {
  document.body.classList.toggle("u-old", feed.stale);
}

setInterval(showStale, CHECK_MS);
feed.onFrame(showStale);

// ── emergency stop: sent directly by REST; a notice if it is not confirmed ──

const showUnconfirmed = (is) => document.body.classList.toggle("u-unconfirmed", is);

// Stops every robot of the cell, or one of them. A late answer still removes the notice.
async function stop(parameters = {}) {
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(parameters) };
  const timeout = setTimeout(() => showUnconfirmed(true), STOP_TIMEOUT_MS);
  try {
    const response = await fetch("/api/emergency_stop", request);
    showUnconfirmed(!response.ok);
    if (!response.ok) refused((await response.json()).message);
  } catch {
    showUnconfirmed(true);
  } finally {
    clearTimeout(timeout);
  }
}

// ── keyboard ──

listen(() => stop());

// ── address: a link shows the same page, robot, view and line ──

// Changes values in the address; null or an empty text removes one.
function address(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(history.state, "", addressOf(location.pathname, query));
}

const addressOf = (path, query) => (String(query) ? `${path}?${String(query).replaceAll("%2C", ",")}` : path);

whenReady("[data-mark=refusals]", ({ dataset }) => address({ robot: dataset.robot }));

// ── pages: the frame stays, the server replaces the page inside it ──

const tabOf = (match) => [...document.querySelectorAll("[data-tab]")].find((tab) => match(tab.dataset));

const load = ({ scripts }) => Promise.all(JSON.parse(scripts).map((script) => import(script)));

// Loads the scripts of a page once, then asks the server for the page. Without a connection the
// browser loads everything again.
async function open(name, { back = false } = {}) {
  const tab = tabOf((each) => each.tab === name).dataset;
  const { route } = tab;
  const query = new URLSearchParams(location.search);
  if (!back) query.delete("line"); // of the page that is left
  const there = addressOf(route, query);
  if (!window.socket?.connected) return location.assign(there);
  if (!back && location.pathname !== route) history.pushState(null, "", there);
  try {
    await load(tab);
  } catch {
    return location.assign(there);
  }
  dismissNotices();
  if (location.pathname === route) emitEvent("page_change", [name, query.get("robot") ?? ""]); // the last of several clicks
}

// The scripts of the other pages are loaded when the first page has long been there. `open` loads
// them again if the server has gone by then.
const preload = () => document.querySelectorAll("[data-tab]").forEach((tab) => load(tab.dataset).catch((problem) => console.debug(problem)));

setTimeout(() => requestIdleCallback(preload), PRELOAD_MS);

window.addEventListener("popstate", () => {
  const tab = tabOf(({ route }) => route === location.pathname);
  if (tab) open(tab.dataset.tab, { back: true });
  else location.reload();
});

window.understudyFrame = {
  address,
  open,
  keys: () => showKeys(document.querySelector("[data-mark=keys]")),
  notice,
  order,
  refused,
  stop: () => stop(),
  stopRobot: (robot) => stop({ robot }),
  remember,
  theme() {
    const isLight = /(^|; )theme=light(;|$)/.test(document.cookie);
    remember("theme", isLight ? "dark" : "light");
    location.reload();
  },
  language(name) {
    remember("language", name);
    location.reload();
  },
};
