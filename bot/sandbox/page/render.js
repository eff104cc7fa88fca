// Makes the elements of one message. Text only ever becomes text nodes, never markup.

import { blobUrl, download } from "./api.js";

export function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const safe = (url) => /^https?:\/\//i.test(url);

function link(url, text) {
  if (!safe(url)) return element("span", { class: "dead-link", title: url }, text);
  return element("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, text);
}

function withScheme(text) {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`;
}

function spoiler() {
  const made = element("span", {
    class: "spoiler", role: "button", tabindex: "0", "aria-label": "Hidden text, press to show",
  });
  const show = (event) => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    made.classList.add("shown");
    for (const name of ["role", "tabindex", "aria-label"]) made.removeAttribute(name);
  };
  made.addEventListener("click", show);
  made.addEventListener("keydown", show);
  return made;
}

function quote(expandable) {
  const made = element("blockquote", { class: expandable ? "folded" : undefined });
  return made;
}

// What stands around the text of an entity; null where nothing does.
function wrapper(entity, text) {
  switch (entity.type) {
    case "bold": return element("strong");
    case "italic": return element("em");
    case "underline": return element("u");
    case "strikethrough": return element("s");
    case "spoiler": return spoiler();
    case "code": return element("code");
    case "pre": return element("pre", { "data-language": entity.language, tabindex: "0" });
    case "blockquote": return quote(false);
    case "expandable_blockquote": return quote(true);
    case "text_link": return link(entity.url, "");
    case "url": return link(withScheme(text), "");
    case "mention": case "text_mention": case "hashtag": case "cashtag": case "bot_command":
      return element("span", { class: "marked" });
    default: return null;
  }
}

// Entities nest and come outer first; offsets are UTF-16 units, as JavaScript's own strings.
function fill(parent, text, start, end, entities) {
  let at = start;
  let index = 0;
  while (index < entities.length) {
    const entity = entities[index];
    const stop = Math.min(entity.offset + entity.length, end);
    if (entity.offset > at) parent.append(text.slice(at, entity.offset));
    index += 1;
    const inner = [];
    while (index < entities.length && entities[index].offset < stop) inner.push(entities[index++]);
    const around = wrapper(entity, text.slice(entity.offset, stop)) || element("span");
    fill(around, text, entity.offset, stop, inner);
    parent.append(around);
    if (around.classList.contains("folded")) parent.append(unfold(around));
    at = stop;
  }
  if (at < end) parent.append(text.slice(at, end));
}

function unfold(around) {
  const button = element("button", { class: "quiet", type: "button", "aria-expanded": "false" },
    "Show the whole quote");
  button.addEventListener("click", () => {
    const open = around.classList.toggle("open");
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "Fold the quote" : "Show the whole quote";
  });
  return button;
}

export function richText(text, entities = []) {
  const made = element("div", { class: "text", dir: "auto" });
  fill(made, text, 0, text.length, entities);
  return made;
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

function documentCard(held) {
  const name = held.file_name || "file";
  return element("button", {
    class: "file", type: "button", onclick: () => download(held.file_id, name),
    "aria-label": `Download ${name}, ${size(held.file_size)}`,
  },
  element("span", { class: "file-mark", "aria-hidden": "true" }, "↓"),
  element("span", { class: "file-name" }, name),
  element("span", { class: "file-size" }, size(held.file_size)));
}

function picture(sizes) {
  const largest = sizes[sizes.length - 1];
  const image = element("img", {
    class: "photo", alt: "Photo", width: largest.width, height: largest.height,
  });
  blobUrl(largest.file_id).then((url) => { image.src = url; }, () => { image.alt = "Photo lost"; });
  return image;
}

function keyButton(button, message, act) {
  const look = `key ${button.style || ""}`;
  if (button.url && safe(button.url)) {
    return element("a", {
      class: look, href: button.url, target: "_blank", rel: "noopener noreferrer",
    }, `${button.text} ↗`);
  }
  const pressed = async (event) => {
    const made = event.currentTarget;
    if (button.copy_text) { await act.copy(button.copy_text.text); return; }
    if (!button.callback_data) { act.say("This kind of button does nothing in the sandbox."); return; }
    made.setAttribute("aria-busy", "true");
    await act.press(message, button.callback_data);
    setTimeout(() => made.removeAttribute("aria-busy"), 600);
  };
  return element("button", { class: look, type: "button", onclick: pressed }, button.text);
}

function keyboard(message, act) {
  const rows = message.reply_markup?.inline_keyboard;
  if (!rows) return null;
  return element("div", { class: "keyboard", role: "group", "aria-label": "Buttons of the message" },
    ...rows.map((row) => element("div", { class: "keys" },
      ...row.map((button) => keyButton(button, message, act)))));
}

const named = (user) => [user?.first_name, user?.last_name].filter(Boolean).join(" ") || "Someone";

export function sender(message) {
  if (message.sender_chat) return message.sender_chat.title || "Channel";
  return named(message.from);
}

export function excerpt(message) {
  const said = message.text || message.caption
    || message.document?.file_name || (message.photo && "Photo") || event(message) || "Message";
  return said.length > 90 ? `${said.slice(0, 88)}…` : said;
}

// What a service message says; undefined for ordinary messages.
export function event(message) {
  const who = named(message.from);
  if (message.pinned_message) return `${who} pinned “${excerpt(message.pinned_message)}”`;
  if (message.new_chat_members) return `${who} added ${message.new_chat_members.map(named).join(", ")}`;
  if (message.left_chat_member) return `${named(message.left_chat_member)} left`;
  if (message.group_chat_created) return `${who} created the group`;
  if (message.forum_topic_created) return `${who} opened the topic “${message.forum_topic_created.name}”`;
  if (message.migrate_to_chat_id) return "The group was upgraded to a supergroup";
  if (message.migrate_from_chat_id) return "The group was upgraded from a basic group";
  return undefined;
}

function heading(message, view) {
  const parts = [];
  if (view.group && !view.own) {
    const look = `name hue-${Math.abs(message.from?.id || 0) % 5}`;
    parts.push(element("bdi", { class: look }, sender(message)));
  }
  if (view.topic) parts.push(element("bdi", { class: "topic-name" }, view.topic));
  if (!parts.length) return null;
  return element("p", { class: "heading" }, ...parts);
}

function footing(message, view, act) {
  const when = new Date(message.date * 1000);
  const shown = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return element("p", { class: "footing" },
    element("time", { datetime: when.toISOString(), title: when.toLocaleString() }, shown),
    message.edit_date ? element("span", {}, "edited") : null,
    element("button", { class: "quiet", type: "button", onclick: () => act.reply(message) }, "Reply"),
    view.own && message.text !== undefined && !message.forward_origin
      ? element("button", { class: "quiet", type: "button", onclick: () => act.edit(message) }, "Edit")
      : null);
}

export function messageElement(message, view, act) {
  const said = event(message);
  if (said) return element("li", { class: "event" }, element("bdi", {}, said));
  const replied = message.reply_to_message;
  const origin = message.forward_origin;
  const bubble = element("div", { class: "bubble" },
    heading(message, view),
    origin ? element("p", { class: "forwarded" }, "Forwarded from ",
      element("bdi", {}, origin.sender_chat?.title || named(origin.sender_user))) : null,
    replied ? element("p", { class: "replied" },
      element("bdi", { class: "name" }, sender(replied)), " ", element("bdi", {}, excerpt(replied))) : null,
    message.photo ? picture(message.photo) : null,
    message.document ? documentCard(message.document) : null,
    message.text !== undefined ? richText(message.text, message.entities) : null,
    message.caption ? richText(message.caption, message.caption_entities) : null,
    message.reactions?.length ? element("p", { class: "reactions" },
      message.reactions.map((mark) => mark.emoji || "?").join(" ")) : null,
    footing(message, view, act));
  return element("li", { class: view.own ? "message own" : "message", "data-id": message.message_id },
    bubble, keyboard(message, act));
}
