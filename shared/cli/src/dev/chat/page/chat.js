// The chat page. It shows texts as texts: nothing that an agent or a person has written is ever read as HTML.
'use strict';

const POLL_MS = 3000; // while no events come
const LOOK_MS = 20000; // beside events, which may be lost

const at = (id) => document.getElementById(id);
const state = {
  chats: [], next: null, current: null, messages: new Map(), older: false, held: '', saying: null,
  dirty: false, looking: false, looked: 0, shown: 0,
};

function make(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

async function ask(path, body) {
  const response = await fetch(path, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  });
  if (response.status === 401 && path !== '/login') show(false);
  const text = await response.text();
  const answer = text ? JSON.parse(text) : {};
  if (!response.ok) throw new Error(answer.message || `the server says ${response.status}`);
  return answer;
}

function trouble(place, error) {
  place.querySelector('.trouble').textContent = error ? error.message : '';
}

function show(inside) {
  at('login').hidden = inside;
  at('chat').hidden = !inside;
  if (!inside) at('code').focus();
}

// What is known is read again: once at a time, and once more when something has happened meanwhile.
async function look() {
  state.dirty = true;
  if (state.looking) return;
  state.looking = true;
  try {
    while (state.dirty) {
      state.dirty = false;
      await lookOnce();
    }
    trouble(at('open'), null);
    state.looked = Date.now();
  } catch (error) {
    trouble(at('open'), error);
  } finally {
    state.looking = false;
  }
}

async function lookOnce() {
  // First the open conversation, since that makes its messages read.
  const id = state.current;
  if (id) {
    const page = await ask('/api/read', { conversationId: id, limit: 50, markRead: !document.hidden });
    if (id === state.current) showPage(page, true);
  }
  const list = await ask('/api/list', { limit: 50 });
  show(true);
  state.chats = list.conversations;
  state.next = list.next;
  showList();
}

function showList() {
  let unread = 0;
  const items = state.chats.map((chat) => {
    unread += chat.unread;
    const button = make('button');
    button.type = 'button';
    button.dataset.id = chat.conversationId;
    if (chat.conversationId === state.current) button.setAttribute('aria-current', 'true');
    if (chat.unread) {
      const count = make('span', String(chat.unread), 'unread');
      count.setAttribute('aria-label', `${chat.unread} unread`);
      button.append(count);
    }
    const title = make('strong', chat.title || chat.agentId);
    const last = make('span', chat.last.text, 'last');
    title.dir = last.dir = 'auto';
    button.append(title, last);
    button.addEventListener('click', () => open(chat.conversationId));
    const item = make('li');
    item.append(button);
    return item;
  });
  const focused = document.activeElement?.dataset?.id;
  at('list').replaceChildren(...items);
  if (focused) at('list').querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  at('none').hidden = items.length > 0;
  at('more').hidden = state.next === null;
  document.title = unread ? `(${unread}) Conversations` : 'Conversations';
}

function open(id) {
  Object.assign(state, { current: id, messages: new Map(), older: false, held: '', saying: null });
  at('open').hidden = false;
  at('messages').replaceChildren();
  at('held').replaceChildren();
  at('doing').textContent = '';
  look();
}

function showPage(page, newest) {
  const { conversation } = page;
  at('title').textContent = `${conversation.title || 'Conversation'} · ${conversation.agentId}`;
  // Older messages stay; what was dropped between them and the newest is not shown as if it were there.
  const before = state.messages.size;
  for (const entry of page.messages) state.messages.set(entry.seq, entry);
  if (!newest || before === 0) state.older = page.older;
  at('older').hidden = !state.older;
  if (state.messages.size !== before) {
    const entries = [...state.messages.values()].sort((a, b) => a.seq - b.seq);
    at('messages').replaceChildren(...entries.map(showEntry));
    if (newest) at('messages').lastElementChild?.scrollIntoView({ block: 'nearest' });
    const { saying } = state;
    const isSaid = (entry) => entry.from !== 'person' && entry.runId === saying.runId;
    if (saying && entries.some(isSaid)) {
      state.saying = null;
      at('doing').textContent = '';
    }
  }
  if (!conversation.activeRunId) {
    state.saying = null;
    at('doing').textContent = '';
  } else if (!at('doing').textContent) {
    at('doing').textContent = `${conversation.agentId} is at work …`;
  }
  showHeld(page.held);
}

function showEntry(entry) {
  const text = entry.from === 'system' ? `No answer: ${entry.text}` : entry.text;
  const item = make('li', text, entry.from);
  item.dir = 'auto';
  item.dataset.seq = entry.seq;
  item.title = new Date(entry.at).toLocaleString();
  return item;
}

// Calls are drawn again only when they are others, so that nobody's typing is lost.
function showHeld(held) {
  const key = held.map((call) => `${call.runId} ${call.callId}`).join();
  if (key === state.held) return;
  state.held = key;
  at('held').replaceChildren(...held.map(showCall));
  if (held.length) at('doing').textContent = 'Waits for your decision.';
}

