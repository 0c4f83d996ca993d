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
      '"schemes":["slack"],"base_url":"https://slack.com/api","max_text":4000,' +
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

/** Slash commands come as forms. */
function readCommand(form: string): i32 {
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
  return kind == 'event_callback' ? readEvent(callback) : respondMessages([]);
}

export function format_outgoing(): i32 {
  const input = readInput();
  const body = new JsonObject()
    .text('channel', input.textOf('peer'))
    .text('text', escape(input.textOf('text')));
  body.text('thread_ts', input.textOf('thread'));
  const headers = new JsonObject().text('authorization', 'Bearer {token}');
  return respondRequest('/chat.postMessage', headers, body.toString());
}
