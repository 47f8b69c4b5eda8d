// The page /api/docs: search, and sending of a command.

const rows = [...document.querySelectorAll("details")];

document.querySelector("#search").addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const text = row.querySelector("summary").textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});

async function send(form) {
  const output = form.querySelector("output");
  const headers = { "Content-Type": "application/json" };
  const body = form.querySelector("textarea").value;
  output.textContent = "…";
  try {
    const response = await fetch(form.dataset.command, { method: "POST", headers, body });
    const answer = JSON.stringify(await response.json(), null, 2);
    output.textContent = `${response.status}\n${answer}`;
  } catch (problem) {
    output.textContent = String(problem);
  }
}

for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}

// The address of one command: /api/docs#move_to
const open = () => document.getElementById(location.hash.slice(1))?.setAttribute("open", "");
window.addEventListener("hashchange", open);
open();
