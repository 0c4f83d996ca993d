import { JsonObject, JsonValue, Kind } from '../../shared/assembly/json-value';
import {
  Message,
  outputText,
  readInput,
  respondMessages,
  respondNow,
  sendRequest,
} from '../../shared/assembly/channel';

/** Types of interactions and of their responses. */
const PING = '1';
const COMMAND = '2';
const COMPONENT = '3';
const PONG = '{"type":1}';
/** Shows that the app thinks. The reply edits it within 15 minutes. */
const DEFERRED = '{"type":5}';

export function describe(): i32 {
  outputText(
    '{"description":"Discord apps: slash commands as interactions by HTTP.",' +
      '"schemes":["discord"],"base_url":"https://discord.com/api/v10","max_text":2000,"buttons":true,' +
      '"socket":{"protocol":"discord","open":{"method":"GET","url":"/gateway/bot",' +
      '"headers":{"authorization":"Bot {token}"}},"url":"url","hosts":["discord.gg"],"secret":"token"},' +
      '"answer":{"error":"message","retry_after":"retry_after","id":"id"}}',
  );
  return 0;
}

/** Returns the values of the options of a command. */
function textOf(data: JsonValue): string {
  const name = data.textOf('name');
  if (name == 'new') return '/new';
  const options = data.get('options');
  const values: string[] = [];
  for (let i = 0; i < options.items.length; i++) values.push(options.at(i).textOf('value'));
  return values.length == 0 ? '/' + name : values.join(' ');
}

/** Reads a message of the gateway. In a guild it counts if it mentions the bot. */
function readMessage(self: string, post: JsonValue): i32 {
  const author = post.get('author');
  const mention = '<@' + self + '>';
  const content = post.textOf('content');
  const isNamed = self != '' && content.includes(mention);
  if (author.textOf('id') == self || (post.has('guild_id') && !isNamed)) return respondMessages([]);
  const text = isNamed ? content.replaceAll(mention, '').trim() : content;
  const message = new Message(post.textOf('id'), post.textOf('channel_id'), text);
  message.from(author.textOf('id'), author.textOf('username'), author.isTrue('bot'));
  message.place('guild', post.textOf('guild_id'));
  const files = post.get('attachments');
  for (let i = 0; i < files.items.length; i++) {
    const file = files.at(i);
    message.attach('file', file.textOf('id'), file.textOf('filename'), file.textOf('content_type'));
  }
  return respondMessages([message.toString()]);
}

export function parse_incoming(): i32 {
  const input = readInput();
  if (input.kind != Kind.Object) return 1;
  const type = input.textOf('type');
  if (type == 'MESSAGE_CREATE') return readMessage(input.textOf('self'), input.get('message'));
  if (type == PING) return respondNow(PONG, []);
  if (type != COMMAND && type != COMPONENT) return respondMessages([]);
  const member = input.get('member');
  const user = member.kind == Kind.Object ? member.get('user') : input.get('user');
  const data = input.get('data');
  const text = type == COMMAND ? textOf(data) : '';
  const message = new Message(input.textOf('id'), input.textOf('channel_id'), text);
  message.from(user.textOf('id'), user.textOf('username'), user.isTrue('bot'));
  if (type == COMMAND) message.place('kind', 'command');
  else message.press(data.textOf('custom_id'));
  message.place('guild', input.textOf('guild_id'));
  message.keep('application_id', input.textOf('application_id')).secret(input.textOf('token'));
  return respondNow(DEFERRED, [message.toString()]);
}

function isNumber(text: string): bool {
  for (let i = 0; i < text.length; i++)
    if (text.charCodeAt(i) < 0x30 || text.charCodeAt(i) > 0x39) return false;
  return text.length > 0;
}

/** Writes a row of buttons. Styles of Discord are numbers. */
function rowOf(buttons: JsonValue): string {
  const keys: string[] = [];
  for (let i = 0; i < buttons.items.length; i++) {
    const button = buttons.at(i);
    const style = button.textOf('style') == 'danger' ? '4' : '3';
    const key = new JsonObject().raw('type', '2').raw('style', style).text('label', button.textOf('label'));
    keys.push(key.text('custom_id', button.textOf('value')).toString());
  }
  return '[{"type":1,"components":[' + keys.join(',') + ']}]';
}

/** Edits the deferred response; sends further parts after it, or a message once its time is over. */
export function format_outgoing(): i32 {
  const input = readInput();
  const body = new JsonObject().text('content', input.textOf('text'));
  body.raw('allowed_mentions', '{"parse":[]}');
  const buttons = input.get('buttons');
  if (buttons.items.length > 0) body.raw('components', rowOf(buttons));
  const app = input.get('reply_to').textOf('application_id');
  if (!input.isTrue('has_reply_secret') || !isNumber(app)) {
    if (!isNumber(input.textOf('peer'))) return 1;
    const headers = new JsonObject().text('authorization', 'Bot {token}');
    return sendRequest('POST', '/channels/' + input.textOf('peer') + '/messages', headers, body.toString());
  }
  const base = '/webhooks/' + app + '/{reply_secret}';
  return input.textOf('part') == '0'
    ? sendRequest('PATCH', base + '/messages/@original', new JsonObject(), body.toString())
    : sendRequest('POST', base, new JsonObject(), body.toString());
}
