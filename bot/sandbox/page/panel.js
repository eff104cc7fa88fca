// One person's Telegram: a chat list, the open chat, a composer.

import { read, upload, write } from "./api.js";
import { element, excerpt, messageElement, sender } from "./render.js";

const NEAR_END = 120;

export class Panel {
  constructor(person) {
    this.key = person.key;
    this.person = person;
    this.chatId = String(person.id);
    this.thread = "";
    this.replyTo = null;
    this.editing = null;
    this.seen = new Map();
    this.shown = new Map();
    this.unread = false;
    this.act = {
      press: (message, data) => this.press(message, data),
      reply: (message) => this.setReply(message),
      edit: (message) => this.setEdit(message),
      copy: (text) => navigator.clipboard.writeText(text).then(() => this.say("Copied")),
      say: (text) => this.say(text),
    };
    this.build();
  }

  build() {
    const id = (name) => `${name}-${this.key}`;
    this.chats = element("div", { class: "chats", role: "group", "aria-label": "Chats" });
    this.topics = element("select", { "aria-label": "Topic", onchange: () => this.pickTopic() });
    this.list = element("ol", {
      class: "messages", tabindex: "0", role: "log", "aria-live": "polite",
      "aria-label": `Messages that ${this.person.first_name} sees`,
    });
    this.toasts = element("div", { class: "toasts", role: "status" });
    this.context = element("div", { class: "context", hidden: true });
    this.commands = element("div", { class: "commands", hidden: true, id: id("commands") });
    this.text = element("textarea", {
      rows: "1", id: id("text"), placeholder: "Message", dir: "auto",
      "aria-label": `Message as ${this.person.first_name}`, onkeydown: (event) => this.keys(event),
    });
    this.file = element("input", {
      type: "file", class: "hidden-file", id: id("file"), onchange: () => this.attach(),
      "aria-label": `Attach a file as ${this.person.first_name}`,
    });
    this.slash = element("button", {
      type: "button", class: "tool", "aria-label": "Bot commands", "aria-expanded": "false",
      "aria-controls": id("commands"), onclick: () => this.toggleCommands(),
    }, "/");
    const form = element("form", { class: "composer", onsubmit: (event) => this.submit(event) },
      element("span", { class: "tool attach" }, this.file,
        element("label", { for: id("file"), title: "Attach a file" },
          element("span", { "aria-hidden": "true" }, "+"))),
      this.slash, this.text,
      element("button", { class: "primary send" }, "Send"));
    this.root = element("section", {
      class: "panel", "aria-label": `${this.person.first_name}, ${this.person.note || "person"}`,
    },
    element("header", { class: "who" },
      element("span", { class: `avatar hue-${this.person.id % 5}`, "aria-hidden": "true" },
        this.person.first_name.slice(0, 1)),
      element("h2", {}, element("bdi", {}, this.person.first_name),
        element("span", { class: "role" }, this.person.note || "person"))),
    this.chats, this.topics, this.list, this.toasts, this.context, this.commands, form);
  }

  know(person, state) {
    this.person = person;
    this.bot = state.bot;
    const open = person.chats.filter((chat) => !chat.migrated_to);
    if (!open.some((chat) => String(chat.id) === this.chatId)) this.chatId = String(person.id);
    this.unread = false;
    this.chats.replaceChildren(...open.map((chat) => this.chatButton(chat)));
    this.setCommands(state.commands);
  }

  chatButton(chat) {
    const id = String(chat.id);
    const last = chat.last?.message_id || 0;
    const current = id === this.chatId;
    if (current || !this.seen.has(id)) this.seen.set(id, last);
    const news = last > this.seen.get(id);
    if (news) this.unread = true;
    const name = chat.type === "private" ? this.bot.first_name : chat.title;
    return element("button", {
      type: "button", class: news ? "chat news" : "chat", "aria-pressed": String(current),
      onclick: () => this.openChat(id),
    }, element("bdi", { class: "chat-name" }, name),
    element("span", { class: "chat-kind" }, chat.type === "private" ? "bot" : chat.type),
    news ? element("span", { class: "dot", "aria-label": "new messages" }) : null);
  }

  openChat(id) {
    this.chatId = id;
    this.thread = "";
    this.clearContext();
    this.list.replaceChildren();
    this.shown.clear();
    this.refresh().catch((error) => this.say(error.message));
    for (const button of this.chats.children) button.setAttribute("aria-pressed", "false");
  }

  async refresh() {
    const asked = this.chatId;
    const page = await read("messages", { person: this.key, chat: asked });
    if (asked !== this.chatId) return;
    this.show(page);
    const { answers } = await read("query", { person: this.key });
    for (const answer of answers) this.showAnswer(answer);
  }

  show({ chat, messages }) {
    const atEnd = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < NEAR_END;
    this.setTopics(chat);
    const wanted = messages.filter((message) => this.inTopic(message));
    const ids = new Set(wanted.map((message) => message.message_id));
    for (const [id, held] of this.shown) {
      if (!ids.has(id)) { held.node.remove(); this.shown.delete(id); }
    }
    let fresh = false;
    for (const message of wanted) fresh = this.place(message, chat) || fresh;
    if (!wanted.length && !this.list.children.length) this.list.append(this.emptyNote(chat));
    if (fresh && atEnd) this.toEnd();
    if (fresh) this.offerReply(wanted[wanted.length - 1]);
    this.seen.set(this.chatId, messages[messages.length - 1]?.message_id || 0);
    for (const button of this.chats.children) {
      const name = chat.type === "private" ? this.bot.first_name : chat.title;
      const current = button.querySelector(".chat-name").textContent === name;
      if (current) button.setAttribute("aria-pressed", "true");
    }
  }