function showCall(call) {
  const form = make('form', undefined, 'call');
  form.dataset.call = call.callId;
  const who = call.agentId ? ` by ${call.agentId}` : '';
  form.append(make('strong', `May ${call.tool} be used${who}?`));
  const args = make('textarea');
  args.value = JSON.stringify(call.args, null, 2);
  args.rows = Math.min(10, args.value.split('\n').length);
  args.spellcheck = false;
  args.setAttribute('aria-label', 'Arguments');
  const reason = make('input');
  reason.placeholder = 'Why not (the agent is told)';
  reason.maxLength = 2000;
  const buttons = make('div');
  const said = make('p', '', 'trouble');
  said.setAttribute('role', 'alert');
  const decide = async (decision, more) => {
    for (const button of buttons.children) button.disabled = true;
    const { runId, callId } = call;
    try {
      await ask('/api/decide', { conversationId: state.current, runId, callId, decision, ...more() });
      form.remove();
      look();
    } catch (error) {
      said.textContent = error.message;
      for (const button of buttons.children) button.disabled = false;
    }
  };
  const add = (text, decision, more) => {
    const button = make('button', text, decision);
    button.type = 'button';
    button.addEventListener('click', () => decide(decision, more));
    buttons.append(button);
  };
  add('Approve', 'approve', () => ({}));
  add('Approve as edited', 'edit', () => ({ args: JSON.parse(args.value) }));
  add('Reject', 'reject', () => (reason.value.trim() ? { message: reason.value.trim() } : {}));
  form.append(args, buttons, reason, said);
  form.addEventListener('submit', (event) => event.preventDefault());
  return form;
}

// What is said comes in pieces. The first one begins anew; behind a lost one nothing is shown until the answer is there.
function hear(runId, turn, { attempt, seq, text }) {
  const of = `${runId} ${turn} ${attempt}`;
  if (seq === 1) state.saying = { runId, of, seq: 0, text: '' };
  const { saying } = state;
  if (!saying || saying.of !== of || saying.seq !== seq - 1) return;
  saying.seq = seq;
  saying.text += text;
  at('doing').textContent = saying.text;
}

function progress({ conversationId, runId, turn, doing }) {
  if (conversationId !== state.current) return;
  if (doing.kind === 'saying') {
    hear(runId, turn, doing);
  } else if (doing.kind === 'asking') {
    state.saying = null;
    at('doing').textContent = 'Thinking …';
  } else if (doing.kind === 'calling') {
    at('doing').textContent = `Uses ${doing.tools.join(', ')} …`;
  } else if (doing.kind === 'writing') {
    at('doing').textContent = `${doing.tool}: ${doing.text}`;
  } else {
    look();
  }
}

function listen() {
  const events = new EventSource('/api/events');
  const live = (on) => {
    state.live = on;
    at('live').textContent = on ? 'Live.' : 'Looks every few seconds.';
  };
  events.addEventListener('hello', () => { live(true); look(); });
  events.addEventListener('message', look);
  events.addEventListener('lost', look);
  events.addEventListener('progress', (event) => progress(JSON.parse(event.data)));
  events.addEventListener('error', () => {
    live(false);
    // A browser does not come again after an answer that is no stream.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, POLL_MS);
  });
}

let started = false;
async function start() {
  await look();
  if (at('chat').hidden && at('login').hidden) setTimeout(start, POLL_MS);
  if (at('chat').hidden || started) return;
  started = true;
  listen();
  setInterval(() => {
    if (!state.live || Date.now() - state.looked > LOOK_MS) look();
  }, POLL_MS);
}

at('login').addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    await ask('/login', { code: at('code').value.trim() });
    at('code').value = '';
    trouble(at('login'), null);
    start();
  } catch (error) {
    trouble(at('login'), error);
  }
});

at('reply').addEventListener('submit', async (event) => {
  event.preventDefault();
  const button = at('reply').querySelector('button');
  if (!state.current || !at('text').value.trim() || button.disabled) return;
  button.disabled = true;
  try {
    await ask('/api/reply', { conversationId: state.current, text: at('text').value });
    at('text').value = '';
    look();
  } catch (error) {
    trouble(at('open'), error);
  } finally {
    button.disabled = false;
  }
});

at('text').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at('reply').requestSubmit();
  }
});

at('older').addEventListener('click', async () => {
  const id = state.current;
  const before = Math.min(...state.messages.keys());
  try {
    const page = await ask('/api/read', { conversationId: id, before, limit: 50 });
    if (id === state.current) showPage(page, false);
  } catch (error) {
    trouble(at('open'), error);
  }
});

at('more').addEventListener('click', async () => {
  try {
    const list = await ask('/api/list', { before: state.next, limit: 50 });
    state.chats.push(...list.conversations);
    state.next = list.next;
    showList();
  } catch (error) {
    trouble(at('open'), error);
  }
});

document.addEventListener('visibilitychange', () => { if (!document.hidden) look(); });
start();
