import { Config, Host } from '@extism/as-pdk';
import { fieldOf } from '../../shared/assembly/form';
import { JsonObject, JsonParser, JsonValue, Kind } from '../../shared/assembly/json-value';
import {
  Message,
  outputText,
  readInput,
  respondMessages,
  respondNow,
  respondRequest,
} from '../../shared/assembly/channel';

export function describe(): i32 {
  outputText(
    '{"description":"Slack apps: direct messages, mentions, threads and slash commands.",' +
      '"schemes":["slack"],"base_url":"https://slack.com/api","max_text":4000,"buttons":true,' +
      '"socket":{"protocol":"slack","open":{"method":"POST","url":"/apps.connections.open",' +
      '"headers":{"authorization":"Bearer {token}"}},"url":"url","hosts":["slack.com"],"secret":"secret"},' +
      '"answer":{"ok":"ok","error":"error","id":"ts"}}',
  );
  return 0;
}

function unescape(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Removes the mention of the app at the beginning. */
function withoutMention(text: string): string {
  if (!text.startsWith('<@')) return text;
  const end = text.indexOf('>');
  return end < 0 ? text : text.substring(end + 1).trimStart();
}

/** A message of a room counts if it names the app: `app_mention` comes for it too. */
function isForApp(callback: JsonValue, event: JsonValue): bool {
  const type = event.textOf('type');
  if (type == 'app_mention') return true;
  if (type != 'message') return false;
  const room = event.textOf('channel_type');
  if (room == 'im' || room == 'mpim') return true;
  const app = callback.get('authorizations').at(0).textOf('user_id');
  return app != '' && event.textOf('text').includes('<@' + app + '>');
}

function readEvent(callback: JsonValue): i32 {
  const event = callback.get('event');
  const subtype = event.textOf('subtype');
  const isPlain = subtype == '' || subtype == 'file_share' || subtype == 'bot_message';
  if (!isPlain || !isForApp(callback, event)) return respondMessages([]);
  const room = event.textOf('channel');
  const ts = event.textOf('ts');
  // Both `message` and `app_mention` come for one message, with different ids of the event.
  const message = new Message(room + ':' + ts, room, unescape(withoutMention(event.textOf('text'))));
  const bot = event.textOf('bot_id');
  const user = event.textOf('user');
  message.from(user == '' ? bot : user, '', bot != '');
  const thread = event.textOf('thread_ts');
  const isDirect = event.textOf('channel_type') == 'im';
  const place = thread == '' && !isDirect ? ts : thread;
  message.place('team', callback.textOf('team_id')).place('thread', place);
  const files = event.get('files');
  for (let i = 0; i < files.items.length; i++) {
    const file = files.at(i);
    message.attach('file', file.textOf('id'), file.textOf('name'), file.textOf('mimetype'));
  }
  return respondMessages([message.toString()]);
}

/** Reads the press of a button: an action in the field `payload` of a form. */
function readActions(payload: JsonValue): i32 {
  const action = payload.get('actions').at(0);
  if (payload.textOf('type') != 'block_actions' || !action.has('value')) return respondMessages([]);
  const user = payload.get('user');
  const room = payload.get('channel').textOf('id');
  const message = new Message(payload.textOf('trigger_id'), room, '');
  message.from(user.textOf('id'), user.textOf('username'), false).press(action.textOf('value'));
  const team = payload.get('team').textOf('id');
  const place = payload.get('message').textOf('thread_ts');
  message.place('team', team == '' ? user.textOf('team_id') : team).place('thread', place);
  return respondMessages([message.toString()]);
}

/** Slash commands and presses come as forms. */
function readCommand(form: string): i32 {
  const payload = fieldOf(form, 'payload');
  if (payload != '') return readActions(new JsonParser(payload).parse());
  const command = fieldOf(form, 'command');
  if (command == '') return respondMessages([]);
  const text = command == '/new' ? command : fieldOf(form, 'text');
  const message = new Message(fieldOf(form, 'trigger_id'), fieldOf(form, 'channel_id'), text);
  message.from(fieldOf(form, 'user_id'), fieldOf(form, 'user_name'), false).place('kind', 'command');
  return respondMessages([message.place('team', fieldOf(form, 'team_id')).toString()]);
}

export function parse_incoming(): i32 {
  const text = String.UTF8.decode(Host.input().buffer);
  const type = Config.get('content_type');
  if (type !== null && type.startsWith('application/x-www-form-urlencoded')) return readCommand(text);
  const parser = new JsonParser(text);
  const callback = parser.parse();
  if (callback.kind != Kind.Object) return 1;
  const kind = callback.textOf('type');
  if (kind == 'url_verification')
    return respondNow(new JsonObject().text('challenge', callback.textOf('challenge')).toString(), []);
  if (kind == 'block_actions') return readActions(callback);
  return kind == 'event_callback' ? readEvent(callback) : respondMessages([]);
}

/** Writes a text with a row of buttons below it. */
function blocksOf(text: string, buttons: JsonValue): string {
  const keys: string[] = [];
  for (let i = 0; i < buttons.items.length; i++) {
    const button = buttons.at(i);
    const label = new JsonObject().text('type', 'plain_text').text('text', button.textOf('label'));
    const key = new JsonObject().text('type', 'button').raw('text', label.toString());
    key.text('value', button.textOf('value')).text('action_id', 'antiphon_' + i.toString());
    keys.push(key.text('style', button.textOf('style')).toString());
  }
  const shown = new JsonObject().text('type', 'plain_text').text('text', text.substring(0, 3000));
  const section = new JsonObject().text('type', 'section').raw('text', shown.toString());
  const actions = new JsonObject().text('type', 'actions').raw('elements', '[' + keys.join(',') + ']');
  return '[' + section.toString() + ',' + actions.toString() + ']';
}

export function format_outgoing(): i32 {
  const input = readInput();
  const body = new JsonObject()
    .text('channel', input.textOf('peer'))
    .text('text', escape(input.textOf('text')));
  body.text('thread_ts', input.textOf('thread'));
  const buttons = input.get('buttons');
  if (buttons.items.length > 0) body.raw('blocks', blocksOf(input.textOf('text'), buttons));
  const headers = new JsonObject().text('authorization', 'Bearer {token}');
  return respondRequest('/chat.postMessage', headers, body.toString());
}