  place(message, chat) {
    const print = JSON.stringify([message, this.thread]);
    const held = this.shown.get(message.message_id);
    if (held?.print === print) return false;
    const topic = chat.topics.find((row) => row.thread_id === message.message_thread_id);
    const view = {
      own: message.from?.id === this.person.id,
      group: chat.type !== "private",
      topic: this.thread === "" && topic ? topic.name : null,
    };
    const node = messageElement(message, view, this.act);
    if (held) held.node.replaceWith(node);
    else { this.list.querySelector(".empty")?.remove(); this.list.append(node); }
    this.shown.set(message.message_id, { print, node });
    return !held;
  }

  emptyNote(chat) {
    const note = chat.type === "private"
      ? "Nothing here yet. Write /start to begin, as in Telegram." : "Nothing here yet.";
    return element("li", { class: "empty" }, note);
  }

  inTopic(message) {
    if (this.thread === "") return true;
    return String(message.message_thread_id || 1) === this.thread;
  }

  setTopics(chat) {
    this.topics.hidden = !chat.is_forum;
    const wanted = [["", "All topics"], ["1", "General"],
      ...chat.topics.map((row) => [String(row.thread_id), row.name])];
    if (this.topics.dataset.print === JSON.stringify(wanted)) return;
    this.topics.dataset.print = JSON.stringify(wanted);
    this.topics.replaceChildren(...wanted.map(([value, name]) => element("option", { value }, name)));
    this.topics.value = this.thread;
  }

  pickTopic() {
    this.thread = this.topics.value;
    this.refresh().catch((error) => this.say(error.message));
  }

  setCommands(commands) {
    this.slash.hidden = !commands.length;
    this.commands.replaceChildren(...commands.map((row) => element("button", {
      type: "button", class: "command", onclick: () => this.useCommand(row.command),
    }, element("span", { class: "marked" }, `/${row.command}`), " ", row.description)));
  }

  toggleCommands(open = this.commands.hidden) {
    this.commands.hidden = !open;
    this.slash.setAttribute("aria-expanded", String(open));
  }

  useCommand(command) {
    this.toggleCommands(false);
    this.text.value = `/${command} `;
    this.text.focus();
  }

  offerReply(last) {
    if (!last?.input_markup?.force_reply) return;
    this.setReply(last, last.input_markup.input_field_placeholder);
  }

  setReply(message, placeholder = "Your answer") {
    this.editing = null;
    this.replyTo = message.message_id;
    this.showContext(`Answer to ${sender(message)}: `, excerpt(message));
    this.text.placeholder = placeholder;
    if (this.root.contains(document.activeElement)) this.text.focus();
  }

  setEdit(message) {
    this.replyTo = null;
    this.editing = message.message_id;
    this.text.value = message.text;
    this.showContext("Edit: ", excerpt(message));
    this.text.focus();
  }

  showContext(label, said) {
    this.context.hidden = false;
    this.context.replaceChildren(
      element("p", {}, element("strong", {}, label), element("bdi", {}, said)),
      element("button", { type: "button", class: "quiet", onclick: () => this.clearContext() },
        "Cancel"));
  }

  clearContext() {
    if (this.editing) this.text.value = "";
    this.replyTo = null;
    this.editing = null;
    this.context.hidden = true;
    this.text.placeholder = "Message";
  }

  keys(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) this.submit(event);
    if (event.key === "Escape") this.clearContext();
  }

  where() {
    return { person: this.key, chat: this.chatId, reply_to: this.replyTo, thread_id: this.thread };
  }

  async submit(event) {
    event.preventDefault();
    const text = this.text.value;
    if (!text.trim()) return;
    const editing = this.editing;
    await this.trying(async () => {
      if (editing) await write("edit", { ...this.where(), message_id: editing, text });
      else await write("send", { ...this.where(), text });
      this.text.value = "";
      this.clearContext();
      this.toEnd();
    });
    this.text.focus();
  }

  toEnd() {
    this.list.scrollTop = this.list.scrollHeight;
  }

  async attach() {
    const file = this.file.files[0];
    if (!file) return;
    await this.trying(async () => {
      await upload({ ...this.where(), caption: this.text.value }, file);
      this.text.value = "";
      this.clearContext();
      this.toEnd();
    });
    this.file.value = "";
  }

  press(message, data) {
    const order = { person: this.key, chat: this.chatId, message_id: message.message_id, data };
    return this.trying(() => write("press", order));
  }

  async trying(work) {
    try { await work(); } catch (error) { this.say(error.message); }
  }

  showAnswer({ text, show_alert: alert }) {
    if (!text) return;
    if (!alert) { this.say(text); return; }
    const dialog = document.getElementById("alert");
    document.getElementById("alert-text").textContent = text;
    if (!dialog.open) dialog.showModal();
  }

  say(text) {
    const toast = element("p", { class: "toast", dir: "auto" }, text);
    this.toasts.append(toast);
    setTimeout(() => toast.remove(), 6000);
  }
}
